"""What one op of a kernel touches in memory: a first element, at a sum of products, and runs from there on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.kernel.amx import LANES, AmxBeginOp, AmxDotAddOp, AmxStoreOp
from mlirt.dialects.kernel.async_copy import CopyAsyncOp
from mlirt.dialects.kernel.core import LoadOp, StoreOp, stride_values
from mlirt.dialects.kernel.flagged_word import ReceiveFlaggedOp, SendFlaggedOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.tile import tile_shape
from mlirt.dialects.kernel.tile_loads import TileLoadOp, TileLoadPatchOp, TileLoadTransposedOp
from mlirt.dialects.kernel.tile_packed import TileLoadPackedOp, TileMultiplyAddPackedOp, codes_per_word
from mlirt.dialects.kernel.tile_products import (
    FOUR,
    TileCombineOp,
    TileDotAddOp,
    TileMultiplyAddLanesOp,
    TileMultiplyAddOp,
)

Factor: TypeAlias = "SSAValue | int"

_MAX_PARTS = 8
_HARMLESS = {"kernel.prefetch"}  # any address will do


@dataclass(frozen=True)
class Run:
    """`step` apart, as many as the least of `counts` says, at least one."""

    counts: tuple[Factor, ...]
    step: Factor = 1


@dataclass(frozen=True)
class Guarded:
    """Up to `count` groups, `step` times `stride` apart: group `i` where `valid` is more than `first + i * size`."""

    count: int
    size: int
    first: int
    valid: SSAValue
    step: int
    stride: Factor


@dataclass(frozen=True)
class Touched:
    """Elements of a buffer: the sum of the `terms` (products), and from there all combinations of the `runs`.

    What is `guarded` is one more run, and touches nothing where its first group is not valid.
    """

    buffer: SSAValue
    terms: tuple[tuple[Factor, Factor], ...] = ()
    runs: tuple[Run, ...] = ()
    guarded: Guarded | None = None
    only_where: SSAValue | None = None
    """Nothing is touched where this is not more than 0."""
    is_unknown: bool = False


def touched_by(op: Operation) -> Iterator[Touched]:
    """What an op touches; anything at all of its buffers where there is no rule for it."""
    rule = _RULES.get(type(op))
    if rule is not None:
        yield from rule(op)
    elif op.name not in _HARMLESS:
        for operand in op.operands:
            type_: Attribute = operand.type
            if isinstance(type_, MemRefType):  # maps of tensors have extents of their own
                yield Touched(operand, is_unknown=True)


def _at(start: SSAValue) -> tuple[tuple[Factor, Factor], ...]:
    return ((start, 1),)


def _element(op: LoadOp | StoreOp) -> Iterator[Touched]:
    yield Touched(op.buffer, tuple(zip(op.indices, stride_values(op), strict=True)))


def _rows(most: int, only: SSAValue | None) -> tuple[Factor, ...]:
    return (most,) if only is None else (most, only)


def _multiply_add(op: TileMultiplyAddOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.tile.type)
    depth = op.depth.value.data
    yield Touched(op.x, _at(op.x_at), (Run(_rows(rows, op.rows), op.row_step), Run((depth,), op.step)))
    yield Touched(op.w, _at(op.w_at), (Run((depth * columns * lanes,)),))


def _load_packed(op: TileLoadPackedOp) -> Iterator[Touched]:
    yield from _packed_weights(op, *tile_shape(op.result.type)[1:])


def _multiply_add_packed(op: TileMultiplyAddPackedOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.tile.type)
    yield Touched(op.x, _at(op.x_at), (Run((rows,), op.row_step), Run((op.depth.value.data,), op.step)))
    yield from _packed_weights(op, columns, lanes)


def _packed_weights(op: TileLoadPackedOp | TileMultiplyAddPackedOp, columns: int, lanes: int) -> Iterator[Touched]:
    bits, depth = op.bits.value.data, op.depth.value.data
    per = codes_per_word(bits)
    count = depth if per == 1 else per * bits // 8
    yield Touched(op.w, _at(op.w_at), (Run((count * columns * lanes,)),))
    yield Touched(op.scale, _at(op.scale_at), (Run((columns * lanes,)),))
    yield Touched(op.zero, _at(op.zero_at), (Run((columns * lanes,)),))


def _multiply_add_lanes(op: TileMultiplyAddLanesOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.tile.type)
    yield Touched(op.x, _at(op.x_at), (Run(_rows(rows, op.rows), op.row_step), Run((columns * lanes,))))
    yield Touched(op.w, _at(op.w_at), (Run((columns * lanes,)),))


def _combine(op: TileCombineOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.tile.type)
    yield Touched(op.x, _at(op.x_at), (Run(_rows(rows, op.rows), op.row_step), Run((columns * lanes,))))


def _dot_add(op: TileDotAddOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.tile.type)
    depth = op.depth.value.data
    length = FOUR * (depth - 1) + op.last.value.data
    yield Touched(op.x, _at(op.x_at), (Run(_rows(rows, op.rows), op.row_step), Run((length,))))
    yield Touched(op.w, _at(op.w_at), (Run((FOUR * depth * columns * lanes,)),))


def _load(op: TileLoadOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.result.type)
    yield Touched(op.x, _at(op.x_at), (Run((rows,), op.row_step), Run(_rows(columns * lanes, op.valid))))


def _load_transposed(op: TileLoadTransposedOp) -> Iterator[Touched]:
    lanes = tile_shape(op.result.type)[2]
    rows = Run(_rows(lanes, op.rows), op.row_step)
    yield Touched(op.x, _at(op.x_at), (rows, Run(_rows(lanes, op.valid))))


def _load_patch(op: TileLoadPatchOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.result.type)
    yield Touched(
        op.x,
        _at(op.x_at),
        (
            Run(_rows(rows, op.rows), op.row_step),
            Run(_rows(columns, op.columns), op.column_step),
            Run((lanes,)),
        ),
    )


def _amx_dot_add(op: AmxDotAddOp) -> Iterator[Touched]:
    depth = _amx_depth(op)
    pixels = op.rows.value.data * op.pixels.value.data
    yield Touched(op.x, _at(op.x_at), (Run((pixels,), op.step), Run((depth,))))
    yield Touched(op.w, _at(op.w_at), (Run((depth * op.columns.value.data * LANES,)),))


def _amx_depth(op: Operation) -> int:
    """The depth that the registers of a kernel are laid out for; the largest, where there are several."""
    top = op
    while (parent := top.parent_op()) is not None and parent.name != "kernel.func":
        top = parent
    kernel = top.parent_op() or top
    return max(inner.depth.value.data for inner in kernel.walk() if isinstance(inner, AmxBeginOp))


def _amx_store(op: AmxStoreOp) -> Iterator[Touched]:
    count = op.rows.value.data * op.columns.value.data * op.pixels.value.data * LANES
    yield Touched(op.y, (), (Run((count,)),))


def _fragment(op: LoadFragmentOp | StoreFragmentOp) -> Iterator[Touched]:
    offsets, stride = op.offset_list(), 1 if op.stride is None else op.stride
    if op.valid is None:
        least = min(offsets)
        yield Touched(op.buffer, ((op.index, 1), (least, stride)), (Run((max(offsets) - least + 1,), stride),))
        return
    size = op.group(op.buffer)
    starts = offsets[::size]
    for first, count in _even_runs(starts, size):
        step = starts[first + 1] - starts[first] if count > 1 else 0
        guarded = Guarded(count, size, first * size, op.valid, step, stride)
        yield Touched(op.buffer, ((op.index, 1), (starts[first], stride)), (Run((size,), stride),), guarded)


def _even_runs(numbers: Sequence[int], size: int) -> Iterator[tuple[int, int]]:
    """(first, count) of the parts in which groups of so many elements are equally far from each other.

    Few groups with gaps between them stay apart, as a tile's columns do: each has a guard that says more.
    """
    if len(numbers) <= _MAX_PARTS and any(after - before != size for before, after in pairwise(numbers)):
        yield from ((i, 1) for i in range(len(numbers)))
        return
    first = 0
    while first < len(numbers):
        end = min(first + 2, len(numbers))
        while end < len(numbers) and numbers[end] - numbers[end - 1] == numbers[first + 1] - numbers[first]:
            end += 1
        yield first, end - first
        first = end


def _copy_async(op: CopyAsyncOp) -> Iterator[Touched]:
    count = op.count.value.data
    yield Touched(op.target, _at(op.target_index), (Run((count,)),))
    yield Touched(op.source, _at(op.source_index), (Run(_rows(count, op.valid)),), only_where=op.valid)


def _send_flagged(op: SendFlaggedOp) -> Iterator[Touched]:
    yield Touched(op.words, _at(op.index))


def _receive_flagged(op: ReceiveFlaggedOp) -> Iterator[Touched]:
    for index in op.indices:
        yield Touched(op.words, _at(index), (Run((op.count.value.data,)),))


_RULES: dict[type[Operation], Callable[..., Iterator[Touched]]] = {
    LoadOp: _element,
    StoreOp: _element,
    TileMultiplyAddOp: _multiply_add,
    TileMultiplyAddLanesOp: _multiply_add_lanes,
    TileMultiplyAddPackedOp: _multiply_add_packed,
    TileLoadPackedOp: _load_packed,
    TileCombineOp: _combine,
    TileDotAddOp: _dot_add,
    TileLoadOp: _load,
    TileLoadTransposedOp: _load_transposed,
    TileLoadPatchOp: _load_patch,
    AmxDotAddOp: _amx_dot_add,
    AmxStoreOp: _amx_store,
    LoadFragmentOp: _fragment,
    StoreFragmentOp: _fragment,
    CopyAsyncOp: _copy_async,
    SendFlaggedOp: _send_flagged,
    ReceiveFlaggedOp: _receive_flagged,
}
