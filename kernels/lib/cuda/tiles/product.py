"""A kernel that computes tiles of a product, for whatever its operands are: the part that all tile tactics share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64

from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.gpu_architectures import ASYNC_COPY
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple
from mlirt.kernels.lib.cuda.tiles.engines import Engine, MatrixUnit, MultiplyAdd
from mlirt.kernels.lib.cuda.tiles.loaders import Loader
from mlirt.kernels.lib.cuda.tiles.main_loop import stages_for, sum_of_products
from mlirt.kernels.lib.cuda.tiles.problem import Plan, Sizes
from mlirt.kernels.lib.cuda.tiles.results import Epilogue, Partial, TileResults, add_parts
from mlirt.kernels.lib.cuda.tiles.shape import WarpTile
from mlirt.kernels.lib.cuda.tiles.split_unit import SplitMatrixUnit, exact_sum
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemories, accumulator_pitch
from mlirt.kernels.lib.epilogue import store_finished
from mlirt.kernels.lib.language import Value, build, builder, kernel
from mlirt.kernels.lib.language.hopper_words import cluster_rank, sync_cluster
from mlirt.kernels.lib.language.simt_words import block_id, sync_threads, thread_id
from mlirt.kernels.lib.language.words import extent, place
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode
from mlirt.kernels.lib.tactics.lowering import Lowering


@dataclass(frozen=True)
class Place:
    """Where a block works: its thread's number of how many, the first row and column of its tile, its batch entry."""

    thread: Value
    threads: int
    row: Value
    column: Value
    batch: Value


# Kernel functions: the loaders of both operands, for where the block works and room for the tiles;
MakeLoaders = Callable[[Place, TileMemories], tuple[Loader, Loader]]
# for a nest of the result, a column and a batch entry: the indices along the loops of the nest, of a row;
MakeIndices = Callable[[Nest, Value, Value], Callable[[Value], list[Value]]]
# whether there is a place of the result with these indices along the loops of its nest.
Condition = Callable[[Nest, Sequence[Value]], bool]


@dataclass(frozen=True)
class Operands:
    """How both operands lie in tiles: whether lines go along the depth, and how they are loaded."""

    left_by_depth: bool
    right_by_depth: bool
    are_async: tuple[bool, bool]
    make: MakeLoaders

    def extents(self, shape: WarpTile) -> tuple[tuple[int, int], tuple[int, int]]:
        left = (shape.depth, shape.rows) if self.left_by_depth else (shape.rows, shape.depth)
        right = (shape.depth, shape.columns) if self.right_by_depth else (shape.columns, shape.depth)
        return left, right


