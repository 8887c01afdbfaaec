"""A pointwise kernel that transposes operands in shared memory, tile by tile.

for each transposed operand: read its tile along its own memory, put it into shared memory
barrier
for each vector along the result: read the tiles and the other operands, compute, store
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.core import LoadOp
from mlirt.dialects.kernel.fragment import FragmentElementOp, FragmentOp, LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.simt import BarrierOp, BlockIdOp, SharedOp, ThreadIdOp
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.transposition.transposed_plan import THREADS, TransposedPlan
from mlirt.kernels.lib.loops.stream import Stream

# The scalars of one iteration, one per operand -> the element of the result.
Body = Callable[[list[SSAValue]], SSAValue]
_UNROLLED = 4
_INT32_LIMIT = 2**31


class TransposedTiles:
    """The code of one kernel. `numbers` are operands that are arguments instead of memory."""

    def __init__(self, k: KernelBuilder, plan: TransposedPlan, numbers: Sequence[SSAValue | None] = ()) -> None:
        self.k, self.plan = k, plan
        self.numbers = list(numbers) or [None] * len(plan.inputs)
        self.pointers = {
            position: k.named(k.memory(one.buffer, one.element, one.offset), "input")
            for position, one in enumerate(plan.inputs)
            if self.numbers[position] is None
        }
        self.result = k.named(k.memory(plan.output.buffer, plan.output.element, plan.output.offset), "output")
        self.steps = {one: [k.stride(step) for step in one.steps] for one in (*plan.inputs, plan.output)}
        self.cross_size, self.last_size = (k.size(plan.extents[axis]) for axis in (plan.cross, plan.last))
        self.tiles = {
            position: k.named(
                k.value(SharedOp(plan.tall * plan.pitch(position), plan.inputs[position].element)), "tile"
            )
            for position in plan.transposed
        }

    def write(self, body: Body) -> None:
        """Add the code; the kernel is finished by the caller."""
        k, plan = self.k, self.plan
        self.thread, block = k.value(ThreadIdOp()), k.value(BlockIdOp())
        self.thread.name_hint, block.name_hint = "thread", "block"
        across, along = (k.size(count) for count in plan.tiles)
        row, rest = k.rem(block, across), k.div(block, across)
        column, rest = k.rem(rest, along), k.div(rest, along)
        self.first_row = k.named(k.mul(row, plan.tall), "first_row")
        self.first_column = k.named(k.mul(column, plan.wide), "first_column")
        self.place: dict[int, SSAValue] = {}
        for axis in reversed(plan.outer):
            size = k.size(plan.extents[axis])
            self.place[axis], rest = k.rem(rest, size), k.div(rest, size)
        for position in plan.transposed:
            self._fill(position)
        k.insert(BarrierOp())
        vectors = plan.tall * plan.wide // plan.result_vector
        steps = -(-vectors // THREADS)
        if steps <= _UNROLLED:
            for step in range(steps):
                self._compute(k.add(self.thread, step * THREADS), vectors, body)
        else:
            k.loop(steps, [], lambda step, _: self._compute(k.add(self.thread, k.mul(step, THREADS)), vectors, body))
        largest = max(_bytes(k, one) for one in (*plan.inputs, plan.output))
        if largest < _INT32_LIMIT:
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)

    def _fill(self, position: int) -> None:
        """Read a tile: all accesses of a thread first, so that they are under way together."""
        k, plan, one = self.k, self.plan, self.plan.inputs[position]
        vector, pitch = plan.tile_vector(position), plan.pitch(position)
        per_column = plan.tall // vector
        vectors = per_column * plan.wide
        found: list[tuple[SSAValue, SSAValue, SSAValue]] = []
        for step in range(-(-vectors // THREADS)):
            unit = k.add(self.thread, step * THREADS)
            row = k.named(k.mul(k.rem(unit, per_column), vector), "row")
            column = k.named(k.div(unit, per_column), "column")
            inside = self._count(row, column, vector, is_partial=vectors % THREADS != 0)
            index = self._index(one, k.add(self.first_row, row), k.add(self.first_column, column))
            read = LoadFragmentOp(self.pointers[position], index, range(vector), valid=inside, wide=True)
            place = k.add(k.mul(row, pitch), column)
            found.append((k.value(read), place, inside if inside is not None else place))
        offsets = [lane * pitch for lane in range(vector)]
        for value, place, inside in found:
            valid = None if inside is place else inside
            k.insert(StoreFragmentOp(value, self.tiles[position], place, offsets, valid=valid))

    def _count(self, row: SSAValue, column: SSAValue, vector: int, *, is_partial: bool = False) -> SSAValue | None:
        """How many elements of a vector at a place of the tile are in the box, all or none; None: surely all."""
        k, plan = self.k, self.plan
        sizes = plan.extents[plan.cross], plan.extents[plan.last]
        inside: SSAValue | None = None
        checks = (
            (row, self.first_row, plan.tall, sizes[0], self.cross_size),
            (column, self.first_column, plan.wide, sizes[1], self.last_size),
        )
        for at, first, side, size, bound in checks:
            if not isinstance(size, int) or size % side:
                inside = k.both(inside, k.compare("slt", k.add(first, at), bound))
        if is_partial:
            inside = k.both(inside, k.compare("slt", column, plan.wide))
        return None if inside is None else k.select(inside, vector, 0)

    def _index(self, one: Stream, row: SSAValue, column: SSAValue) -> SSAValue:
        """The element of an operand at an iteration."""
        k, plan = self.k, self.plan
        places = {**self.place, plan.cross: row, plan.last: column}
        index = k.constant(0)
        for axis, step in enumerate(self.steps[one]):
            if step != 0:
                index = k.add(index, k.mul(places[axis], step))
        return index

    def _compute(self, unit: SSAValue, vectors: int, body: Body) -> list[SSAValue]:
        """One vector of the result."""
        k, plan = self.k, self.plan
        vector = plan.result_vector
        per_row = plan.wide // vector
        row = k.named(k.div(unit, per_row), "row")
        column = k.named(k.mul(k.rem(unit, per_row), vector), "column")
        inside = self._count(row, column, vector)
        if vectors % THREADS:
            fits = k.compare("slt", row, plan.tall)
            inside = k.select(fits, vector if inside is None else inside, 0)

        def store() -> None:
            at = k.add(self.first_row, row), k.add(self.first_column, column)
            columns = [self._operand(position, row, column, at) for position in range(len(plan.inputs))]
            results = [k.typed(body([own[lane] for own in columns]), plan.output.element) for lane in range(vector)]
            index = self._index(plan.output, *at)
            k.insert(StoreFragmentOp(k.value(FragmentOp(results)), self.result, index, range(vector), wide=True))

        if inside is None:
            store()
        else:
            k.when(k.compare("sgt", inside, 0), store)
        return []

    def _operand(self, position: int, row: SSAValue, column: SSAValue, at: tuple[SSAValue, SSAValue]) -> list[SSAValue]:
        """An element of an operand for each element of the vector."""
        k, plan, one = self.k, self.plan, self.plan.inputs[position]
        vector, number = plan.result_vector, self.numbers[position]
        if number is not None:
            return [number] * vector
        if position in self.tiles:
            index = k.add(k.mul(row, plan.pitch(position)), column)
            word = min(vector, max(1, 4 // one.width))
            parts = [
                LoadFragmentOp(self.tiles[position], k.add(index, start), range(word), wide=True)
                for start in range(0, vector, word)
            ]
            return [k.value(FragmentElementOp(part, lane)) for part in map(k.value, parts) for lane in range(word)]
        index, step = self._index(one, *at), self.steps[one][plan.last]
        if step == 0 or vector == 1:
            return [k.value(LoadOp(self.pointers[position], [index], [1]))] * vector
        stride = None if step == 1 else k.index(step)
        wide = step == 1 and one.vector(plan.last, plan.extents) >= min(vector, 16 // one.width)
        part = k.value(LoadFragmentOp(self.pointers[position], index, range(vector), stride=stride, wide=wide))
        return [k.value(FragmentElementOp(part, lane)) for lane in range(vector)]


def _bytes(k: KernelBuilder, one: Stream) -> int:
    size = k.lowering.placements.size_of(one.buffer)
    return size if isinstance(size, int) else _INT32_LIMIT
