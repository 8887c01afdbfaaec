"""From the accumulators of a tile to memory: the epilogue, or the parts of a split-K sum for a second launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, memory_order, strides, with_order
from mlirt.kernels.lib.cuda.tiles.shape import WarpTile
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory
from mlirt.kernels.lib.epilogue import ProductOp, extra_operands, store_finished
from mlirt.kernels.lib.language import Index, Value, build, builder, kernel, value_of
from mlirt.kernels.lib.language.hopper_words import remote_shared, sync_cluster
from mlirt.kernels.lib.language.words import Box, Strided, constant, parallel, reduction, stride, strided
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

    def pointer(self) -> Value:
        return builder().memory(self.buffer, self.element)

    def memory(self, nest: Nest) -> Strided:
        """The parts by their number and the indices along the loops of a nest that has them as its last operand."""
        return strided(self.pointer(), stride(self.total), *[stride(step) for step in nest.operands[-1].steps])


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
    accumulators = strided(partial.pointer(), stride(partial.total), *steps)
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
        self, shape: WarpTile, thread: Value, tile: TileMemory, part: Value, *, along_rows: bool = False
    ) -> None:
        """`part` is the number of this block in its cluster, if there is one."""
        self.shape, self.tile, self.part, self.buffers = shape, tile, part, [tile.buffer]
        if shape.is_cluster:
            sync_cluster()
            self.buffers = [remote_shared(tile.buffer, rank) for rank in range(shape.parts)]
        side, lines = (shape.rows, shape.columns) if along_rows else (shape.columns, shape.rows)
        self.step = shape.threads // side
        self.lines = lines // self.step
        self.rounds = -(-self.lines // len(self.buffers))
        self.row, self.column = self._first(thread, side, along_rows)

    @kernel
    def _first(self, thread: Value, side: int, along_rows: bool) -> tuple[Value, Value]:
        """The row and the column of this thread's first place."""
        near, far = thread % side, thread // side
        return (near, far) if along_rows else (far, near)

    @kernel
    def line(self, number: Index) -> Value:
        """The place of a number among those of this thread: it has every `step`-th row of its column, or the other
        way round, and of a cluster this block's.
        """
        blocks = len(self.buffers)
        return value_of(number if blocks == 1 else number * blocks + self.part)

    @kernel
    def has(self, line: Value) -> bool:
        """Whether there is such a place; `True` where there always is."""
        return self.lines % len(self.buffers) == 0 or line < self.lines

    @kernel
    def sum(self, row: Value, column: Value) -> Value:
        """What the blocks have kept at a place of the tile."""
        index = self.tile.at(0, row, column)
        return value_of(sum(value_of(buffer)[index] for buffer in self.buffers))
