"""Two products with a softmax between them become attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr, is_elementwise, iteration
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.fused_op import YieldOp, yielded
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_name, element_of, is_float, rank, with_element
from mlirt.passes.fusion.access_composition import identity_access
from mlirt.passes.fusion.scalar_bodies import tidy, unconverted
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, op, repeated, rule


def _keeps_weights(found: PointwiseOp) -> bool:
    """Whether an op behind a softmax converts the weights, or replaces not-a-number in them."""
    return _converts(found) or _replaces_nan(found)


def _converts(found: PointwiseOp) -> bool:
    """Whether an op only converts each element to another floating-point type."""
    return _is_in_place(found) and _is_conversion(found.body)


def _is_in_place(found: PointwiseOp) -> bool:
    one = len(found.inputs) == len(found.outputs) == 1
    return one and is_elementwise(found.access.data[0], dims(found.outputs[0].type))


def _is_conversion(region: Region) -> bool:
    return len(region.block.args) == 1 and unconverted(yielded(region)[0]) is region.block.args[0]


def _replaces_nan(found: PointwiseOp) -> bool:
    """Whether an op gives zero for not-a-number, and every other element as it is."""
    if not _is_in_place(found):
        return False
    element, chosen = found.body.block.args[0], unconverted(yielded(found.body)[0]).owner
    if not isinstance(chosen, arith.SelectOp) or not isinstance(test := chosen.cond.owner, arith.CmpfOp):
        return False
    same = unconverted(test.lhs) is element and unconverted(test.rhs) is element
    predicate = list(arith.CMPF_COMPARISON_OPERATIONS)[test.predicate.value.data]
    return same and predicate in ("une", "uno") and _is_zero(chosen.lhs) and unconverted(chosen.rhs) is element


def _is_zero(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr) and owner.value.value.data == 0


NO_SOFTMAX = "what stands before it is no softmax"
FIRST = op(MatmulOp).named("first").missing("no product computes the scores for this softmax")
SOFTMAX = (
    op(SoftmaxOp, FIRST, ..., log=False)
    .where(lambda found: found.axis.value.data == rank(found.input.type) - 1, "the softmax does not run along the keys")
    .named("softmax")
    .missing(NO_SOFTMAX)
)
WEIGHTS = repeated(
    lambda inner: op(PointwiseOp, inner).where(_keeps_weights, NO_SOFTMAX).collected("between"), SOFTMAX, least=0
)


@dataclass(frozen=True)
class FuseAttentionPass(RulePass):
    """Compute the product of queries and keys, its softmax and the product with the values in one op.

    What the first product's epilogue does (scale, mask, bias) becomes the score; roundings of scores and weights to
    half precision disappear, and a division by a number becomes a product. Between softmax and the second product there
    may be conversions, and a layer that puts zeros in place of not-a-number, for rows of which everything is masked.
    Nothing else reads the scores or the weights. What the second product's epilogue does beyond a conversion, such as a
    quantisation, becomes a pointwise op behind the attention. Heads are at most
    `most-width` elements wide, those of the values a multiple of `multiple`, of a type in `elements`: for others there
    is no kernel that keeps the scores out of memory.

    Before:

        %s = fused.matmul %q, %k, %m {transpose_rhs = true} { acc * 0.125 + m } : tensor<1x4x64x64xf16>
        %p = fused.softmax %s {axis = 3}
        %y = fused.matmul %p, %v : tensor<1x4x64x32xf16>

    After:

        %y = fused.attention %q, %k, %v, %m {reduced = #trt.dims<["64", "32"]>} { s * 0.125 + m }
    """

    name = "fuse-attention"

    most_width: int = option(128, at_least=1)
    multiple: int = option(1, at_least=1)
    elements: tuple[str, ...] = ("float16", "bfloat16")

    @rule(op(MatmulOp, WEIGHTS, ...).named("second"))
    def fuse(
        self, m: Match, first: MatmulOp, softmax: SoftmaxOp, between: tuple[PointwiseOp, ...] | None, second: MatmulOp
    ) -> Outcome:
        conversions = between or ()
        if second.transpose_lhs.value.data:
            return "its left operand is transposed"
        if not all(one.results[0].has_one_use() for one in (first, softmax, *conversions)):
            return "scores or weights are read twice"
        same_batch = dims(first.output.type)[:-2] == dims(second.output.type)[:-2]
        if not same_batch or not is_float(first.epilogue.block.args[0].type):
            return "the two products have other batches"
        if not self._is_narrow(first, second):
            return f"no kernel for heads of this width or type (most-width={self.most_width})"
        zero_masked = any(map(_replaces_nan, conversions))
        if not second.extras and _is_conversion(second.epilogue):
            return m.insert(_attention(first, second, second.output.type, zero_masked=zero_masked))
        result = with_element(second.output.type, element_of(second.rhs.type))
        m.note = "what the second product ends with stays behind it"
        attention = m.about = m.insert(_attention(first, second, result, zero_masked=zero_masked))
        return m.insert(_epilogue_of(second, attention), second)

    def _is_narrow(self, first: MatmulOp, second: MatmulOp) -> bool:
        widths = (_depth(first), dims(second.output.type)[-1])
        known = all(isinstance(width, int) and 0 < width <= self.most_width for width in widths)
        known = known and widths[1] % self.multiple == 0
        operands = (first.lhs, first.rhs, second.rhs)
        return known and all(element_name(element_of(value.type)) in self.elements for value in operands)


def _epilogue_of(second: MatmulOp, attention: AttentionOp) -> PointwiseOp:
    """The epilogue of the second product, applied to what attention gives."""
    body = second.epilogue.clone()
    wide, element = body.block.args[0], element_of(attention.output.type)
    if wide.type != element:
        given = body.block.insert_arg(element, 0)
        widened = arith.ExtFOp(given, wide.type)  # pyright: ignore[reportArgumentType]
        first = body.block.first_op
        assert first is not None
        body.block.insert_op_before(widened, first)
        wide.replace_all_uses_with(widened.result)
        body.block.erase_arg(wide)
        tidy(body.block)
    access = [identity_access(rank(second.output.type)), *second.access]
    return PointwiseOp([attention.output, *second.extras], access, [second.output.type], body)


def _attention(first: MatmulOp, second: MatmulOp, result: Attribute, *, zero_masked: bool) -> AttentionOp:
    batch = dims(second.output.type)[:-2]
    query, key, depth, column = (len(batch) + place for place in range(4))
    left = (depth, query) if first.transpose_lhs.value.data else (query, depth)
    right = (key, depth) if first.transpose_rhs.value.data else (depth, key)
    values = (column, key) if second.transpose_rhs.value.data else (key, column)
    access = [
        _access(first.lhs, batch, left),
        _access(first.rhs, batch, right),
        _access(second.rhs, batch, values),
        *first.access,
    ]
    return AttentionOp(
        (first.lhs, first.rhs, second.rhs),
        access,
        (dims(first.output.type)[-1], _depth(first)),
        result,
        _score(first),
        list(first.extras),
        zero_masked=zero_masked,
    )


def _depth(product: MatmulOp) -> Dim:
    return dims(product.lhs.type)[-2 if product.transpose_lhs.value.data else -1]


def _access(value: SSAValue, batch: Sequence[Dim], axes: tuple[int, int]) -> AccessAttr:
    """A matrix of a batch, of which dimensions of length 1 are repeated."""
    sizes = dims(value.type)[:-2]
    places = [
        0 if size == 1 and extent != 1 else iteration(a)
        for a, (size, extent) in enumerate(zip(sizes, batch, strict=True))
    ]
    return AccessAttr.of([*places, *(iteration(axis) for axis in axes)])


def _score(first: MatmulOp) -> Region:
    """The epilogue of the first product, which ends in the type of the accumulator."""
    region = first.epilogue.clone()
    block, last = region.block, region.block.last_op
    assert isinstance(last, YieldOp)
    wide: Attribute = block.args[0].type
    value = last.values[0]
    if isinstance(value.owner, arith.TruncFOp) and value.owner.input.type == wide:
        value = value.owner.input
    elif value.type != wide:
        block.insert_op_before(converted := arith.ExtFOp(value, wide), last)  # pyright: ignore[reportArgumentType]
        value = converted.result
    block.erase_op(last)
    block.add_op(YieldOp(operands=[[value]]))
    for scalar in list(block.ops):
        if isinstance(scalar, arith.DivfOp):
            _multiply(scalar)
    tidy(block)
    return region


def _multiply(division: arith.DivfOp) -> None:
    """Multiply by one over the divisor where that is a number: every score is divided by it."""
    divisor = division.rhs.owner
    if not isinstance(divisor, arith.ConstantOp) or not isinstance(divisor.value, FloatAttr):
        return
    number, block = divisor.value.value.data, division.parent
    if number == 0 or block is None:
        return
    inverse = arith.ConstantOp(FloatAttr(1 / number, divisor.value.type))
    product = arith.MulfOp(division.lhs, inverse.result)
    block.insert_ops_before([inverse, product], division)
    division.result.replace_all_uses_with(product.result)
    block.erase_op(division)
