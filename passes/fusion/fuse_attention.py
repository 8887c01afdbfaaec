"""Two products with a softmax between them become attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.fused.access import AccessAttr, is_elementwise, iteration
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.fused_op import YieldOp, yielded
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.locations import fuse
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_name, element_of, is_float, rank
from mlirt.passes.fusion.scalar_bodies import tidy
from mlirt.passes.options import option
from mlirt.passes.remarks import applied, declined, missed


@dataclass(frozen=True)
class FuseAttentionPass(ModulePass):
    """Compute the product of queries and keys, its softmax and the product with the values in one op.

    What the first product's epilogue does (scale, mask, bias) becomes the score; roundings of scores and weights to
    half precision disappear, and a division by a number becomes a product. Between softmax and the second product there
    may be conversions, and a layer that puts zeros in place of not-a-number, for rows of which everything is masked.
    Nothing else reads the scores or the weights, and the second product has no epilogue of its own. Heads are at most
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, MatmulOp):
                    self._fuse(inner)

    def _fuse(self, second: MatmulOp) -> None:
        parts = _parts_before(second)
        if isinstance(parts, str):
            missed(second, parts)
            return
        if not self._is_narrow(parts):
            declined(second, f"no kernel for heads of this width or type (most-width={self.most_width})")
            return
        made = _attention(parts)
        applied(made)
        block = second.parent
        assert block is not None
        block.insert_op_before(made, second)
        made.output.name_hint = second.output.name_hint
        second.output.replace_all_uses_with(made.output)
        for op in (second, *parts.between, parts.softmax, parts.first):
            op.detach()
            op.erase(safe_erase=False)

    def _is_narrow(self, parts: _Parts) -> bool:
        widths = (_depth(parts.first), dims(parts.second.output.type)[-1])
        known = all(isinstance(width, int) and 0 < width <= self.most_width for width in widths)
        known = known and widths[1] % self.multiple == 0
        operands = (parts.first.lhs, parts.first.rhs, parts.second.rhs)
        return known and all(element_name(element_of(value.type)) in self.elements for value in operands)


@dataclass(frozen=True)
class _Parts:
    """The two products, the softmax, and the pointwise ops behind it; `guarded`: one of them replaces not-a-number."""

    first: MatmulOp
    softmax: SoftmaxOp
    between: tuple[PointwiseOp, ...]
    second: MatmulOp
    guarded: bool


def _parts_before(second: MatmulOp) -> _Parts | str:
    """The parts of attention that end with a product, or why there are none."""
    if second.transpose_lhs.value.data or second.extras or not _is_conversion(second.epilogue):
        return "its left operand is transposed, or it has an epilogue"
    between: list[PointwiseOp] = []
    guarded, weights = False, second.lhs
    while isinstance(op := weights.owner, PointwiseOp):
        guards = _replaces_nan(op)
        if not _is_only_for(weights, second) or not (guards or _converts(op)):
            return "what stands before it is no softmax"
        guarded |= guards
        between.append(op)
        weights = op.inputs[0]
    softmax = weights.owner
    if not isinstance(softmax, SoftmaxOp):
        return "what stands before it is no softmax"
    if not _is_along_keys(softmax) or not _is_only_for(weights, second):
        return "the softmax does not run along the keys, or its weights have other readers"
    first = softmax.input.owner
    if not isinstance(first, MatmulOp) or not _is_only_for(softmax.input, second):
        return "no product computes the scores for this softmax alone"
    same_batch = dims(first.output.type)[:-2] == dims(second.output.type)[:-2]
    fits = same_batch and is_float(first.epilogue.block.args[0].type)
    return _Parts(first, softmax, tuple(between), second, guarded) if fits else "the two products have other batches"


def _is_only_for(value: SSAValue, second: MatmulOp) -> bool:
    """Whether one op reads a value, in the block of the second product."""
    return value.has_one_use() and isinstance(value.owner, Operation) and value.owner.parent is second.parent


def _is_along_keys(op: SoftmaxOp) -> bool:
    return not op.log.value.data and op.axis.value.data == rank(op.input.type) - 1


def _converts(op: PointwiseOp) -> bool:
    """Whether an op only converts each element to another floating-point type."""
    return _is_in_place(op) and _is_conversion(op.body)


def _is_in_place(op: PointwiseOp) -> bool:
    one = len(op.inputs) == len(op.outputs) == 1
    return one and is_elementwise(op.access.data[0], dims(op.outputs[0].type))


def _is_conversion(region: Region) -> bool:
    return len(region.block.args) == 1 and _source(yielded(region)[0]) is region.block.args[0]


def _source(value: SSAValue) -> SSAValue:
    """What a value is before conversions between floating-point types."""
    while isinstance(value.owner, arith.ExtFOp | arith.TruncFOp):
        value = value.owner.input
    return value


def _replaces_nan(op: PointwiseOp) -> bool:
    """Whether an op gives zero for not-a-number, and every other element as it is."""
    if not _is_in_place(op):
        return False
    element, chosen = op.body.block.args[0], _source(yielded(op.body)[0]).owner
    if not isinstance(chosen, arith.SelectOp) or not isinstance(test := chosen.cond.owner, arith.CmpfOp):
        return False
    same = _source(test.lhs) is element and _source(test.rhs) is element
    predicate = list(arith.CMPF_COMPARISON_OPERATIONS)[test.predicate.value.data]
    return same and predicate in ("une", "uno") and _is_zero(chosen.lhs) and _source(chosen.rhs) is element


def _is_zero(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr) and owner.value.value.data == 0


def _attention(parts: _Parts) -> AttentionOp:
    first, second = parts.first, parts.second
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
    made = AttentionOp(
        (first.lhs, first.rhs, second.rhs),
        access,
        (dims(first.output.type)[-1], _depth(first)),
        second.output.type,
        _score(first),
        list(first.extras),
        zero_masked=parts.guarded,
    )
    made.location = fuse(first, parts.softmax, *parts.between, second)
    return made


def _depth(op: MatmulOp) -> Dim:
    return dims(op.lhs.type)[-2 if op.transpose_lhs.value.data else -1]


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
    for op in list(block.ops):
        if isinstance(op, arith.DivfOp):
            _multiply(op)
    tidy(block)
    return region


def _multiply(op: arith.DivfOp) -> None:
    """Multiply by one over the divisor where that is a number: every score is divided by it."""
    divisor = op.rhs.owner
    if not isinstance(divisor, arith.ConstantOp) or not isinstance(divisor.value, FloatAttr):
        return
    number, block = divisor.value.value.data, op.parent
    if number == 0 or block is None:
        return
    inverse = arith.ConstantOp(FloatAttr(1 / number, divisor.value.type))
    product = arith.MulfOp(op.lhs, inverse.result)
    block.insert_ops_before([inverse, product], op)
    op.result.replace_all_uses_with(product.result)
    block.erase_op(op)
