"""A kernel that computes tiles of a product, for whatever its operands are: the part that all tile tactics share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.kernel.cluster import ClusterRankOp
from mlirt.dialects.kernel.simt import BlockIdOp, ThreadIdOp
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.target import HOPPER
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.engines import Engine, MatrixUnit, MultiplyAdd
from mlirt.kernels.lib.cuda.tiles.loaders import Loader
from mlirt.kernels.lib.cuda.tiles.main_loop import stages_for, sum_of_products
from mlirt.kernels.lib.cuda.tiles.problem import Plan, Sizes
from mlirt.kernels.lib.cuda.tiles.results import Epilogue, PartCode, Partial, TileResults, add_parts, keep_accumulators
from mlirt.kernels.lib.cuda.tiles.shape import WarpTile
from mlirt.kernels.lib.cuda.tiles.split_unit import SplitMatrixUnit, exact_sum
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemories, accumulator_pitch
from mlirt.kernels.lib.language import Value
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode
from mlirt.kernels.lib.tactics.lowering import Lowering

_INDEX_LIMIT = 2**31


@dataclass(frozen=True)
class Place:
    """Where a block works: its thread's number of how many, the first row and column of its tile, its batch entry."""

    thread: SSAValue
    threads: int
    row: SSAValue
    column: SSAValue
    batch: SSAValue


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
    stages = stages_for(*operands.are_async, shape.stages)
    accumulator_bytes = 4 * shape.rows * accumulator_pitch(shape.columns)
    tiles = TileMemories.allocate(k, scalar_type(plan.element), stages, *operands.extents(shape), accumulator_bytes)
    engine = _engine(k, plan, operands, place.thread)
    left, right = operands.make(k, place, tiles)
    part = _part(k, plan)
    first, steps = _range(k, plan, part)
    total = exact_sum if isinstance(engine, SplitMatrixUnit) else partial(sum_of_products, k)
    accumulators = total(engine, left, right, first, steps, stages)
    kept = tiles.accumulators(k, shape.rows, shape.columns, epilogue.accumulator_type)
    keep_accumulators(k, engine, accumulators, kept)
    is_cluster = shape.is_cluster
    parts = Partial(epilogue, plan.parts, lowering) if plan.parts > 1 and not is_cluster else None
    write = _writer(k, epilogue, parts, borders, part, lowering)
    write = write if exists is None else write.where(k, exists)
    along_rows = epilogue.is_along_rows(lowering)
    results = TileResults(k, shape, place.thread, kept, part, along_rows=along_rows)
    (_write_along_rows if along_rows else _write_along_columns)(k, plan, place, results, write, indices)
    if is_cluster:
        results.end_cluster()
    if fits_narrow(plan.sizes, epilogue, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    k.finish(epilogue.op, grid=plan.grid(), block=[shape.threads])
    if parts is not None:
        add_parts(epilogue, parts, lowering, f"{family}_sum")


def _part(k: KernelBuilder, plan: Plan) -> SSAValue:
    """Which part of the sum this block adds up."""
    if plan.shape.is_cluster:
        k.function.attributes["cluster"] = IntegerAttr(plan.parts, i64)
        k.function.attributes["architecture"] = StringAttr(HOPPER)
        return k.value(ClusterRankOp())
    return k.value(BlockIdOp(1)) if plan.parts > 1 else k.constant(0)


def _where(k: KernelBuilder, at: SSAValue, tile: int, size: Dim, then: Callable[[], None]) -> None:
    """Do something where a row or column exists."""
    if _divides(tile, size):
        then()
    else:
        k.when(k.compare("slt", at, k.size(size)), then)


def _write_along_columns(
    k: KernelBuilder, plan: Plan, place: Place, results: TileResults, write: _Writer, indices: MakeIndices
) -> None:
    """Each thread has a column: where that lies is found out once."""
    column, shape, sizes = k.add(place.column, results.column), plan.shape, plan.sizes

    def rows() -> None:
        at = indices(k, write.nest, column, place.batch)

        def store(tile_row: SSAValue, total: SSAValue) -> None:
            row = k.add(place.row, tile_row)
            _where(k, row, shape.rows, sizes.rows, lambda: write.store(total, at(row)))

        results.each_row(store)

    _where(k, column, shape.columns, sizes.columns, rows)


def _write_along_rows(
    k: KernelBuilder, plan: Plan, place: Place, results: TileResults, write: _Writer, indices: MakeIndices
) -> None:
    """Each thread has a row, and neighbouring threads write neighbours in memory."""
    row, shape, sizes = k.add(place.row, results.row), plan.shape, plan.sizes

    def columns() -> None:
        def store(tile_column: SSAValue, total: SSAValue) -> None:
            column = k.add(place.column, tile_column)

            def write_it() -> None:
                write.store(total, indices(k, write.nest, column, place.batch)(row))

            _where(k, column, shape.columns, sizes.columns, write_it)

        results.each_column(store)

    _where(k, row, shape.rows, sizes.rows, columns)


@dataclass(frozen=True)
class _Writer:
    """Stores sums at a place of a nest."""

    nest: Nest
    store: Callable[[SSAValue, list[SSAValue]], None]

    def where(self, k: KernelBuilder, exists: MakeCondition) -> _Writer:
        """The same for places that exist."""

        def store(total: SSAValue, at: list[SSAValue]) -> None:
            condition = exists(k, self.nest, at)
            if condition is None:
                self.store(total, at)
            else:
                k.when(condition, lambda: self.store(total, at))

        return _Writer(self.nest, store)


def _writer(
    k: KernelBuilder,
    epilogue: Epilogue,
    partial: Partial | None,
    borders: frozenset[int],
    part: SSAValue,
    lowering: Lowering,
) -> _Writer:
    if partial is not None:
        nest = epilogue.nest(lowering, borders, [partial.access])
        return _Writer(nest, PartCode(k, epilogue, partial, nest, part).store)
    nest = epilogue.nest(lowering, borders)
    code = NestCode(k, nest)
    return _Writer(nest, lambda total, at: epilogue.write(k, code, total, at))


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


def _engine(k: KernelBuilder, plan: Plan, operands: Operands, thread: SSAValue) -> Engine:
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


def _divides(tile: int, size: Dim) -> bool:
    return isinstance(size, int) and size % tile == 0


def fits_narrow(sizes: Sizes, epilogue: Epilogue, lowering: Lowering) -> bool:
    """Whether 32-bit indices are enough: nothing that is touched has 2**31 bytes."""
    values: Sequence[SSAValue] = [*epilogue.op.operands, *epilogue.op.results]
    bytes_ = [lowering.placements.size_of(lowering.placements[value].buffer) for value in values]
    work = sizes.rows * sizes.columns * sizes.batch * 4 * 16
    return all(isinstance(size, int) and size < _INDEX_LIMIT for size in (*bytes_, work))