def lower_product(
    plan: Plan,
    operands: Operands,
    epilogue: Epilogue,
    borders: frozenset[int],
    indices: MakeIndices,
    lowering: Lowering,
    family: str,
    exists: Condition | None = None,
) -> None:
    """Launch the product, and the addition of its parts where it was split.

    `borders` are dimensions of the result that are not merged with the one before. `exists` tells which sums are of the
    result, if not all of the rows and columns are.
    """
    k, shape = lowering.kernel(family), plan.shape
    parts = Partial(epilogue, plan.parts, lowering) if plan.parts > 1 and not shape.is_cluster else None
    if plan.kind is None:
        k.function.attributes["resident"] = IntegerAttr(shape.resident, i64)
    if shape.is_cluster:
        k.function.attributes["cluster"] = IntegerAttr(plan.parts, i64)
        k.function.attributes["architecture"] = StringAttr(lowering.target.arch)
    build(k, _product, plan, operands, epilogue, borders, indices, lowering, exists, parts)
    if fits_narrow(plan.sizes, epilogue, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    k.finish(epilogue.op, grid=plan.grid(), block=[shape.threads])
    if parts is not None:
        add_parts(epilogue, parts, lowering, f"{family}_sum")


@kernel
def _product(
    plan: Plan,
    operands: Operands,
    epilogue: Epilogue,
    borders: frozenset[int],
    indices: MakeIndices,
    lowering: Lowering,
    exists: Condition | None,
    parts: Partial | None,
) -> None:
    """What a block does: the sum of products of a tile, and what follows it."""
    shape, at, has_copies = plan.shape, _place(plan), lowering.target.has(ASYNC_COPY)
    stages = stages_for(*operands.are_async, shape.stages) if has_copies else 2
    accumulator_bytes = 4 * shape.rows * accumulator_pitch(shape.columns)
    tiles = TileMemories.allocate(scalar_type(plan.element), stages, *operands.extents(shape), accumulator_bytes)
    engine = _engine(plan, operands, at.thread)
    left, right = [_that_copies(loader, has_copies) for loader in operands.make(at, tiles)]
    part = _part(plan)
    first, steps = _range(plan, part)
    if isinstance(engine, SplitMatrixUnit):
        accumulators = exact_sum(engine, left, right, first, steps, stages)
    else:
        accumulators = sum_of_products(engine, left, right, first, steps, stages)
    kept = tiles.accumulators(shape.rows, shape.columns, epilogue.accumulator_type)
    engine.keep(accumulators, kept)
    sync_threads()
    write = _Writer(epilogue, parts, borders, part, lowering, exists)
    along_rows = epilogue.is_along_rows(lowering)
    results = TileResults(shape, at.thread, kept, part, along_rows=along_rows)
    if along_rows:
        _write_along_rows(plan, at, results, write, indices)
    else:
        _write_along_columns(plan, at, results, write, indices)
    if shape.is_cluster:
        sync_cluster()  # none may end while another one reads what it has kept


@kernel
def _place(plan: Plan) -> Place:
    shape, thread, block = plan.shape, thread_id(), block_id()
    if shape.is_cluster:
        block = block // plan.parts
    rows = extent(ceil_div(plan.sizes.rows, shape.rows))
    first_row, first_column = block % rows * shape.rows, block // rows * shape.columns
    return Place(thread, shape.threads, first_row, first_column, place(0) if plan.sizes.batch == 1 else block_id(2))


def _engine(plan: Plan, operands: Operands, thread: Value) -> Engine:
    by_depth = {"left_by_depth": operands.left_by_depth, "right_by_depth": operands.right_by_depth}
    if plan.kind is not None:
        return MatrixUnit(plan.shape, thread, plan.kind, **by_depth)
    return SplitMatrixUnit(plan.shape, thread) if plan.shape.is_split else MultiplyAdd(plan.shape, thread, **by_depth)


def _that_copies(loader: Loader, has_copies: bool) -> Loader:
    """A loader that copies asynchronously where the device can, or where it has no other way."""
    loader.is_async = loader.is_async and (has_copies or not loader.can_fetch)
    return loader


@kernel
def _part(plan: Plan) -> Value:
    """Which part of the sum this block adds up."""
    if plan.shape.is_cluster:
        return cluster_rank()
    return block_id(1) if plan.parts > 1 else place(0)


@kernel
def _range(plan: Plan, part: Value) -> tuple[Value, Value]:
    """The first tile along the depth of this part, and how many there are."""
    if plan.parts == 1:
        return place(0), extent(plan.steps)
    per_part = extent(ceil_div(plan.steps, plan.parts))
    first = part * per_part
    return first, min(per_part, extent(plan.steps) - first)


@kernel
def _exists(at: Value, tile: int, size: Dim) -> bool:
    """Whether a row or column is one of the result; `True` where all of the tiles' are."""
    return is_multiple(size, tile) or at < extent(size)


@kernel
def _write_along_columns(plan: Plan, here: Place, results: TileResults, write: _Writer, indices: MakeIndices) -> None:
    """Each thread has a column: where that lies is found out once."""
    column, shape, sizes = here.column + results.column, plan.shape, plan.sizes
    if _exists(column, shape.columns, sizes.columns):
        at = indices(write.nest, column, here.batch)
        for number in range(results.rounds):
            line = results.line(number)
            if results.has(line):
                tile_row = line * results.step + results.row
                total, row = results.sum(tile_row, results.column), here.row + tile_row
                if _exists(row, shape.rows, sizes.rows):
                    write.store(total, at(row))


@kernel
def _write_along_rows(plan: Plan, here: Place, results: TileResults, write: _Writer, indices: MakeIndices) -> None:
    """Each thread has a row, and neighbouring threads write neighbours in memory."""
    row, shape, sizes = here.row + results.row, plan.shape, plan.sizes
    if _exists(row, shape.rows, sizes.rows):
        for number in range(results.rounds):
            line = results.line(number)
            if results.has(line):
                tile_column = line * results.step + results.column
                total, column = results.sum(results.row, tile_column), here.column + tile_column
                if _exists(column, shape.columns, sizes.columns):
                    write.store(total, indices(write.nest, column, here.batch)(row))


class _Writer:
    """Stores sums at a place of a nest, if there is one: as part of a sum, or through the epilogue as results."""

    def __init__(
        self,
        epilogue: Epilogue,
        parts: Partial | None,
        borders: frozenset[int],
        part: Value,
        lowering: Lowering,
        exists: Condition | None,
    ) -> None:
        self.part, self.exists, self.region = part, exists, epilogue.op.epilogue
        self.nest = epilogue.nest(lowering, borders, () if parts is None else [parts.access])
        self.target = NestCode(builder(), self.nest) if parts is None else parts.memory(self.nest)

    @kernel
    def store(self, total: Value, at: list[Value]) -> None:
        if self.exists is None or self.exists(self.nest, at):
            if isinstance(self.target, NestCode):
                store_finished(self.region, self.target, 0, total, at)
            else:
                self.target[self.part, *at] = total


def fits_narrow(sizes: Sizes, epilogue: Epilogue, lowering: Lowering) -> bool:
    """Whether 32-bit indices are enough: nothing that is touched has 2**31 bytes."""
    work = sizes.rows * sizes.columns * sizes.batch * 4 * 16
    return lowering.fits_int32((*epilogue.op.operands, *epilogue.op.results), work)
