"""Words of the kernel language for CPUs: workers, lanes, and register tiles: rows x columns x lanes of vectors."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, f32, i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.core import ParallelOp, ReduceKind, ReduceOp, YieldOp
from mlirt.dialects.kernel.tile import TileFillOp, TileForEachOp, TileTransformOp
from mlirt.dialects.kernel.tile_loads import TileLoadOp, TileLoadPatchOp, TileLoadTransposedOp
from mlirt.dialects.kernel.tile_packed import TileLoadPackedOp, TileMultiplyAddPackedOp
from mlirt.dialects.kernel.tile_pooling import TileMapOp, TilePoolOp
from mlirt.dialects.kernel.tile_products import (
    FOUR,
    TileCombineOp,
    TileDotAddOp,
    TileMultiplyAddLanesOp,
    TileMultiplyAddOp,
)
from mlirt.dialects.kernel.worker import PrefetchOp, WorkerMemoryOp, WorkerShareOp, WorkerSlotOp
from mlirt.kernels.lib.language.context import builder, emit
from mlirt.kernels.lib.language.loops import Box, RegionLoop
from mlirt.kernels.lib.language.values import Index, Value, value_of

__all__ = [
    "combine", "elements", "fill", "lane_loop", "lane_reduction", "load", "load_packed", "load_patch",
    "load_transposed", "map_elements", "multiply_add", "multiply_add_int8", "multiply_add_lanes",
    "multiply_add_packed", "pool", "prefetch", "share", "slot", "tasks", "transform", "worker_memory",
]  # fmt: skip


Place: TypeAlias = tuple[SSAValue, Index]
"""Memory, and an element in it."""


def tasks(*extents: Any) -> RegionLoop[Any]:
    """As `parallel`: independent iterations, of which each is a task of a worker as a whole."""
    return RegionLoop(lambda: _tasks(Box(*extents)))


@contextmanager
def _tasks(box: Box) -> Generator[Any]:
    k = builder()
    op = ParallelOp([k.extent(extent) for extent in box.extents()])
    op.attributes["workers"] = UnitAttr()
    with k.inside(op.body.block):
        yield box.given(op.body.block.args)
        k.insert(YieldOp(operands=[[]]))
    k.insert(op)


def worker_memory(element: Attribute, count: int) -> Value:
    """Memory of so many elements that a worker has for itself."""
    return emit(WorkerMemoryOp(element, count))


def share(tasks: Value) -> tuple[Value, Value]:
    """The first of this worker's tasks, and the one behind its last."""
    op = builder().insert(WorkerShareOp(tasks))
    return value_of(op.first), value_of(op.last)


def slot(tasks: Value, slots: Value) -> Value:
    """Which of so many pieces of memory this worker has for itself."""
    return emit(WorkerSlotOp(tasks, slots))


def prefetch(memory: SSAValue, at: Index) -> None:
    """Ask for the cache line of an element, which is read soon."""
    builder().insert(PrefetchOp(memory, builder().index(at)))


def fill(number: float | SSAValue, rows: int, columns: int, lanes: int) -> Value:
    """A tile of equal numbers; float32 where the number has no type of its own."""
    value = number if isinstance(number, SSAValue) else builder().constant(number, f32)
    return emit(TileFillOp(value, rows, columns, lanes))


def load_patch(
    memory: SSAValue,
    at: Index,
    steps: tuple[Index, Index],
    shape: tuple[int, int, int],
    limits: tuple[SSAValue, SSAValue] | None,
) -> Value:
    """Element i, j of a patch from `at + i * row step + j * column step`; zero beyond limits of rows and columns."""
    row, column = (builder().index(step) for step in steps)
    return emit(TileLoadPatchOp(memory, builder().index(at), (row, column), shape, limits))


def load(
    memory: SSAValue, at: Index, row_step: Index, shape: tuple[int, int, int], valid: SSAValue | None = None
) -> Value:
    """Rows of a tile from memory, of each the first `valid` elements and zeros behind them."""
    return emit(TileLoadOp(memory, builder().index(at), builder().index(row_step), shape, valid))


def load_transposed(
    memory: SSAValue,
    at: Index,
    row_step: Index,
    lanes: int,
    rows: SSAValue | None = None,
    valid: SSAValue | None = None,
) -> Value:
    """A tile of squares of `lanes` rows in memory, of each the first `valid` elements, as columns."""
    k = builder()
    return emit(TileLoadTransposedOp(memory, k.index(at), k.index(row_step), lanes, rows, valid))


def transform(tile: Value, matrix: Sequence[Sequence[float]]) -> Value:
    """`M * tile * transpose(M)` in each lane."""
    return emit(TileTransformOp(tile, matrix))


def multiply_add(
    tile: Value,
    x: SSAValue,
    at: Index,
    steps: tuple[Index, Index],
    w: SSAValue,
    w_at: Index,
    depth: int,
    rows: SSAValue | None = None,
    *,
    halves: bool = False,
) -> Value:
    """`tile[i, j, :] += x[at + i * row step + u * step] * w[w_at + (u * columns + j) * lanes + :]` for u < depth.

    With `rows` no row of `x` beyond so many is read; `halves` rounds its numbers to float16.
    """
    k, (row_step, step) = builder(), steps
    places = k.index(at), k.index(row_step), k.index(step)
    return emit(TileMultiplyAddOp(tile, x, *places, w, k.index(w_at), depth, rows, halves=halves))


