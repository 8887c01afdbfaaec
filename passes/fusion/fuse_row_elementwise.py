"""Fuses an elementwise op into the softmax or the normalisation before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.dialects.fused.access import AccessAttr, is_elementwise, iteration
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.scalar_builder import compute_type, conversion_region
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, rank, tensor, with_dims
from mlirt.passes.fusion.epilogues import reads_in_place
from mlirt.passes.fusion.scalar_bodies import append, tidy, work
from mlirt.passes.fusion.view_composition import axis_groups
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule, some

Rows = SoftmaxOp | NormalizationOp
_Read = tuple[SSAValue, AccessAttr]
ROWS = op(Rows).named("rows")


@dataclass(frozen=True)
class FuseRowElementwisePass(RulePass):
    """Compute what follows a softmax or a normalisation element by element in its launch, also behind a reshape.

    Nobody else may read the result. Other operands, at most `max-extras`, are read element by element or broadcast;
    behind a reshape those are reshaped too. Where rows are the last axis, bodies of more than `most-work` instructions
    stay apart, unless that is 0: on a CPU lanes run along such a row, and a launch over all elements has longer loops.

    Before:

        %p = fused.softmax %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>
        %y = fused.pointwise %p, %b [d0, d1], [d1] { tanh(p + b) } : tensor<4x9xf32>

    After:

        %y = fused.softmax %x, %b {axis = 1 : i64, access = [d1]} : (..) -> tensor<4x9xf32> { tanh(share + b) }
    """

    name = "fuse-row-elementwise"

    max_extras: int = option(6, at_least=0)
    most_work: int = option(0, at_least=0)

    @rule(op(PointwiseOp, inputs=some(ROWS | op(ViewOp, ROWS).named("view"))).named("consumer"))
    def fuse(self, m: Match, consumer: PointwiseOp, rows: Rows, view: ViewOp | None) -> Outcome:
        if isinstance(rows, NormalizationOp) and rows.further:
            return "{rows} has several results"
        value = rows.output if view is None else view.output
        extras = self._extras(consumer, value, rows)
        if isinstance(extras, str):
            return extras
        for other, _ in extras:
            if isinstance(other.owner, ViewOp) and other.owner.parent is None:
                m.insert(other.owner, consumer)
        result = with_dims(consumer.outputs[0].type, dims(rows.output.type))
        made = m.insert(_ended(rows, consumer, value, extras, result), rows, consumer)
        return made if view is None else m.insert(ViewOp(made.results[0], consumer.outputs[0].type), consumer)

    def _extras(self, consumer: PointwiseOp, value: SSAValue, rows: Rows) -> list[_Read] | str:
        """What else the consumer reads, over the dimensions of the rows; or why it cannot end them."""
        shape, before = dims(value.type), dims(rows.output.type)
        reads = list(zip(consumer.inputs, consumer.access, strict=True))
        if len(consumer.outputs) != 1:
            return "it has several results"
        if shape != dims(consumer.outputs[0].type) or not all(is_elementwise(a, shape) for v, a in reads if v is value):
            return "it does not read {rows} element by element"
        if any(isinstance(inner, IndexOp) for inner in consumer.body.block.ops):
            return "what it computes depends on the position"
        cost = work(consumer.body)
        if 0 < self.most_work < cost and rank(rows.output.type) - 1 in _row_axes(rows):
            return f"{{rows}} has rows along memory, and {cost} instructions are more than {self.most_work} (most-work)"
        others = [read for read in reads if read[0] is not value]
        if len(others) > self.max_extras:
            return f"{{rows}} would have {len(others)} extra operands, more than {self.max_extras}"
        if not all(reads_in_place(access) for _, access in others):
            return "another operand is transposed or sliced"
        moved = [_reshaped(read, before, shape) for read in others]
        found = [one for one in moved if one is not None]
        return found if len(found) == len(moved) else "another operand is not broadcast along what a reshape joins"


def _row_axes(rows: Rows) -> Sequence[int]:
    return [rows.axis.value.data] if isinstance(rows, SoftmaxOp) else integers(rows.axes)


def _reshaped(read: _Read, before: Sequence[Dim], after: Sequence[Dim]) -> _Read | None:
    """An operand over dimensions `after` as one over those before the reshape, as a type that a view of it has."""
    value, access = read
    if tuple(before) == tuple(after):
        return read
    sizes, indices = dims(value.type), access.indices()
    if any(index == 0 and size != 1 for index, size in zip(indices, sizes, strict=True)):
        return None
    read_axes = {axis: size for index, size in zip(indices, sizes, strict=True) for axis in _axes(index, len(after))}
    if any(size != after[axis] for axis, size in read_axes.items()):
        return None
    lengths: list[Dim] = []
    places: list[Dim] = []
    covered = 0
    for olds, news in axis_groups(before, after):
        covered += len(news)
        long = [axis for axis in news if after[axis] != 1]
        known = [axis for axis in long if axis in read_axes]
        if known and known != long:
            return None
        if known:
            lengths += [before[axis] for axis in olds]
            places += [iteration(axis) for axis in olds]
    if covered != len(after):
        return None
    access = AccessAttr.of(places)
    if tuple(lengths) == sizes:
        return value, access
    view = ViewOp(value, tensor(element_of(value.type), lengths))
    return view.output, access


def _axes(index: Dim, rank: int) -> list[int]:
    return [axis for axis in range(rank) if index == iteration(axis)]


def _ended(rows: Rows, consumer: PointwiseOp, value: SSAValue, extras: Sequence[_Read], result: Attribute) -> Operation:
    """The rows with the consumer's body behind them, without a place."""
    if isinstance(rows, SoftmaxOp):
        return _ended_softmax(rows, consumer, value, extras, result)
    return _ended_normalization(rows, consumer, value, extras, result)


