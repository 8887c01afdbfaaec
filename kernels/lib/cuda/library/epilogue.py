"""Recognises epilogues that libraries offer: a bias along one dimension, an activation, both, or nothing at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp
from mlirt.dialects.fused.scalar_activations import FORMULAS
from mlirt.dialects.fused.scalar_builder import Scalars, arguments_of, yield_as
from mlirt.dialects.kernel.library_op import LibraryActivation
from mlirt.dialects.tensor_types import element_of, is_float
from mlirt.dialects.trt.activation import ActivationKind

Tree: TypeAlias = "tuple[object, ...]"

_ACTIVATIONS = {
    LibraryActivation.NONE: None,
    LibraryActivation.RELU: ActivationKind.RELU,
    LibraryActivation.GELU_TANH: ActivationKind.GELU_TANH,
}
_COMMUTE = frozenset({"arith.addf", "arith.mulf", "arith.maximumf", "arith.addi"})


@dataclass(frozen=True)
class LibraryEpilogue:
    """What is done with a sum: a bias is added where there is one, then comes the activation."""

    activation: LibraryActivation
    bias: SSAValue | None = None
    access: AccessAttr | None = None


def library_epilogue(op: ConvolutionOp | MatmulOp) -> LibraryEpilogue | None:
    """The epilogue of an op where it is one that libraries have; sums of integers have none but the sum itself."""
    region, result, extras = op.epilogue, element_of(op.output.type), op.extras
    start = region.block.args[0].type
    if len(extras) > 1 or (start != f32 and (extras or start != result)):
        return None
    elements = [element_of(value.type) for value in extras]
    found = _tree(region)
    kinds = [kind for kind in _ACTIVATIONS if start == f32 or kind is LibraryActivation.NONE]
    for kind in kinds:
        if _tree(_region(kind, [start, *elements], result)) == found:
            return LibraryEpilogue(kind, extras[0], op.access.data[0]) if extras else LibraryEpilogue(kind)
    return None


def _region(kind: LibraryActivation, elements: list[Attribute], result: Attribute) -> Region:
    """What the compiler writes for a bias and an activation."""
    block = Block()
    accumulators = Scalars(block, elements[0])
    total, *others = arguments_of(block, elements)
    for value, element in zip(others, elements[1:], strict=True):
        total = accumulators.add(total, accumulators.cast(value, element))
    activation = _ACTIVATIONS[kind]
    if activation is not None:
        assert is_float(elements[0])
        total = FORMULAS[activation](accumulators, total, 0.0, 0.0)
    yield_as(accumulators, total, result)
    return Region(block)


def _tree(region: Region) -> Tree:
    """The yielded expression, the same for equal expressions in whatever order their ops stand."""
    last = region.block.last_op
    assert last is not None
    known: dict[SSAValue, Tree] = {value: ("argument", place) for place, value in enumerate(region.block.args)}

    def tree(value: SSAValue) -> Tree:
        if value not in known:
            op = value.owner
            assert isinstance(op, Operation)
            parts = [tree(operand) for operand in op.operands]
            if op.name in _COMMUTE:
                parts.sort(key=str)
            known[value] = (op.name, str(op.properties), *parts)
        return known[value]

    return tuple(tree(value) for value in last.operands)
