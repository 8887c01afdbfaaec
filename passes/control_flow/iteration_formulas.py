"""Whole numbers in a counted loop, as formulas of sizes and of the number of the iteration."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.constant_values import array_of, splat_of
from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.regions import source_of_index
from mlirt.dialects.symbolic import Dim, Expr, maximum, minimum, sym
from mlirt.dialects.tensor_types import dims, element_count, element_of, is_unknown
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.shape import ShapeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.layer_builder import LayerBuilder

ITERATION = sym("number of the iteration")


class IterationFormulas:
    """What integers of a loop are, and how often it goes round: `count`, None where no size says so."""

    def __init__(self, loop: scf.ForOp, ctx: Context) -> None:
        self.loop, self.ctx = loop, ctx
        is_plain = self._index(loop.lb) == 0 and self._index(loop.step) == 1
        self.count = self._count() if is_plain else None

    def number(self, value: SSAValue) -> Dim | None:
        """The formula of an integer tensor of one element; None where there is none."""
        symbol = _defined_by(value)
        if symbol is not None:
            return symbol
        array = array_of(value, self.ctx)
        if array is not None:
            return int(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "iu" else None
        owner = value.owner
        if isinstance(owner, tensor.FromElementsOp):
            return self._of_index(owner)
        if isinstance(owner, Operation) and _passes_on(owner):
            return self.number(owner.operands[0])
        if isinstance(owner, GatherOp) and isinstance(owner.data.owner, ShapeOp):
            return self._length(owner, owner.data.owner)
        return self._binary(owner) if isinstance(owner, ElementwiseOp) else None

    def iterations(self, made: LayerBuilder) -> SSAValue:
        """The trip count as a 0-D int64 tensor."""
        source = source_of_index(self.loop.ub)
        return made.number(source) if isinstance(source, int) else source

    def _of_index(self, op: tensor.FromElementsOp) -> Dim | None:
        cast = op.operands[0].owner
        if not isinstance(cast, arith.IndexCastOp):
            return None
        return ITERATION if cast.input is self.loop.body.block.args[0] else self._index(cast.input)

    def _length(self, op: GatherOp, shape: ShapeOp) -> Dim | None:
        axis = self.number(op.indices)
        sizes = dims(shape.input.type)
        if op.mode.data is not GatherMode.DEFAULT or not isinstance(axis, int) or not -len(sizes) <= axis < len(sizes):
            return None
        return None if is_unknown(sizes[axis]) else sizes[axis]

    def _binary(self, op: ElementwiseOp) -> Dim | None:
        left, right = self.number(op.lhs), self.number(op.rhs)
        if left is None or right is None:
            return None
        match op.kind.data:
            case ElementwiseKind.SUM:
                return left + right
            case ElementwiseKind.SUB:
                return left - right
            case ElementwiseKind.MAX:
                return _not_negative(left, right) or maximum(left, right)
            case ElementwiseKind.MIN:
                return minimum(left, right)
            case _:
                return None

    def _index(self, value: SSAValue) -> int | None:
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
            return owner.value.value.data
        return None

    def _count(self) -> Dim | None:
        try:
            source = source_of_index(self.loop.ub)
        except ValueError:
            return None
        if isinstance(source, int):
            return max(source, 0)
        found = self.number(source)
        if found is not None:
            return max(found, 0) if isinstance(found, int) else found
        return self._counted_elsewhere(_root(source))

    def _counted_elsewhere(self, root: SSAValue) -> Dim | None:
        """The size that takes its value from the number that limits the loop."""
        op = self.loop.prev_op
        while op is not None:
            if isinstance(op, DefineSizeOp) and op.count is not None and _root(op.count) is root:
                return sym(op.symbol.data)
            op = op.prev_op
        return None


def _defined_by(value: SSAValue) -> Dim | None:
    for use in value.uses:
        if isinstance(use.operation, DefineSizeOp):
            return sym(use.operation.symbol.data)
    return None


def _passes_on(op: Operation) -> bool:
    """Whether the result is the number of the operand."""
    if isinstance(op, IdentityOp):
        return all(isinstance(element_of(value.type), IntegerType) for value in (op.input, op.output))
    return isinstance(op, ShuffleOp) and element_count(op.output.type) == 1


def _not_negative(left: Dim, right: Dim) -> Dim | None:
    """The larger one of zero and a size, which is no negative number."""
    for size, other in ((left, right), (right, left)):
        if other == 0 and isinstance(size, Expr) and size == sym(str(size)):
            return size
    return None


def _root(value: SSAValue) -> SSAValue:
    """Where a number comes from that was made an int64, reshaped, or kept from being negative."""
    owner = value.owner
    while isinstance(owner, Operation):
        if _passes_on(owner):
            value = owner.operands[0]
        elif isinstance(owner, ElementwiseOp) and owner.kind.data is ElementwiseKind.MAX and splat_of(owner.rhs) == 0:
            value = owner.lhs
        else:
            break
        owner = value.owner
    return value
