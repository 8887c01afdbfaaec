"""Fuses a reduction into the softmax or the normalisation before it, whose rows it reduces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Block, Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.fused_op import IndexOp, YieldOp, copy_region, region_with
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, element_of, rank
from mlirt.passes.fusion.scalar_bodies import tidy
from mlirt.passes.fusion.softmax_rows import normalization_of
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule, some

Rows = SoftmaxOp | NormalizationOp
_Read = tuple[SSAValue, AccessAttr]


@dataclass(frozen=True)
class FuseRowsReductionPass(RulePass):
    """Let a softmax or a normalisation go on with a reduction of just its rows, so that these never are in memory.

    The reduction is one more stage of the normalisation, which has one element for each row then. Nobody else may read
    the rows. Rows of more than `longest` elements, or of unknown length, stay apart.

    Before:

        %p = fused.softmax %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>
        %y = fused.reduction max(%p, %b) [d0, d1] [d1] over 9 { p - b } : (..) -> tensor<4xf32>

    After:

        %y = fused.normalization %x, %b {axes = [1], kinds = [max, add, max], reduced = 9} {m2} {x} {m} {exp(x - m)} {t}
             {exp(x - m) / t - b} {m2}
    """

    name = "fuse-rows-reduction"

    longest: int = option(16384, at_least=1)

    @rule(op(ReductionOp, inputs=some(op(Rows).named("rows"))).named("reduction"))
    def fuse(self, m: Match, reduction: ReductionOp, rows: Rows) -> Outcome:
        regions = [*reduction.regions, *rows.regions]
        if any(isinstance(inner, IndexOp) for region in regions if region.blocks for inner in region.block.ops):
            return "what is computed depends on the position"
        if isinstance(rows, NormalizationOp) and rows.reduced.dims():
            return "{rows} has one element for each row already"
        if isinstance(rows, NormalizationOp) and rows.further:
            return "{rows} has several results"
        places = _places(reduction, rows)
        if isinstance(places, str):
            return places
        length = product(reduction.reduced.dims())
        if not isinstance(length, int) or not 1 < length <= self.longest:
            return f"rows are longer than {self.longest}, or of unknown length"
        whole = normalization_of(rows) if isinstance(rows, SoftmaxOp) else rows
        made = _reduced(reduction, whole, rows.output, places)
        if whole is not rows:
            whole.erase()  # it was never put anywhere, but reads the operands
        return m.insert(made, rows, reduction)


def _places(reduction: ReductionOp, rows: Rows) -> Mapping[str, Dim] | str:
    """The iteration dimensions of the rows in those of the reduction, or why it does not reduce just these rows."""
    value, reads = rows.output, list(zip(reduction.inputs, reduction.access, strict=True))
    found = {access for read, access in reads if read is value}
    if len(found) != 1 or value in reduction.extras:
        return "it reads {rows} in several ways"
    (access,), sizes = found, dims(value.type)
    axes = [rows.axis.value.data] if isinstance(rows, SoftmaxOp) else integers(rows.axes)
    kept, space = rank(reduction.output.type), (*dims(reduction.output.type), *reduction.reduced.dims())
    names = {iteration(axis): axis for axis in range(len(space))}
    places = dict[str, Dim]()
    met = set[int]()
    for axis, (index, size) in enumerate(zip(access.indices(), sizes, strict=True)):
        if size == 1:
            places[f"d{axis}"] = 0
            continue
        if index not in names or names[index] in met or space[names[index]] != size:
            return "it reads a part of {rows}, or another order of it"
        met.add(names[index])
        if (names[index] >= kept) != (axis in axes):
            return "it reduces other rows than {rows} has"
        places[f"d{axis}"] = index
    missing = [axis for axis in range(len(space)) if axis not in met and space[axis] != 1]
    return "it repeats {rows}" if missing else places


def _reduced(
    reduction: ReductionOp, rows: NormalizationOp, value: SSAValue, places: Mapping[str, Dim]
) -> NormalizationOp:
    """The normalisation with the reduction as its last stage, without a place."""
    others: list[_Read] = [
        read for read in zip(reduction.inputs, reduction.access, strict=True) if read[0] is not value
    ]
    extras: list[_Read] = list(zip(reduction.extras, reduction.extra_access, strict=True))
    own = [access.substituted(places) for access in rows.access]
    inputs, access = (
        [*rows.inputs, *(one for one, _ in (*others, *extras))],
        [*own, *(at for _, at in (*others, *extras))],
    )
    given, count = [element_of(one.type) for one in inputs], len(rows.inputs)
    stages, totals = list[Region](), list[Attribute]()
    for number, region in enumerate(rows.stages):
        first = [region.block.args[0].type] if number % 2 else []
        taken = [*range(len(first) + count), *range(len(first) + len(given), len(first) + len(given) + len(totals))]
        stages.append(region_with(region, [*first, *given, *totals], taken))
        if number % 2:
            totals.append(_yielded(region))
    stages.append(_elements(reduction, rows, value, [*given, *totals], count))
    accumulator = reduction.epilogue.block.args[0].type
    taken = [0, *range(1 + count + len(others), 1 + len(given))]
    stages.append(region_with(reduction.epilogue, [accumulator, *given, *totals], taken))
    body = Block(arg_types=[*given, *totals, element_of(reduction.output.type)])
    body.add_op(YieldOp(operands=[[body.args[-1]]]))
    kinds = [*(kind.data for kind in rows.kinds), reduction.kind.data]
    kept, lengths = rank(reduction.output.type), reduction.reduced.dims()
    axes = range(kept, kept + len(lengths))
    return NormalizationOp(inputs, access, axes, kinds, reduction.output.type, Region(body), stages, lengths)


def _elements(
    reduction: ReductionOp, rows: NormalizationOp, value: SSAValue, types: Sequence[Attribute], count: int
) -> Region:
    """What the reduction combines: its body behind that of the rows."""
    block = Block(arg_types=types)
    totals = block.args[len(types) - len(rows.kinds) :]
    (element,) = copy_region(rows.body, [*block.args[:count], *totals], block.add_op)
    rest = iter(block.args[count:])
    arguments = [element if read is value else next(rest) for read in reduction.inputs]
    block.add_op(YieldOp(operands=[copy_region(reduction.body, arguments, block.add_op)]))
    tidy(block)
    return Region(block)


def _yielded(region: Region) -> Attribute:
    last = region.block.last_op
    assert last is not None
    return last.operands[0].type


__all__ = ["FuseRowsReductionPass"]
