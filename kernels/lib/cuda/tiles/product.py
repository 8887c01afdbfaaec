"""A kernel that computes tiles of a product, for whatever its operands are: the part that all tile tactics share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.gpu_architectures import ASYNC_COPY
from mlirt.dialects.kernel.cluster import ClusterRankOp
from mlirt.dialects.kernel.simt import BlockIdOp, ThreadIdOp
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple
from mlirt.kernels.lib.cuda.tiles.engines import Engine, MatrixUnit, MultiplyAdd
from mlirt.kernels.lib.cuda.tiles.loaders import Loader
from mlirt.kernels.lib.cuda.tiles.main_loop import stages_for, sum_of_products
from mlirt.kernels.lib.cuda.tiles.problem import Plan, Sizes
from mlirt.kernels.lib.cuda.tiles.results import Epilogue, PartCode, Partial, TileResults, add_parts, keep_accumulators
from mlirt.kernels.lib.cuda.tiles.shape import WarpTile
from mlirt.kernels.lib.cuda.tiles.split_unit import SplitMatrixUnit, exact_sum
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemories, accumulator_pitch
from mlirt.kernels.lib.epilogue import store_finished
from mlirt.kernels.lib.language import Value, build, builder, kernel
from mlirt.kernels.lib.language.values import bool_of
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


# Makes the loaders of both operands, given where the block works and room for the tiles.
MakeLoaders = Callable[[KernelBuilder, Place, TileMemories], tuple[Loader, Loader]]
# For a column and a batch entry: the function from a row to the indices along the loops of the result's nest.
MakeIndices = Callable[[KernelBuilder, Nest, SSAValue, SSAValue], Callable[[SSAValue], list[SSAValue]]]


# Whether there is a place of the result with these indices along the loops of its nest; None: always.
MakeCondition = Callable[[KernelBuilder, Nest, Sequence[SSAValue]], SSAValue | None]


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
    exists: MakeCondition | None = None,
) -> None:
    """Launch the product, and the addition of its parts where it was split.

    `borders` are dimensions of the result that are not merged with the one before. `exists` tells which sums are of the
    result, if not all of the rows and columns are.
    """
    k = lowering.kernel(family)
    shape = plan.shape
    place = _place(k, plan)
    has_copies = lowering.target.has(ASYNC_COPY)
    stages = stages_for(*operands.are_async, shape.stages) if has_copies else 2
    accumulator_bytes = 4 * shape.rows * accumulator_pitch(shape.columns)
    tiles = TileMemories.allocate(k, scalar_type(plan.element), stages, *operands.extents(shape), accumulator_bytes)
    engine = _engine(k, plan, operands, place.thread)
    left, right = operands.make(k, place, tiles)
    for loader in (left, right):
        loader.is_async = loader.is_async and (has_copies or not loader.can_fetch)
    part = _part(k, plan, lowering)
    first, steps = _range(k, plan, part)
    if isinstance(engine, SplitMatrixUnit):
        accumulators = exact_sum(engine, left, right, first, steps, stages)
    else:
        accumulators = sum_of_products(k, engine, left, right, first, steps, stages)
    kept = tiles.accumulators(k, shape.rows, shape.columns, epilogue.accumulator_type)
    keep_accumulators(k, engine, accumulators, kept)
    is_cluster = shape.is_cluster
    parts = Partial(epilogue, plan.parts, lowering) if plan.parts > 1 and not is_cluster else None
    write = _writer(k, epilogue, parts, borders, part, lowering, exists)
    along_rows = epilogue.is_along_rows(lowering)
    results = TileResults(k, shape, place.thread, kept, part, along_rows=along_rows)
    build(k, _write_along_rows if along_rows else _write_along_columns, plan, place, results, write, indices)
    if is_cluster:
        results.end_cluster()
    if fits_narrow(plan.sizes, epilogue, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    k.finish(epilogue.op, grid=plan.grid(), block=[shape.threads])
    if parts is not None:
        add_parts(epilogue, parts, lowering, f"{family}_sum")


def _part(k: KernelBuilder, plan: Plan, lowering: Lowering) -> Value:
    """Which part of the sum this block adds up."""
    if plan.shape.is_cluster:
        k.function.attributes["cluster"] = IntegerAttr(plan.parts, i64)
        k.function.attributes["architecture"] = StringAttr(lowering.target.arch)
        return k.value(ClusterRankOp())
    return k.value(BlockIdOp(1)) if plan.parts > 1 else k.constant(0)


def _exists(at: Value, tile: int, size: Dim) -> bool:
    """Whether a row or column is one of the result; `True` where all of the tiles' are."""
    return is_multiple(size, tile) or bool_of(builder().compare("slt", at, builder().size(size)))


