"""A pointwise kernel that transposes operands in shared memory, tile by tile.

for each transposed operand: read its tile along its own memory, put it into shared memory
barrier
for each vector along the result: read the tiles and the other operands, compute, store
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, i64

from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.transposition.transposed_plan import THREADS, TransposedPlan
from mlirt.kernels.lib.language import Index, Value, build, builder, kernel
from mlirt.kernels.lib.language.simt_words import (
    Access,
    block_id,
    element_at,
    fragment,
    load_fragment,
    shared_memory,
    store_fragment,
    sync_threads,
    thread_id,
)
from mlirt.kernels.lib.language.words import extent, static_range
from mlirt.kernels.lib.language.words import place as at_place
from mlirt.kernels.lib.loops.stream import Stream

# The scalars of one iteration, one per operand -> the element of the result.
Body = Callable[[Sequence[Value]], Value]
_UNROLLED = 4


class TransposedTiles:
    """The code of one kernel. `numbers` are operands that are arguments instead of memory."""

    def __init__(self, k: KernelBuilder, plan: TransposedPlan, numbers: Sequence[Value | None] = ()) -> None:
        self.plan, self.numbers = plan, list(numbers) or [None] * len(plan.inputs)
        self.pointers = {
            position: k.named(k.memory(one.buffer, one.element, one.offset), "input")
            for position, one in enumerate(plan.inputs)
            if self.numbers[position] is None
        }
        self.result = k.named(k.memory(plan.output.buffer, plan.output.element, plan.output.offset), "output")
        self.steps = {one: [k.stride(step) for step in one.steps] for one in (*plan.inputs, plan.output)}
        self.cross_size, self.last_size = (k.size(plan.extents[axis]) for axis in (plan.cross, plan.last))
        sizes = {position: plan.tall * plan.pitch(position) for position in plan.transposed}
        self.tiles = {
            position: build(k, shared_memory, "tile", size, plan.inputs[position].element)
            for position, size in sizes.items()
        }
        size_of = k.lowering.placements.size_of
        if k.lowering.fits_int32((), *(size_of(one.buffer) for one in (*plan.inputs, plan.output))):
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)

    @kernel
    def write(self, body: Body) -> None:
        """Add the code; the kernel is finished by the caller."""
        plan, thread, block = self.plan, thread_id(), block_id()
        place = self._place(block)
        for position in plan.transposed:
            self._fill(position, thread, place)
        sync_threads()
        vectors = plan.tall * plan.wide // plan.result_vector
        steps = -(-vectors // THREADS)
        for step in static_range(steps) if steps <= _UNROLLED else range(steps):
            self._compute(thread + step * THREADS, vectors, place, body)

    @kernel
    def _place(self, block: Value) -> Mapping[int, Value]:
        """Where the tile of a block starts along each loop."""
        plan, (across, along) = self.plan, [extent(count) for count in self.plan.tiles]
        row, rest = block % across, block // across
        column, rest = rest % along, rest // along
        first_row, first_column = row * plan.tall, column * plan.wide
        place = {plan.cross: first_row, plan.last: first_column}
        for axis in reversed(plan.outer):
            size = extent(plan.extents[axis])
            place[axis], rest = rest % size, rest // size
        return place

    @kernel
    def _fill(self, position: int, thread: Value, place: Mapping[int, Value]) -> None:
        """Read a tile: all accesses of a thread first, so that they are under way together."""
        plan, one = self.plan, self.plan.inputs[position]
        vector, pitch = plan.tile_vector(position), plan.pitch(position)
        found: list[tuple[Value, Value, Index | None]] = []
        per_column = plan.tall // vector
        vectors = per_column * plan.wide
        for step in static_range(-(-vectors // THREADS)):
            unit = thread + step * THREADS
            row = unit % per_column * vector
            column = unit // per_column
            valid = self._count(row, column, place, vector, is_partial=vectors % THREADS != 0)
            index = self._index(one, place, row, column)
            read = load_fragment(self.pointers[position], index, Access(static_range(vector), valid=valid, wide=True))
            found = [*found, (read, row * pitch + column, valid)]
        for read, at, valid in found:
            offsets = [lane * pitch for lane in static_range(vector)]
            store_fragment(read, self.tiles[position], at, Access(offsets, valid=valid))

    @kernel
    def _count(
        self, row: Value, column: Value, place: Mapping[int, Value], vector: int, *, is_partial: bool = False
    ) -> Index | None:
        """How many elements of a vector at a place of the tile are in the box, all or none; None: surely all."""
        plan, inside = self.plan, True
        height, width = plan.extents[plan.cross], plan.extents[plan.last]
        if not isinstance(height, int) or height % plan.tall:
            inside = place[plan.cross] + row < self.cross_size
        if not isinstance(width, int) or width % plan.wide:
            inside = inside and place[plan.last] + column < self.last_size
        if is_partial:
            inside = inside and column < plan.wide
        return None if inside is True else vector if inside else 0

    @kernel
    def _index(self, one: Stream, place: Mapping[int, Value], row: Value, column: Value) -> Value:
        """The element of an operand at a place of the tile."""
        plan, index = self.plan, at_place(0)
        places = {**place, plan.cross: place[plan.cross] + row, plan.last: place[plan.last] + column}
        for axis, step in enumerate(self.steps[one]):
            if known(step) != 0:
                index = index + places[axis] * step
        return index

    @kernel
    def _compute(self, unit: Value, vectors: int, place: Mapping[int, Value], body: Body) -> None:
        """One vector of the result."""
        plan, vector = self.plan, self.plan.result_vector
        per_row = plan.wide // vector
        row = unit // per_row
        column = unit % per_row * vector
        count = self._count(row, column, place, vector)
        if vectors % THREADS:
            count = (vector if count is None else count) if row < plan.tall else 0
        if count is None or count > 0:
            columns = [self._operand(position, row, column, place) for position in range(len(plan.inputs))]
            results = [body([own[lane] for own in columns]) for lane in static_range(vector)]
            results = [builder().typed(result, plan.output.element) for result in results]
            index = self._index(plan.output, place, row, column)
            store_fragment(fragment(results), self.result, index, Access(static_range(vector), wide=True))

    @kernel
    def _operand(self, position: int, row: Value, column: Value, place: Mapping[int, Value]) -> list[Value]:
        """An element of an operand for each element of the vector."""
        plan, one, number = self.plan, self.plan.inputs[position], self.numbers[position]
        vector = plan.result_vector
        if number is not None:
            return [number for _ in static_range(vector)]
        if position in self.tiles:
            index = row * plan.pitch(position) + column
            word = min(vector, max(1, 4 // one.width))
            starts, whole = static_range(0, vector, word), Access(static_range(word), wide=True)
            parts = [load_fragment(self.tiles[position], index + start, whole) for start in starts]
            return [element_at(part, lane) for part in parts for lane in static_range(word)]
        index, step = self._index(one, place, row, column), self.steps[one][plan.last]
        if known(step) == 0 or vector == 1:
            element = self.pointers[position][index]
            return [element for _ in static_range(vector)]
        is_dense = known(step) == 1
        wide = is_dense and one.vector(plan.last, plan.extents) >= min(vector, 16 // one.width)
        lanes = Access(static_range(vector), None if is_dense else at_place(step), wide=wide)
        part = load_fragment(self.pointers[position], index, lanes)
        return [element_at(part, lane) for lane in static_range(vector)]