def _ended_softmax(
    rows: SoftmaxOp, consumer: PointwiseOp, value: SSAValue, extras: Sequence[_Read], result: Attribute
) -> SoftmaxOp:
    old = rows.epilogue
    if old is None:
        element = element_of(rows.output.type)
        epilogue = conversion_region(compute_type(element), element)
    else:
        epilogue = rows.detach_region(old)
    block = epilogue.block
    arguments = [block.insert_arg(element_of(other.type), len(block.args)) for other, _ in extras]
    _append(block, consumer, value, arguments)
    values, access = [other for other, _ in extras], [one for _, one in extras]
    made = SoftmaxOp(
        rows.input,
        rows.axis.value.data,
        bool(rows.log.value.data),
        extras=[*rows.extras, *values],
        access=[*rows.access, *access],
        result=result,
        epilogue=epilogue,
    )
    made.attributes = dict(rows.attributes)
    return made


def _ended_normalization(
    rows: NormalizationOp, consumer: PointwiseOp, value: SSAValue, extras: Sequence[_Read], result: Attribute
) -> NormalizationOp:
    count = len(rows.inputs)
    body, *stages = [rows.detach_region(region) for region in list(rows.regions)]
    arguments: list[SSAValue] = []
    for position, (other, _) in enumerate(extras, count):
        element = element_of(other.type)
        arguments.append(body.block.insert_arg(element, position))
        for number, stage in enumerate(stages):  # every second one has the accumulator in front
            stage.block.insert_arg(element, position + number % 2)
    _append(body.block, consumer, value, arguments)
    made = NormalizationOp(
        [*rows.inputs, *(other for other, _ in extras)],
        [*rows.access, *(one for _, one in extras)],
        integers(rows.axes),
        [kind.data for kind in rows.kinds],
        result,
        body,
        stages,
        rows.reduced.dims(),
    )
    made.attributes = dict(rows.attributes)
    return made


def _append(block: Block, consumer: PointwiseOp, value: SSAValue, arguments: Sequence[SSAValue]) -> None:
    """Let a region go on with the consumer's body, which reads these for its other operands, in their order."""
    last = block.last_op
    assert last is not None
    result, rest = last.operands[0], iter(arguments)
    append(block, consumer.body, [result if other is value else next(rest) for other in consumer.inputs])
    tidy(block)


__all__ = ["FuseRowElementwisePass"]
