"""Splits normalizations of long rows across memory into reductions, which have kernels that read memory in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.fused_op import IndexOp, region_with
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import Dim, product, symbols
from mlirt.dialects.target import Target
from mlirt.dialects.tensor_types import dims, element_of, strides, tensor
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class SplitNormalizationsPass(RulePass):
    """Compute the totals of a `fused.normalization` and its elements in launches of their own, where its rows lie
    across memory and no threads hold them.

    Neighbours in memory belong to different rows then, as in an instance normalization of a tensor with its channels
    last. A block that has a row reads a sector of memory for each element, once for each total and once more;
    reductions across rows, and the pointwise op behind them, read sectors whole. Rows that the threads of a block or
    of a cluster hold are read once, and stay. So do rows of unknown length.

    Before: `%y = fused.normalization %x {access = [d0, d1, d2], axes = [2], kinds = [add]} : (tensor<2x32x2097152xf16,
    order = [0, 2, 1]>) -> ..`
    After: `%t = fused.reduction add(%x) {access = [d0, d1, d2], reduced = [2097152]} : (..) -> tensor<2x32xf32>`,
    `%y = fused.pointwise %x, %t {access = [d0, d1, d2], [d0, d1]}`
    """

    name = "split-normalizations"

    device: str = ""

    @rule(op(NormalizationOp).named("normalization"))
    def split(self, m: Match, normalization: NormalizationOp) -> Outcome:
        rows, length = _sizes(normalization, m)
        if normalization.reduced.dims() or not isinstance(length, int) or _has_indices(normalization):
            return None
        if Target("cuda", device=self.device).gpu.holds_rows(rows, length):
            return "the threads of a block or cluster hold its rows"
        if not _crosses_rows(normalization):
            return "its rows lie along memory"
        parts = _Parts(normalization)
        for one in parts.reductions():
            m.insert(one)
        return m.insert(parts.elements())


def _sizes(normalization: NormalizationOp, m: Match) -> tuple[int, Dim]:
    """How many rows there are as a rule, and how long they are."""
    space, axes = normalization.space(), integers(normalization.axes)
    rows = product(size for axis, size in enumerate(space) if axis not in axes)
    return typical(rows, m.analysis(typical_values)), product(space[axis] for axis in axes)


def _has_indices(normalization: NormalizationOp) -> bool:
    return any(isinstance(inner, IndexOp) for region in normalization.regions for inner in region.block.ops)


def _crosses_rows(normalization: NormalizationOp) -> bool:
    """Whether neighbours in memory belong to different rows: in the result, and in all that differs within a row."""
    within = {f"d{axis}" for axis in integers(normalization.axes)}
    whole = AccessAttr.of([iteration(axis) for axis in range(len(normalization.space()))])
    differing = [
        (value, access)
        for number, (value, access) in enumerate(zip(normalization.inputs, normalization.access, strict=True))
        if not normalization.is_whole_row(number)
    ]
    for value, access in [*differing, *((result, whole) for result in normalization.results)]:
        sizes, steps = dims(value.type), strides(value.type)[0]
        next_to = [
            index for index, size, step in zip(access.indices(), sizes, steps, strict=True) if step == 1 and size != 1
        ]
        if not next_to or not symbols(next_to[0]) or symbols(next_to[0]) & within:
            return False
    return True


class _Parts:
    """The ops that take the place of a normalization: a reduction for each total, and a pointwise op."""

    def __init__(self, normalization: NormalizationOp) -> None:
        self.op = normalization
        space, axes = normalization.space(), integers(normalization.axes)
        self._kept = [axis for axis in range(len(space)) if axis not in axes]
        self._sizes = [space[axis] for axis in self._kept]
        self._reduced = [space[axis] for axis in axes]
        places = {axis: k for k, axis in enumerate([*self._kept, *axes])}
        self._moved = {f"d{axis}": iteration(k) for axis, k in places.items()}
        self._totals: list[SSAValue] = []

    def reductions(self) -> Sequence[Operation]:
        """Of the totals, in their order."""
        found: list[Operation] = []
        row = AccessAttr.of([iteration(k) for k in range(len(self._kept))])
        for kind, element, finish in self.op.reductions():
            body, inputs, access = self._taken(element, 0, row, self._moved)
            epilogue, extras, extra_access = self._taken(finish, 1, row, self._moved)
            ended = finish.block.last_op
            assert ended is not None
            result = tensor(ended.operands[0].type, self._sizes)
            one = ReductionOp(kind, inputs, access, self._reduced, result, body, epilogue, extras, extra_access)
            self._totals.append(one.output)
            found.append(one)
        return found

    def elements(self) -> PointwiseOp:
        """The results, of the inputs and all totals."""
        row = AccessAttr.of([iteration(axis) for axis in self._kept])
        body, inputs, access = self._taken(self.op.body, 0, row, {})
        return PointwiseOp(inputs, access, [value.type for value in self.op.results], body)

    def _taken(
        self, region: Region, first: int, row: AccessAttr, moved: dict[str, Dim]
    ) -> tuple[Region, list[SSAValue], list[AccessAttr]]:
        """A region with the arguments that it uses behind the `first` ones, what they are and how that is read."""
        given = [(value, one.substituted(moved)) for value, one in zip(self.op.inputs, self.op.access, strict=True)]
        given += [(total, row) for total in self._totals]
        names = region.block.args[first:]
        used = [k for k, name in enumerate(names) if name.first_use is not None]
        leading = [argument.type for argument in region.block.args[:first]]
        types = [*leading, *(element_of(given[k][0].type) for k in used)]
        places = {k: first + number for number, k in enumerate(used)}
        arguments = [*range(first), *(places.get(k, 0) for k in range(len(names)))]
        made = region_with(region, types, arguments)
        return made, [given[k][0] for k in used], [given[k][1] for k in used]


__all__ = ["SplitNormalizationsPass"]
