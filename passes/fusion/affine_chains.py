"""Layers with constants between a linear layer and a sum over its results, as one scale and one shift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_float, rank
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array
    from mlirt.dialects.trt.reduce import ReduceOp


@dataclass(frozen=True)
class AffineChain:
    """`total(source * scale + shift)`: scale and shift are of float64, and have the rank of the source's result.

    `ops` lie between, the last one first; nobody else reads them or the source, unless it is asked for `shared`.
    """

    total: ReduceOp
    source: Operation
    ops: tuple[Operation, ...]
    scale: Array
    shift: Array

    @staticmethod
    def before(
        total: ReduceOp, kinds: Sequence[type[Operation]], ctx: Context, *, shared: bool = False
    ) -> AffineChain | None:
        """The one that ends in `total`; None where it does not begin with a layer of `kinds`."""
        import numpy as np

        value = total.input
        one = np.ones([1] * rank(value.type))
        scale, shift = one, one * 0
        ops: list[Operation] = []
        while shared or _is_alone(value, total):
            owner = value.owner
            if isinstance(owner, tuple(kinds)):
                return AffineChain(total, owner, tuple(ops), scale, shift)
            if isinstance(owner, IdentityOp) and _widens(owner):
                value = owner.input
            else:
                step = _step(owner, ctx) if isinstance(owner, ElementwiseOp) else None
                if step is None:
                    return None
                value, factor, summand = step
                scale, shift = scale * factor, scale * summand + shift
            assert isinstance(owner, Operation)
            ops.append(owner)
        return None


def _is_alone(value: SSAValue, total: ReduceOp) -> bool:
    owner = value.owner
    return value.has_one_use() and isinstance(owner, Operation) and owner.parent is total.parent


def _widens(op: IdentityOp) -> bool:
    """Whether every number stays what it is, in a type with at least as many bytes."""
    before, after = element_of(op.input.type), element_of(op.output.type)
    return is_float(before) and is_float(after) and (before == after or byte_width(before) < byte_width(after))


def _step(op: ElementwiseOp, ctx: Context) -> tuple[SSAValue, Array, Array] | None:
    """The operand that is computed, and what it is multiplied with before what is added; None for other layers."""
    import numpy as np

    arrays = [array_of(value, ctx) for value in (op.lhs, op.rhs)]
    if (arrays[0] is None) == (arrays[1] is None):
        return None
    is_first = arrays[0] is None
    value, held = (op.lhs, arrays[1]) if is_first else (op.rhs, arrays[0])
    assert held is not None
    if dims(value.type) != dims(op.output.type):
        return None
    number = held.astype(np.float64)
    one, zero = np.ones_like(number), np.zeros_like(number)
    kind = op.kind.data
    if kind is ElementwiseKind.SUM:
        return value, one, number
    if kind is ElementwiseKind.SUB:
        return (value, one, -number) if is_first else (value, -one, number)
    if kind is ElementwiseKind.PROD:
        return value, number, zero
    if kind is ElementwiseKind.DIV and is_first and np.all(number):
        return value, 1 / number, zero
    return None
