"""Constraints that many ops have; each caller gives the number that its docstring has for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import NoneType, TensorType, bf16, f16, f32
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, is_bool, is_unknown, rank


def same_elements(op: TensorOp, constraint: str, operands: Sequence[SSAValue] | None = None) -> None:
    """Raise unless the operands (all of them if none are given) have one element type."""
    elements = list(
        dict.fromkeys(element_of(operand.type) for operand in (op.operands if operands is None else operands))
    )
    require(
        len(elements) <= 1,
        f"{constraint}: {op.name} needs operands of one element type, but they are {' and '.join(map(str, elements))}",
    )


def same_elements_but_bias(
    op: TensorOp, constraint: str, bias: SSAValue | None, operands: Sequence[SSAValue] | None = None
) -> None:
    """As `same_elements`; a bias of half-precision operands may be float32, as it is added to a float32 sum."""
    every = list(op.operands if operands is None else operands)
    others = [operand for operand in every if operand is not bias]
    wide = bias is not None and element_of(bias.type) == f32
    halves = all(element_of(operand.type) in (f16, bf16) for operand in others)
    same_elements(op, constraint, others if wide and halves else every)


def numbers(op: TensorOp, constraint: str, of: Attribute) -> None:
    """Raise where a tensor is boolean."""
    require(not is_bool(element_of(of)), f"{constraint}: {op.name} needs numbers, but its input is boolean")


def constant_dims(op: TensorOp, constraint: str, of: Attribute, label: str) -> tuple[int, ...]:
    """The dimensions of a tensor type that must be numbers."""
    fixed = tuple(dim for dim in dims(of) if isinstance(dim, int))
    if len(fixed) != rank(of):
        raise VerifyException(f"{constraint}: {label} of {op.name} needs constant dimensions, not {of}")
    return fixed


def lengths_agree(constraint: str, label: str, expected: Dim, found: Dim) -> None:
    """Raise where two lengths are known to differ: two numbers, or a number and nothing that could equal it."""
    differ = isinstance(expected, int) and isinstance(found, int) and expected != found
    require(not differ, f"{constraint}: {label}: expected {expected}, got {found}")


def element_or(of: Attribute, default: Attribute) -> Attribute:
    """The element type of a tensor type, or the default where an op has no result type yet."""
    return default if isinstance(of, NoneType) else element_of(of)


def tensor_type(of: Attribute) -> Tensor:
    """The type of a tensor operand, as the tensor type that it is."""
    assert isinstance(of, TensorType)
    return cast(Tensor, of)


def same_length(left: Dim, right: Dim) -> Dim:
    """Of two lengths that agree, the one that says more: a number, else a name."""
    if isinstance(left, int) or isinstance(right, int):
        return left if isinstance(left, int) else right
    return right if is_unknown(left) else left


def check_axis(op: TensorOp, constraint: str, axis: int, of: Attribute, label: str = "axis") -> None:
    """Raise unless `axis` is one of a tensor's axes."""
    require(
        0 <= axis < rank(of),
        f"{constraint}: {label} {axis} of {op.name} is not in the range 0 to {rank(of) - 1} of its input's axes",
    )


def shape_text(of: Attribute) -> str:
    """Dimensions as messages show them: `[n, 3, 8]`."""
    return f"[{', '.join(map(str, dims(of)))}]"
