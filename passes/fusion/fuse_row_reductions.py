"""Fuses reductions of rows and the pointwise op that uses them on the same rows into one normalisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.fused_op import IndexOp, YieldOp, copy_region, region_with
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.symbolic import Dim, product, substitute, symbols
from mlirt.dialects.target import Target
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_float, tensor
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, apply_rules, op, rule
from mlirt.passes.rules.driver import rules_of

_MIN_STEPS = 2  # reductions of rows that one launch takes the place of, where one more writes the elements

Places = Mapping[str, Dim]
End = PointwiseOp | ReductionOp


@dataclass(frozen=True)
class FuseRowReductionsPass(RulePass):
    """Turn chains such as mean, variance, scaled difference into one `fused.normalization`.

    A pointwise op takes in the reductions whose results it repeats along rows of its own space, and the reductions that
    those read in turn, where nobody else reads them. So does a reduction with those of the rows that it reduces itself,
    as in a logarithm of a sum of exponentials: the result has one element for each row then. Rows of unknown length
    stay apart, and those longer than `longest` where separate launches spread them better: where the blocks that have a
    row each take longer than all processors of the `device` with a launch for each step.

    A reduction of other rows, such as the largest of the channels behind an instance normalisation, reads normalised
    elements where its own element needs two or more reductions of rows that the threads of a block or cluster hold:
    these reductions and what it computes of each element are a normalisation in front of it.

    Before:

        %m = fused.reduction add(%x) [d0, d2] over 768 {..} {mean}
        %v = fused.reduction add(%m, %x) [d0, 0] [d0, d2] over 768 {square of the difference} {1 / sqrt}
        %y = fused.pointwise %x, %m, %v [d0, d1] [d0, 0] [d0, 0] {scaled difference}

    After:

        %y = fused.normalization %x [d0, d1] {axes = [1], kinds = [add, add]} {scaled difference} {..} {mean} {..}
             {1 / sqrt}
    """

    name = "fuse-row-reductions"

    longest: int = option(16384, at_least=1)
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for one in rules_of(type(self)):  # what ends a whole chain comes first
            apply_rules([one], self, ctx, op, again=False)

    @rule(op(PointwiseOp).named("end"))
    def end_with_elements(self, m: Match, end: PointwiseOp) -> Outcome:
        return self._fused(m, end)

    @rule(op(ReductionOp).named("end"))
    def end_with_totals(self, m: Match, end: ReductionOp) -> Outcome:
        return self._fused(m, end)

    @rule(op(ReductionOp).named("end"))
    def end_with_other_rows(self, m: Match, end: ReductionOp) -> Outcome:
        steps = [value for value in end.inputs if isinstance(value.owner, ReductionOp)]
        found = _elements(end) if len(set(steps)) >= _MIN_STEPS else None
        if found is None:
            return None
        elements, access = m.insert(found[0], end), found[1]
        chain = _Chain(elements, end)
        if len(chain.members) < _MIN_STEPS or any(value.owner in chain.members for value in end.extras):
            return "the reductions are not of rows of one tensor, or have other readers"
        if not self._is_short(chain, m.analysis(typical_values)) or not self._is_held(chain, m):
            return f"the threads of a block or cluster do not hold the rows, or they are longer than {self.longest}"
        rows = m.insert(chain.made(), *chain.members, end)
        m.take_back(elements)
        m.drop(*chain.members)
        return m.insert(_of_elements(end, rows.output, access), end)

    def _is_held(self, chain: _Chain, m: Match) -> bool:
        """Whether the threads of a block or cluster hold a row, so that it is read once."""
        length = product([chain.space[axis] for axis in chain.axes])
        rows = product([size for axis, size in enumerate(chain.space) if axis not in chain.axes])
        device = Target("cuda", device=self.device).gpu
        return isinstance(length, int) and device.holds_rows(typical(rows, m.analysis(typical_values)), length)

    def _fused(self, m: Match, end: End) -> Outcome:
        chain = _Chain(end) if len(end.results) == 1 else None
        if chain is None or not chain.members:
            reads = chain is not None and any(isinstance(value.owner, ReductionOp) for value in end.inputs)
            return "the reductions are not of its own rows, or have other readers" if reads else None
        if not self._is_short(chain, m.analysis(typical_values)):
            return f"rows are longer than {self.longest}, or of unknown length"
        m.drop(*chain.members)
        return m.insert(chain.made(), *chain.members, end)

    def _is_short(self, chain: _Chain, known: Mapping[str, int]) -> bool:
        lengths = [chain.space[axis] for axis in chain.axes]
        length = product(lengths)
        if not isinstance(length, int) or length <= 1:
            return False
        if length <= self.longest:
            return True
        rows = typical(product(size for axis, size in enumerate(chain.space) if axis not in chain.axes), known)
        bytes_ = length * byte_width(_element(chain.end.results[0]))
        steps = len(chain.members) + chain.reduces
        device = Target("cuda", device=self.device).gpu
        launch, splits = device.rows.launch, length > device.registers  # then a reduction of its own is two launches
        apart = (len(chain.members) + 1) * (launch + rows * bytes_ / device.rows.read_bytes) + splits * steps * launch
        return _together(device, rows, length, bytes_, steps + 1) <= apart


def _together(device: GpuDevice, rows: int, length: int, bytes_: int, passes: int) -> float:
    """Microseconds for rows of so many elements and bytes that a block or a cluster has each: read once where their
    threads hold them, else again in each pass.
    """
    blocks = device.blocks_of_row(rows)
    rounds = -(-rows // device.processors) if blocks == 1 else 1
    held, times = device.holds_rows(rows, length), device.rows
    own = rounds * bytes_ / blocks / (times.block_bytes if held else times.loop_bytes)
    return times.launch + max(own, rows * bytes_ / times.read_bytes) * (min(passes, 2) if held else passes)


class _Chain:
    """The reductions that an op can take in, in their order, and where each lies in its space.

    `instead` is an op that will not read them any more.
    """

    def __init__(self, end: End, instead: Operation | None = None) -> None:
        self.end, self._ends = end, (end, instead)
        self.reduces = isinstance(end, ReductionOp)
        self.space = (*dims(end.results[0].type), *(end.reduced.dims() if isinstance(end, ReductionOp) else ()))
        kept = len(dims(end.results[0].type))
        self.axes: tuple[int, ...] = tuple(range(kept, len(self.space)))
        self.members: dict[ReductionOp, Places] = {}
        self._refused: set[ReductionOp] = set()
        if any(isinstance(op, IndexOp) for region in end.regions for op in region.block.ops):
            return
        if self.reduces and not all(isinstance(size, int) and size > 1 for size in self.space[kept:]):
            return
        self._find(_reads(end), {f"d{a}": iteration(a) for a in range(len(self.space))})
        self._drop_shared()
        self.members = {op: self.members[op] for op in self._in_their_order()}

    def _in_their_order(self) -> list[ReductionOp]:
        """The members as they stand in the block. All stand in front of the end, and most not far from it."""
        found: list[ReductionOp] = []
        op = self.end.prev_op
        while op is not None and len(found) < len(self.members):
            if isinstance(op, ReductionOp) and op in self.members:
                found.append(op)
            op = op.prev_op
        return found[::-1]

    def _find(self, reads: Sequence[tuple[SSAValue, AccessAttr]], places: Places) -> None:
        """Add the reductions among what is read, and those that they read."""
        for value, access in reads:
            op = value.owner
            if not isinstance(op, ReductionOp) or op.parent is not self.end.parent:
                continue
            at = [substitute(index, places) for index in access.indices()]
            if self.reduces:  # whose extra operands are read by other indices than its inputs are
                at = [0 if size == 1 else index for index, size in zip(at, dims(value.type), strict=True)]
            own = self._places(op, at)
            if own is None or op in self._refused or self.members.setdefault(op, own) != own:
                self._refused.add(op)
                self.members.pop(op, None)
                continue
            self._find(list(zip(op.inputs, op.access, strict=True)), own)
            self._find(list(zip(op.extras, op.extra_access, strict=True)), own)

    def _places(self, op: ReductionOp, at: Sequence[Dim]) -> Places | None:
        """A reduction's iteration dimensions in the space of the end; None where its rows are others."""
        space = self.space
        kept = [index for index in at if not isinstance(index, int)]
        names = [next(iter(symbols(index)), "") for index in kept]
        if any(
            index != iteration(int(name[1:])) for index, name in zip(kept, names, strict=True) if name[1:].isdigit()
        ):
            return None
        if not all(name[:1] == "d" and name[1:].isdigit() for name in names) or len(set(names)) != len(names):
            return None
        if any(isinstance(index, int) and size != 1 for index, size in zip(at, dims(op.output.type), strict=True)):
            return None
        axes = tuple(axis for axis in range(len(space)) if f"d{axis}" not in names and space[axis] != 1)
        reduced = [size for size in op.reduced.dims() if size != 1]
        if [space[axis] for axis in axes] != reduced or (self.axes and axes != self.axes):
            return None
        if any(isinstance(inner, IndexOp) for region in op.regions for inner in region.block.ops):
            return None
        self.axes = axes
        rest = iter(axes)
        places: dict[str, Dim] = {f"d{k}": index for k, index in enumerate(at)}
        for k, size in enumerate(op.reduced.dims(), len(at)):
            places[f"d{k}"] = 0 if size == 1 else iteration(next(rest))
        return places

    def _drop_shared(self) -> None:
        """Leave out reductions that somebody else reads, until all others are read in the chain alone."""
        while outside := [one for one in self.members if self._is_read_elsewhere(one)]:
            for one in outside:
                del self.members[one]

    def _is_read_elsewhere(self, one: ReductionOp) -> bool:
        readers = [use.operation for use in one.output.uses]
        return any(reader not in self._ends and reader not in self.members for reader in readers)

    def made(self) -> NormalizationOp:
        """The normalisation that takes the place of all of it."""
        end = self.end
        whole: Places = {f"d{axis}": iteration(axis) for axis in range(len(self.space))}
        inputs: dict[tuple[SSAValue, AccessAttr], None] = {}
        for reads, places in [*((_reads(one), places) for one, places in self.members.items()), (_reads(end), whole)]:
            for value, access in reads:
                if value.owner not in self.members:
                    inputs.setdefault((value, access.substituted(places)))
        slots = {key: position for position, key in enumerate(inputs)}
        totals: dict[SSAValue, int] = {one.output: position for position, one in enumerate(self.members)}
        stages: list[Region] = []
        steps = {**self.members, **({end: whole} if isinstance(end, ReductionOp) else {})}
        for position, (one, places) in enumerate(steps.items()):
            args = [*(_element(value) for value, _ in slots), *(_element(total) for total in list(totals)[:position])]
            count = len(one.inputs)
            stages.append(region_with(one.body, args, _slots(_reads(one)[:count], places, slots, totals)))
            accumulator = one.epilogue.block.args[0].type
            extras = _slots(_reads(one)[count:], places, slots, totals)
            stages.append(region_with(one.epilogue, [accumulator, *args], [0, *(1 + slot for slot in extras)]))
        result = end.results[0]
        args = [*(_element(value) for value, _ in slots), *map(_element, totals)]
        if isinstance(end, ReductionOp):
            args.append(_element(result))
            last = Block(arg_types=args)
            last.add_op(YieldOp(operands=[[last.args[-1]]]))
            body = Region(last)
        else:
            body = region_with(end.body, args, _slots(_reads(end), whole, slots, totals))
        kinds = [one.kind.data for one in steps]
        access = [access for _, access in slots]
        values = [value for value, _ in slots]
        reduced = end.reduced.dims() if isinstance(end, ReductionOp) else ()
        return NormalizationOp(values, access, self.axes, kinds, result.type, body, stages, reduced)


