"""Turns the search for the place of one extreme element into a reduction."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, f32, i8, i16, i32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.fused_op import YieldOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.scalar_builder import Scalars
from mlirt.dialects.fused.topk import ExtremeKind, TopkOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, is_float, is_half
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class ConvertTopkToReductionPass(RulePass):
    """Look for the place of the largest or smallest element of a row by a maximum of whole numbers.

    A number has the element above, as an integer in the order of the elements, and its place below, counted down: the
    largest one is that of the first of the largest elements. NaN comes before all numbers, -0.0 is equal to 0.0.
    Halves in rows of at most 65536 elements take 32 bits, others 64. Only places that are read without the elements.

    Before:

        %_, %i = fused.topk max %x {axis = 1 : i64} : (tensor<4x100xf32>) -> (tensor<4x1xf32>, tensor<4x1xi64>)

    After:

        %i = fused.reduction max(%x) [d0, d2] over 100 {order of x << 32 | 2**32 - 1 - d2} {2**32 - 1 - low half}
    """

    name = "convert-topk-to-reduction"

    @rule(op(TopkOp).named("topk"))
    def convert(self, m: Match, topk: TopkOp) -> Outcome:
        element, axis, shape = element_of(topk.input.type), topk.axis.value.data, dims(topk.input.type)
        is_lone = topk.values.first_use is None and topk.indices.first_use is not None
        if topk.count() != 1 or not is_lone or topk.normalization is not None:
            return None
        if not _has_order(element):
            return "its elements are unsigned, or have other than 8, 16 or 32 bits"
        packed = _packed(element, shape[axis])
        access = AccessAttr.of([iteration(len(shape) if place == axis else place) for place in range(len(shape))])
        regions = _body(topk, packed), _epilogue(topk, packed)
        made = m.insert(ReductionOp(ReduceKind.MAX, [topk.input], [access], [shape[axis]], topk.indices.type, *regions))
        topk.indices.replace_all_uses_with(made.output)  # nothing reads the other result, nor the layer any more
        return topk


@dataclass(frozen=True)
class _Packed:
    """A whole number with the order of an element in its upper half and a place in its lower one."""

    whole: IntegerType
    order: IntegerType

    @property
    def places(self) -> int:
        """The number whose bits are the lower half."""
        return (1 << self.whole.width.data // 2) - 1


def _has_order(element: Attribute) -> bool:
    """Whether the order of elements is that of signed integers of at most 32 bits."""
    if is_half(element) or element == f32:
        return True
    return element in (i8, i16, i32)


def _packed(element: Attribute, length: Dim) -> _Packed:
    short = is_half(element) and isinstance(length, int) and length <= 1 << 16
    return _Packed(i32, i16) if short else _Packed(i64, i32)


def _body(topk: TopkOp, packed: _Packed) -> Region:
    """The packed number of an element."""
    element, axes = element_of(topk.input.type), len(dims(topk.input.type))
    block = Block(arg_types=[element])
    whole = Scalars(block, packed.whole)
    value = block.args[0]
    order = _order_of_float(block, value, packed) if is_float(element) else whole.cast(value, element)
    if topk.kind.data is ExtremeKind.MIN:
        order = whole.add_op(arith.XOrIOp(order, whole.constant(-1)))
    half = whole.constant(packed.whole.width.data // 2)
    above = whole.add_op(arith.ShLIOp(order, half))
    below = whole.sub(whole.constant(packed.places), whole.index(axes))
    block.add_op(YieldOp(operands=[[whole.add_op(arith.OrIOp(above, below))]]))
    return Region(block)


def _order_of_float(block: Block, value: SSAValue, packed: _Packed) -> SSAValue:
    """Its bits, with those below the sign flipped for negative numbers; NaN is above all."""
    number, whole, source = Scalars(block, f32), Scalars(block, packed.whole), value.type
    wide = number.add(number.cast(value, source), number.constant(0.0))  # -0.0 + 0.0 is 0.0
    stored = Scalars(block, source).cast(wide, f32) if packed.order == i16 else wide
    bits = whole.cast(number.add_op(arith.BitcastOp(stored, packed.order)), packed.order)
    sign = whole.add_op(arith.ShRSIOp(bits, whole.constant(packed.order.width.data - 1)))
    most = whole.constant((1 << packed.order.width.data - 1) - 1)
    order = whole.add_op(arith.XOrIOp(bits, whole.add_op(arith.AndIOp(sign, most))))
    return whole.select(number.compare("ne", wide, wide), most, order)


def _epilogue(topk: TopkOp, packed: _Packed) -> Region:
    """The place in a packed number."""
    block = Block(arg_types=[packed.whole])
    whole, result = Scalars(block, packed.whole), element_of(topk.indices.type)
    below = whole.add_op(arith.AndIOp(block.args[0], whole.constant(packed.places)))
    place = whole.sub(whole.constant(packed.places), below)
    block.add_op(YieldOp(operands=[[Scalars(block, result).cast(place, packed.whole)]]))
    return Region(block)