@kernel
def _write_along_columns(
    plan: Plan, place: Place, results: TileResults, write: _Writer, indices: MakeIndices
) -> None:
    """Each thread has a column: where that lies is found out once."""
    column, shape, sizes = place.column + results.column, plan.shape, plan.sizes
    if _exists(column, shape.columns, sizes.columns):
        at = indices(builder(), write.nest, column, place.batch)
        for number in range(results.rounds):
            line = results.line(number)
            if results.has(line):
                tile_row = line * results.step + results.row
                total, row = results.sum(tile_row, results.column), place.row + tile_row
                if _exists(row, shape.rows, sizes.rows):
                    write.store(total, at(row))


@kernel
def _write_along_rows(plan: Plan, place: Place, results: TileResults, write: _Writer, indices: MakeIndices) -> None:
    """Each thread has a row, and neighbouring threads write neighbours in memory."""
    row, shape, sizes = place.row + results.row, plan.shape, plan.sizes
    if _exists(row, shape.rows, sizes.rows):
        for number in range(results.rounds):
            line = results.line(number)
            if results.has(line):
                tile_column = line * results.step + results.column
                total, column = results.sum(results.row, tile_column), place.column + tile_column
                if _exists(column, shape.columns, sizes.columns):
                    write.store(total, indices(builder(), write.nest, column, place.batch)(row))


@dataclass(frozen=True)
class _Writer:
    """Stores sums at a place of a nest, if there is one."""

    nest: Nest
    put: Callable[[SSAValue, Sequence[SSAValue]], None]
    exists: MakeCondition | None

    @kernel
    def store(self, total: Value, at: list[SSAValue]) -> None:
        condition = None if self.exists is None else self.exists(builder(), self.nest, at)
        if condition is None or bool_of(condition):
            self.put(total, at)


def _writer(
    k: KernelBuilder,
    epilogue: Epilogue,
    parts: Partial | None,
    borders: frozenset[int],
    part: SSAValue,
    lowering: Lowering,
    exists: MakeCondition | None,
) -> _Writer:
    if parts is not None:
        nest = epilogue.nest(lowering, borders, [parts.access])
        return _Writer(nest, PartCode(k, epilogue, parts, nest, part).store, exists)
    nest = epilogue.nest(lowering, borders)
    return _Writer(nest, partial(store_finished, epilogue.op.epilogue, NestCode(k, nest), 0), exists)


def _place(k: KernelBuilder, plan: Plan) -> Place:
    thread, block = k.value(ThreadIdOp()), k.value(BlockIdOp(0))
    thread.name_hint, block.name_hint = "thread", "block"
    if plan.shape.is_cluster:
        block = k.div(block, plan.parts)
    rows = k.size(ceil_div(plan.sizes.rows, plan.shape.rows))
    row, column = k.mul(k.rem(block, rows), plan.shape.rows), k.mul(k.div(block, rows), plan.shape.columns)
    row.name_hint, column.name_hint = row.name_hint or "first_row", column.name_hint or "first_column"
    batch = k.constant(0) if plan.sizes.batch == 1 else k.value(BlockIdOp(2))
    return Place(thread, plan.shape.threads, row, column, batch)


def _engine(k: KernelBuilder, plan: Plan, operands: Operands, thread: Value) -> Engine:
    by_depth = {"left_by_depth": operands.left_by_depth, "right_by_depth": operands.right_by_depth}
    if plan.kind is None:
        k.function.attributes["resident"] = IntegerAttr(plan.shape.resident, i64)
        if plan.shape.is_split:
            return SplitMatrixUnit(k, plan.shape, thread)
        return MultiplyAdd(k, plan.shape, thread, **by_depth)
    return MatrixUnit(k, plan.shape, thread, plan.kind, **by_depth)


def _range(k: KernelBuilder, plan: Plan, part: SSAValue) -> tuple[Value, Value]:
    """The first tile along the depth of this part, and how many there are."""
    if plan.parts == 1:
        return k.constant(0), k.size(plan.steps)
    per_part = ceil_div(plan.steps, plan.parts)
    first = k.mul(part, k.size(per_part))
    return first, k.min(k.size(per_part), k.sub(k.size(plan.steps), first))


def fits_narrow(sizes: Sizes, epilogue: Epilogue, lowering: Lowering) -> bool:
    """Whether 32-bit indices are enough: nothing that is touched has 2**31 bytes."""
    work = sizes.rows * sizes.columns * sizes.batch * 4 * 16
    return lowering.fits_int32((*epilogue.op.operands, *epilogue.op.results), work)