def _elements(end: ReductionOp) -> tuple[PointwiseOp, AccessAttr] | None:
    """What a reduction computes of each element, over the space of a tensor that it reads all of, in no block; and how
    it reads that.

    None where it reads no such tensor of floats, or asks for positions.
    """
    kept = len(dims(end.output.type))
    space = (*dims(end.output.type), *end.reduced.dims())
    wide = _accumulator(end)
    if any(isinstance(inner, IndexOp) for inner in end.body.block.ops):
        return None
    for value, access in zip(end.inputs, end.access, strict=True):
        places = _places_in(value, access, space)
        element = element_of(value.type)
        is_like = is_float(element) and is_float(wide) and element == element_of(end.output.type)
        if places is None or not is_like or isinstance(value.owner, ReductionOp) or kept == len(space):
            continue
        block = Block(arg_types=[arg.type for arg in end.body.block.args])
        (made,) = copy_region(end.body, list(block.args), block.add_op)
        if made.type != element:
            block.add_op(narrow := arith.TruncFOp(made, element))  # pyright: ignore[reportArgumentType]
            made = narrow.result
        block.add_op(YieldOp(operands=[[made]]))
        reads = [one.substituted(places) for one in end.access]
        return PointwiseOp(end.inputs, reads, [tensor(element, dims(value.type))], Region(block)), access
    return None