def multiply_add_lanes(
    tile: Value, x: SSAValue, at: Index, row_step: Index, w: SSAValue, w_at: Index, rows: SSAValue | None = None
) -> Value:
    """`tile[i, j, :] += x[at + i * row step + j * lanes + :] * w[w_at + j * lanes + :]`: each channel with its own."""
    k = builder()
    return emit(TileMultiplyAddLanesOp(tile, x, k.index(at), k.index(row_step), w, k.index(w_at), rows))


def multiply_add_int8(
    tile: Value,
    x: SSAValue,
    at: Index,
    row_step: Index,
    w: SSAValue,
    w_at: Index,
    depth: int,
    rows: SSAValue | None = None,
    *,
    last: int = FOUR,
    offset: int = 0,
) -> Value:
    """The same with products of 4 bytes (dp4a, VNNI) for each of `depth` steps; the last one has `last` bytes, and
    `offset` is taken off each byte.
    """
    k = builder()
    places = k.index(at), k.index(row_step)
    return emit(TileDotAddOp(tile, x, *places, w, k.index(w_at), depth, rows, last=last, offset=offset))


def load_packed(codes: Place, scale: Place, zero: Place, bits: int, shape: tuple[int, int, int]) -> Value:
    """Weights of few bits as a tile of numbers, a row for each step of a sum."""
    return emit(TileLoadPackedOp(_placed(codes), _placed(scale), _placed(zero), bits, shape))


def multiply_add_packed(
    tile: Value,
    x: SSAValue,
    at: Index,
    steps: tuple[Index, Index],
    weights: tuple[Place, Place, Place],
    bits: int,
    depth: int,
) -> Value:
    """`tile[i, j, :] += x[at + i * row step + u * step] * weight[u, j, :]` for u < depth, with weights of few bits.

    `weights` are codes, scale and zero point: memory, and a place in it.
    """
    k, (codes, scale, zero) = builder(), (_placed(one) for one in weights)
    row_step, step = (k.index(one) for one in steps)
    return emit(TileMultiplyAddPackedOp(tile, _placed((x, at)), (row_step, step), codes, scale, zero, bits, depth))


def _placed(of: Place) -> tuple[SSAValue, SSAValue]:
    return of[0], builder().index(of[1])


def combine(kind: ReduceKind, tile: Value, x: SSAValue, at: Index, row_step: Index) -> Value:
    """`tile[i, j, :]` with `x[at + i * row step + j * lanes + :]`: their larger ones, or their sum."""
    return emit(TileCombineOp(kind, tile, x, builder().index(at), builder().index(row_step)))


def lane_loop(count: Index, lanes: int) -> RegionLoop[Value]:
    """Indices up to a count, of which `lanes` neighbours are a vector."""
    return RegionLoop(lambda: _lane_loop(ParallelOp([builder().index(count)]), lanes))


@contextmanager
def _lane_loop(op: ParallelOp, lanes: int) -> Generator[Value]:
    k = builder()
    op.attributes["lanes"] = IntegerAttr(lanes, i64)
    with k.inside(op.body.block):
        yield value_of(op.body.block.args[0])
        k.insert(YieldOp(operands=[[]]))
    k.insert(op)


def lane_reduction(
    kind: ReduceKind, count: Index, lanes: int, start: float, element: Callable[[Value], Value]
) -> Value:
    """Combine float32 numbers over indices up to a count, of which `lanes` neighbours are a vector."""
    k = builder()
    op = ReduceOp(kind, [k.index(count)], k.constant(start, f32))
    op.attributes["lanes"] = IntegerAttr(lanes, i64)
    with k.inside(op.body.block):
        k.insert(YieldOp(operands=[[element(value_of(op.body.block.args[0]))]]))
    return emit(op)


def map_elements(function: Callable[..., Value], tile: SSAValue, valid: SSAValue | None = None) -> Value:
    """A function of each element of a tile, its row, column and lane, as a tile of the same shape.

    With `valid` it is that of the first so many elements of each row, and what others become is left open.
    """
    op, k = TileMapOp(tile, valid), builder()
    with k.inside(op.body.block):
        k.insert(YieldOp(operands=[[function(*map(value_of, op.body.block.args))]]))
    return emit(op)


def pool(kind: ReduceKind, tile: SSAValue, into: SSAValue, window: Sequence[int]) -> Value:
    """A tile of windows, into each of which the elements of another tile in it are combined."""
    return emit(TilePoolOp(kind, tile, into, window))


def elements(
    tile: SSAValue, rows: SSAValue | None = None, valid: SSAValue | None = None
) -> RegionLoop[tuple[Value, Value, Value, Value]]:
    """Each element of a tile with its row, column and lane; of the first `rows` rows the first `valid` elements."""
    return RegionLoop(lambda: _elements(TileForEachOp(tile, rows, valid)))


@contextmanager
def _elements(op: TileForEachOp) -> Generator[tuple[Value, Value, Value, Value]]:
    k = builder()
    with k.inside(op.body.block):
        element, row, column, lane = map(value_of, op.body.block.args)
        yield element, row, column, lane
        k.insert(YieldOp(operands=[[]]))
    k.insert(op)
