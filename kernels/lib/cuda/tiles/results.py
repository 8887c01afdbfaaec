"""From the accumulators of a tile to memory: the epilogue, or the parts of a split-K sum for a second launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.epilogue import EpilogueOp, accumulator_type
from mlirt.dialects.kernel.cluster import ClusterBarrierOp, RemoteSharedOp
from mlirt.dialects.kernel.core import LoadOp, ReduceKind, StoreOp
from mlirt.dialects.kernel.simt import BarrierOp
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, memory_order, rank, strides, with_order
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.engines import Engine
from mlirt.kernels.lib.cuda.tiles.shape import WarpTile
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, affine, collapse, direct
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.tactics.lowering import Lowering


@dataclass(frozen=True)
class Epilogue:
    """What follows the accumulators of an op: the extra operands with their accesses, the region, and the result."""

    op: EpilogueOp
    extras: Sequence[SSAValue]
    access: Sequence[AccessAttr]
    row_axis: int | None = None
    """The dimension along which the rows of tiles go, where that may be the innermost one in memory."""

    @property
    def output(self) -> SSAValue:
        return self.op.results[0]

    @property
    def accumulator_type(self) -> Attribute:
        """The type of the accumulators, 4 bytes."""
        return accumulator_type(self.op.regions[-1])

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
        width = len(space)
        operands = [
            affine(value, places[value], one, width) for value, one in zip(self.extras, self.access, strict=True)
        ]
        whole = direct(self.output, places[self.output])
        needed = indices_in(self.op.regions[-1])
        return collapse(Nest.of(space, [*operands, whole, *more]), needed, borders)

    def write(self, k: KernelBuilder, code: NestCode, total: SSAValue, loops: Sequence[SSAValue]) -> None:
        """Compute and store the result at a place of the nest."""
        region, count = self.op.regions[-1], len(self.extras)
        needed = indices_in(region)
        at = list(loops)
        scalars = [k.typed(total, accumulator_type(region)), *(code.load(position, at) for position in range(count))]
        space = rank(self.output.type)
        indices = [code.original(axis, at) if axis in needed else k.constant(0) for axis in range(space)]
        (value,) = k.inline(region, scalars, indices)
        code.store(value, count, at)


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
    nest = epilogue.nest(lowering, frozenset(), [partial.access])
    steps = [k.stride(step) for step in nest.operands[-1].steps]
    code = NestCode(k, Nest(nest.extents, nest.operands[:-1], nest.groups))
    pointer, pitch = partial.pointer(k), k.stride(partial.total)
    with k.parallel(code.extents()) as loops:
        here = loops[: len(nest.extents)]

        def part(at: list[SSAValue]) -> SSAValue:
            return k.value(LoadOp(pointer, [at[0], *here], [pitch, *steps]))

        total = k.reduce(ReduceKind.ADD, [partial.parts], k.constant(0, partial.element), part)
        epilogue.write(k, code, total, loops)
    k.finish(epilogue.op)


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
        part: SSAValue,
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

    def each_row(self, then: Callable[[SSAValue, SSAValue], None]) -> None:
        """`then(row, sum)` for each row of this thread's column."""
        k = self.k

        def body(i: SSAValue) -> None:
            row = k.add(k.mul(i, self.step), self.row)
            then(row, self._sum(self.tile.at(k, 0, row, self.column)))

        self._each(self.shape.rows // self.step, body)

    def each_column(self, then: Callable[[SSAValue, SSAValue], None]) -> None:
        """`then(column, sum)` for each column of this thread's row."""
        k = self.k

        def body(i: SSAValue) -> None:
            column = k.add(k.mul(i, self.step), self.column)
            then(column, self._sum(self.tile.at(k, 0, self.row, column)))

        self._each(self.shape.columns // self.step, body)

    def end_cluster(self) -> None:
        """Wait for the other blocks, as none may end while another one reads what it has kept."""
        self.k.insert(ClusterBarrierOp())

    def _each(self, count: int, then: Callable[[SSAValue], None]) -> None:
        """Each of so many numbers, or those of this block of the cluster."""
        k, blocks = self.k, len(self.buffers)

        def body(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            if blocks == 1:
                then(i)
                return []
            number = k.add(k.mul(i, blocks), self.part)
            if count % blocks == 0:
                then(number)
            else:
                k.when(k.compare("slt", number, count), lambda: then(number))
            return []

        k.loop(-(-count // blocks), [], body)

    def _sum(self, index: SSAValue) -> SSAValue:
        """What the blocks have kept at a place."""
        k = self.k
        first, *others = [k.value(LoadOp(buffer, [index], [1])) for buffer in self.buffers]
        scalars = k.scalars(first.type)
        return reduce(scalars.add, others, first)


def keep_accumulators(k: KernelBuilder, engine: Engine, accumulators: SSAValue, tile: TileMemory) -> None:
    """Let all threads see the accumulators."""
    engine.keep(accumulators, tile)
    k.insert(BarrierOp())


class PartCode:
    """Stores of the accumulators of one part."""

    def __init__(self, k: KernelBuilder, epilogue: Epilogue, partial: Partial, nest: Nest, part: SSAValue) -> None:
        """`nest` has the scratch memory as its last operand."""
        self.k, self.part, self.pointer = k, part, partial.pointer(k)
        self.steps = [k.stride(partial.total), *(k.stride(step) for step in nest.operands[-1].steps)]

    def store(self, sum_: SSAValue, loops: Sequence[SSAValue]) -> None:
        self.k.insert(StoreOp(sum_, self.pointer, [self.part, *loops], self.steps))