def _places_in(value: SSAValue, access: AccessAttr, space: Sequence[Dim]) -> Places | None:
    """The iteration dimensions of a reduction in those of a tensor, each of whose elements it reads once."""
    names = {iteration(axis): axis for axis in range(len(space))}
    places: dict[str, Dim] = {f"d{axis}": 0 for axis, size in enumerate(space) if size == 1}
    for axis, (index, size) in enumerate(zip(access.indices(), dims(value.type), strict=True)):
        if size == 1:
            continue
        if index not in names or space[names[index]] != size or f"d{names[index]}" in places:
            return None
        places[f"d{names[index]}"] = iteration(axis)
    return places if len(places) == len(space) else None


def _accumulator(end: ReductionOp) -> Attribute:
    """The type in which a reduction combines."""
    return end.epilogue.block.args[0].type


def _of_elements(end: ReductionOp, elements: SSAValue, access: AccessAttr) -> ReductionOp:
    """The reduction of elements that are computed before."""
    element, wide = element_of(elements.type), _accumulator(end)
    block = Block(arg_types=[element])
    made: SSAValue = block.args[0]
    if element != wide:
        block.add_op(widened := arith.ExtFOp(made, wide))  # pyright: ignore[reportArgumentType]
        made = widened.result
    block.add_op(YieldOp(operands=[[made]]))
    epilogue = end.detach_region(end.epilogue)
    extras, extra_access = list(end.extras), list(end.extra_access)
    kind, reduced, result = end.kind.data, end.reduced.dims(), end.output.type
    return ReductionOp(kind, [elements], [access], reduced, result, Region(block), epilogue, extras, extra_access)


def _reads(op: End) -> list[tuple[SSAValue, AccessAttr]]:
    """The operands with their accesses, extras last."""
    reads = list(zip(op.inputs, op.access, strict=True))
    return reads if isinstance(op, PointwiseOp) else [*reads, *zip(op.extras, op.extra_access, strict=True)]


def _element(value: SSAValue) -> Attribute:
    return element_of(value.type)


def _slots(
    reads: Sequence[tuple[SSAValue, AccessAttr]],
    places: Places,
    slots: Mapping[tuple[SSAValue, AccessAttr], int],
    totals: Mapping[SSAValue, int],
) -> list[int]:
    """Which argument of a region of the normalisation each operand is: inputs first, then totals."""
    return [
        len(slots) + totals[value] if value in totals else slots[value, access.substituted(places)]
        for value, access in reads
    ]


__all__ = ["FuseRowReductionsPass"]
