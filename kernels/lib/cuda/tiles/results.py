"""From the accumulators of a tile to memory: the epilogue, or the parts of a split-K sum for a second launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.kernel.cluster import ClusterBarrierOp, RemoteSharedOp
from mlirt.dialects.kernel.core import LoadOp, ReduceKind, StoreOp
from mlirt.dialects.kernel.simt import BarrierOp
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, memory_order, strides, with_order
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.engines import Engine
from mlirt.kernels.lib.cuda.tiles.shape import WarpTile
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory
from mlirt.kernels.lib.epilogue import ProductOp, extra_operands, store_finished
from mlirt.kernels.lib.language import Index, Value, build, builder, kernel, value_of
from mlirt.kernels.lib.language.values import bool_of
from mlirt.kernels.lib.language.words import Box, constant, parallel, reduction, stride, strided
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse, direct
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.tactics.lowering import Lowering


@dataclass(frozen=True)
class Epilogue:
    """What follows the accumulators of an op."""

    op: ProductOp
    row_axis: int | None = None
    """The dimension along which the rows of tiles go, where that may be the innermost one in memory."""

    @property
    def output(self) -> SSAValue:
        return self.op.output

    @property
    def accumulator_type(self) -> Attribute:
        """The type of the accumulators, 4 bytes."""
        return accumulator_type(self.op.epilogue)

    def is_along_rows(self, lowering: Lowering) -> bool:
        """Whether neighbouring rows of a tile are neighbours in memory."""
        axis = self.row_axis
        return (
            axis is not None
            and dims(self.output.type)[axis] != 1
            and lowering.placements[self.output].strides[axis] == 1
        )

    def nest(self, lowering: Lowering, borders: frozenset[int], more: Sequence[Affine] = ()) -> Nest:
        """The space of the result; its dimensions are merged where all operands allow, but not across `borders`."""
        places, space = lowering.placements, dims(self.output.type)
        operands = [*extra_operands(self.op, places), direct(self.output, places[self.output]), *more]
        return collapse(Nest.of(space, operands), indices_in(self.op.epilogue), borders)


class Partial:
    """Scratch memory for the parts of split sums: `[part, result..]`."""

    def __init__(self, epilogue: Epilogue, parts: int, lowering: Lowering) -> None:
        self.element = epilogue.accumulator_type
        self.sizes = dims(epilogue.output.type)
        self.total: Dim = product(self.sizes)
        self.parts = parts
        self.buffer = lowering.placements.scratch(self.total * parts * 4)
        of = epilogue.output.type
        self.access = Affine(epilogue.output, strides(with_order(of, memory_order(of)))[0])

    def pointer(self, k: KernelBuilder) -> SSAValue:
        return k.memory(self.buffer, self.element)


def add_parts(epilogue: Epilogue, partial: Partial, lowering: Lowering, family: str) -> None:
    """A second launch: `parallel (result..) { reduce (part) { load }; epilogue; store }`."""
    k = lowering.kernel(family)
    k.constant_sizes = False  # it does little: rather share it between layers
    build(k, _add_parts, epilogue, partial, lowering)
    k.finish(epilogue.op)


@kernel
def _add_parts(epilogue: Epilogue, partial: Partial, lowering: Lowering) -> None:
    k, nest = builder(), epilogue.nest(lowering, frozenset(), [partial.access])
    steps = [stride(step) for step in nest.operands[-1].steps]
    code = NestCode(k, Nest(nest.extents, nest.operands[:-1], nest.groups))
    accumulators = strided(partial.pointer(k), stride(partial.total), *steps)
    for loops in parallel(code.extents()):
        here, zero = loops[: len(nest.extents)], constant(0, partial.element)
        total = reduction(ReduceKind.ADD, Box(partial.parts), zero, lambda part: accumulators[(part, *here)])
        store_finished(epilogue.op.epilogue, code, 0, total, loops)


class TileResults:
    """Goes over the places of a tile whose sums are in shared memory, neighbouring threads along the columns, or along
    the rows.

    The blocks of a cluster have parts of the sums: each adds up all of them, in their order, for some of the places.
    """

    def __init__(
        self,
        k: KernelBuilder,
        shape: WarpTile,
        thread: SSAValue,
        tile: TileMemory,
        part: Value,
        *,
        along_rows: bool = False,
    ) -> None:
        """`part` is the number of this block in its cluster, if there is one."""
        self.k, self.shape, self.tile, self.part = k, shape, tile, part
        self.buffers = [tile.buffer]
        if shape.is_cluster:
            k.insert(ClusterBarrierOp())
            self.buffers = [k.value(RemoteSharedOp(tile.buffer, k.constant(rank))) for rank in range(shape.parts)]
        side = shape.rows if along_rows else shape.columns
        near, far = k.rem(thread, side), k.div(thread, side)
        self.row, self.column = (near, far) if along_rows else (far, near)
        self.step = shape.threads // side
        self.lines = (shape.columns if along_rows else shape.rows) // self.step
        self.rounds = -(-self.lines // len(self.buffers))

    @kernel
    def line(self, number: Index) -> Value:
        """The place of a number among those of this thread: it has every `step`-th row of its column, or the other
        way round, and of a cluster this block's.
        """
        blocks = len(self.buffers)
        return value_of(number if blocks == 1 else number * blocks + self.part)

    def has(self, line: Value) -> bool:
        """Whether there is such a place; `True` where there always is."""
        return self.lines % len(self.buffers) == 0 or bool_of(self.k.compare("slt", line, self.lines))

    def sum(self, row: Value, column: Value) -> Value:
        """What the blocks have kept at a place of the tile."""
        index = self.tile.at(self.k, 0, row, column)
        first, *others = [self.k.value(LoadOp(buffer, [index], [1])) for buffer in self.buffers]
        return value_of(reduce(self.k.scalars(first.type).add, others, first))

    def end_cluster(self) -> None:
        """Wait for the other blocks, as none may end while another one reads what it has kept."""
        self.k.insert(ClusterBarrierOp())


def keep_accumulators(k: KernelBuilder, engine: Engine, accumulators: Value, tile: TileMemory) -> None:
    """Let all threads see the accumulators."""
    build(k, engine.keep, accumulators, tile)
    k.insert(BarrierOp())


class PartCode:
    """Stores of the accumulators of one part."""

    def __init__(self, k: KernelBuilder, epilogue: Epilogue, partial: Partial, nest: Nest, part: SSAValue) -> None:
        """`nest` has the scratch memory as its last operand."""
        self.k, self.part, self.pointer = k, part, partial.pointer(k)
        self.steps = [k.stride(partial.total), *(k.stride(step) for step in nest.operands[-1].steps)]

    def store(self, sum_: SSAValue, loops: Sequence[SSAValue]) -> None:
        self.k.insert(StoreOp(sum_, self.pointer, [self.part, *loops], self.steps))
