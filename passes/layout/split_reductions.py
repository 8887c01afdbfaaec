"""Splits long reductions into several launches, for parallelism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.fused_op import IndexOp, identity_region
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.gpu_architectures import CLUSTERS
from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.symbolic import Dim, coefficient_of, symbols
from mlirt.dialects.target import Target
from mlirt.dialects.tensor_types import byte_width, dims, element_count, element_of, rank, strides, tensor
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.column_blocks import column_blocks
from mlirt.kernels.lib.loops.loop_nest import total
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

_WANTED = 512 * 1024  # elements that are read at the same time, eight by a thread
_MIN_THREAD_ELEMENTS = 16  # what a thread of any of the launches should combine
_MAX_THREAD_ELEMENTS = 64  # what threads may combine one after the other without a split
_MAX_UNSPLIT = 1024  # more than that are worth another split, where the outermost dimension alone is too short
_FEW_PARTS = 4  # times more parts are wanted: better more than that, where they are nearer to it
_PART, _MIN_PART_LENGTH = 32 * 1024, 2 * 1024  # elements of a row that a block should have
_BLOCKS = 2  # of each processor, which keep all busy


@dataclass(frozen=True)
class SplitReductionsPass(RulePass):
    """Combine parts of what a long reduction combines first, and then the parts.

    Where neighbours in memory belong to different results, a thread has results of its own and walks across the rows.
    With few results that is slow: parts of the rows become results of a first reduction, in the type that sums have,
    unless blocks that share out some columns each are as fast.
    So do parts of rows that are longer than what the threads of a block can hold, or those of a cluster, where the
    device has clusters and a place for each row, unless there are so many rows that blocks which walk along one each
    are as fast by the estimates. Applied to the second one again until that is short. The outermost reduced dimension
    is split, by a divisor; where each of its rows becomes a part and still is long, the next one is split, too.

    Before: `%y = fused.reduction add(%x) {access = [d1, d0], reduced = [65536]} : (tensor<65536x64xf16>) ->
    tensor<64xf16>`
    After: `%p = fused.reduction add(%x) {access = [64 * d0 + d2, d1], reduced = [64]} : (..) -> tensor<1024x64xf32>`,
    `%y = fused.reduction add(%p) {access = [d1, d0], reduced = [1024]} : (..) -> tensor<64xf16>`
    """

    name = "split-reductions"

    device: str = ""

    @rule(op(ReductionOp).named("reduction"))
    def split(self, m: Match, reduction: ReductionOp) -> Outcome:
        device = Target("cuda", device=self.device).gpu
        results = typical(element_count(reduction.output.type), m.analysis(typical_values))
        if column_blocks(reduction, m.analysis(typical_values), device) is not None:
            return "the threads of blocks share out its columns"
        parts = _parts(reduction, results, device)
        if parts is None:
            return "a block or cluster holds its rows or is as fast in a loop, or its lengths are not known"
        first, second = _split(reduction, *parts)
        m.insert(first)
        return m.insert(second)


def _parts(reduction: ReductionOp, results: int, device: GpuDevice) -> tuple[int, int] | None:
    """Into how many parts of which length the outermost reduced dimension is split; None for not at all."""
    first, *rest = reduction.reduced.dims() or (0,)
    if not isinstance(first, int) or not all(isinstance(size, int) for size in rest):
        return None
    if any(isinstance(inner, IndexOp) for region in reduction.regions for inner in region.block.ops):
        return None
    inner = _count(rest)
    if _crosses_rows(reduction):
        count = _parts_across(first, inner, results)
    elif _are_held(reduction, first * inner, results, device) or _are_looped(reduction, first * inner, results, device):
        return None
    else:
        count = _parts_along(first, inner, results, device)
    return (count, first // count) if count > 1 else None


def _count(sizes: Sequence[Dim]) -> int:
    """How many elements known lengths make."""
    return prod(int(str(size)) for size in sizes)


def _are_held(reduction: ReductionOp, length: int, results: int, device: GpuDevice) -> bool:
    """Whether rows lie in one piece each, and the threads of a cluster for each hold them all at once."""
    kept, sizes = rank(reduction.output.type), reduction.reduced.dims()
    for value, access in zip(reduction.inputs, reduction.access, strict=True):
        place = _steps(access, strides(value.type)[0], kept + len(sizes))[kept:]
        pairs = zip(place, place[1:], sizes[1:], strict=False)
        if any(step != after * size for step, after, size in pairs) or place[-1] not in (0, 1):
            return False
    clusters = device.clusters if device.has(CLUSTERS) else ()
    return any(results <= places and length <= device.registers << n for n, places in enumerate(clusters))


def _are_looped(reduction: ReductionOp, length: int, results: int, device: GpuDevice) -> bool:
    """Whether blocks that read a row each in a loop take no longer than parts of rows, and a launch to add them up."""
    times, bytes_ = device.rows, length * sum(byte_width(element_of(value.type)) for value in reduction.inputs)
    rounds, all_ = -(-results // device.processors), results * bytes_ / times.read_bytes
    return max(rounds * bytes_ / times.loop_bytes, all_) <= all_ + times.launch


def _steps(access: AccessAttr, steps: Sequence[Dim], count: int) -> list[Dim]:
    """How far an operand moves with each of `count` iteration dimensions."""
    indices = access.indices()
    return [
        total([coefficient_of(index, f"d{axis}") * step for index, step in zip(indices, steps, strict=True)])
        for axis in range(count)
    ]


def _parts_across(first: int, inner: int, results: int) -> int:
    """Into how many parts threads that walk across rows split them."""
    wanted = _WANTED // max(results, 1)
    if first * inner <= _MAX_THREAD_ELEMENTS or wanted < 2:
        return 1
    longest = first * inner // _MIN_THREAD_ELEMENTS
    most = min(wanted, longest)
    divisors = [n for n in range(1, min(longest, first) + 1) if first % n == 0]
    fewer = max((n for n in divisors if n <= most), default=1)
    more = min((n for n in divisors if n > most), default=fewer)
    return more if fewer * _FEW_PARTS < most and more * fewer < most * most else fewer


def _parts_along(first: int, inner: int, results: int, device: GpuDevice) -> int:
    """Into how many parts blocks that walk along rows split them: as few as keep a device busy, with rows that they
    hold.
    """
    length, blocks = first * inner, _BLOCKS * device.processors
    if length <= device.registers:
        return 1
    allowed = [n for n in range(1, min(first, length // _MIN_PART_LENGTH) + 1) if first % n == 0]
    wanted = [n for n in allowed if length // n <= _PART and n * results >= blocks]
    return min(wanted, default=max(allowed, default=1))


def _crosses_rows(reduction: ReductionOp) -> bool:
    """Whether neighbours in the memory of every input belong to different results."""
    reduced = {f"d{rank(reduction.output.type) + k}" for k in range(len(reduction.reduced.dims()))}
    for value, access in zip(reduction.inputs, reduction.access, strict=True):
        sizes, steps = dims(value.type), strides(value.type)[0]
        moving = [
            index for index, size, step in zip(access.indices(), sizes, steps, strict=True) if step == 1 and size != 1
        ]
        if not moving or symbols(moving[0]) & reduced or not symbols(moving[0]):
            return False
    return True


def _split(reduction: ReductionOp, count: int, length: int) -> tuple[ReductionOp, ReductionOp]:
    """Two reductions that take the place of one.

    Parts lie so that both read as the whole one did: across rows they are the first dimension, else the last one.
    """
    kept = rank(reduction.output.type)
    leads = _crosses_rows(reduction)
    own = iteration(0 if leads else kept)
    moved: dict[str, Dim] = {f"d{axis}": iteration(axis + leads) for axis in range(kept)}
    rest = reduction.reduced.dims()[1:]
    is_left_out = leads and length == 1 and _count(rest) > _MAX_UNSPLIT
    moved |= {f"d{kept + axis}": iteration(kept + axis + (not is_left_out)) for axis in range(1 + len(rest))}
    moved[f"d{kept}"] = own if is_left_out else own * length + iteration(kept + 1)
    access = [one.substituted(moved) for one in reduction.access]
    accumulator = accumulator_type(reduction.epilogue)
    sizes = dims(reduction.output.type)
    parts = tensor(accumulator, [count, *sizes] if leads else [*sizes, count])
    reduced = rest if is_left_out else [length, *rest]
    body, epilogue = reduction.body.clone(), reduction.epilogue.clone()
    first = ReductionOp(
        reduction.kind.data, reduction.inputs, access, reduced, parts, body, identity_region(accumulator)
    )
    results = [iteration(axis) for axis in range(kept)]
    place = AccessAttr.of([iteration(kept), *results] if leads else [*results, iteration(kept)])
    again = identity_region(accumulator)
    extras = list(reduction.extras), list(reduction.extra_access)
    second = ReductionOp(
        reduction.kind.data, [first.output], [place], [count], reduction.output.type, again, epilogue, *extras
    )
    return first, second
