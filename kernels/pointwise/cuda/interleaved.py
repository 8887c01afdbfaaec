"""A pointwise op that deinterleaves neighbours in memory to a few lines, or interleaves lines, on a GPU.

The loop `short` is short, and the loop `along` next to it makes one run of neighbours of both in some operands, and
lines, one for each iteration of `short`, in others. Each thread has a tile of all of `short` and a vector of `along`:

parallel (.., some of along) {
  load a run, or a vector of each line; the body for each element; store a run, or a vector of each line
}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirt.dialects import symbolic
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.symbolic import Dim, modulo, product
from mlirt.dialects.tensor_types import is_bool
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.language import Value, build, builder, kernel, value_of
from mlirt.kernels.lib.language.simt_words import Access, element_at, fragment, load_fragment, store_fragment
from mlirt.kernels.lib.language.words import extent, inline, parallel, place, static_range, stride
from mlirt.kernels.lib.loops.stream import Stream
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.pointwise.generic import splat
from mlirt.kernels.pointwise.streams import streams_of

OPS = (PointwiseOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_MAX_ACCESS_BYTES = 16  # bytes of an access
_MIN_VECTOR_BYTES = 8  # bytes of a vector of a line; more would leave gaps between the accesses to a run
_MAX_INNER_ITERATIONS = 8  # iterations of the short loop
_MAX_THREAD_BYTES = 128  # bytes of an operand that a thread holds
_THREADS = 1  # times those that a device should have at least: that a launch should have


@dataclass(frozen=True)
class Interleaved:
    """The tiles: all of the loop `short` by `vector` iterations of the loop `along`."""

    extents: tuple[Dim, ...]
    streams: tuple[Stream, ...]
    along: int
    short: int
    vector: int

    @property
    def lines(self) -> int:
        count = self.extents[self.short]
        assert isinstance(count, int)
        return count

    def is_run(self, one: Stream) -> bool:
        """Whether a tile of an operand is one run of neighbours."""
        return one.steps[self.short] == 1 and one.steps[self.along] == self.lines

    def is_lines(self, one: Stream) -> bool:
        """Whether a tile of an operand is a vector of each line."""
        return one.steps[self.along] == 1

    def others(self) -> list[int]:
        return [axis for axis in range(len(self.extents)) if axis not in (self.along, self.short)]

    def fits(self) -> bool:
        """Whether every vector and run starts where its accesses may."""
        if modulo(self.extents[self.along], self.vector) != 0:
            return False
        return all(self._is_aligned(one) for one in self.streams if self.is_run(one) or self.is_lines(one))

    def _is_aligned(self, one: Stream) -> bool:
        count = self.vector * (self.lines if self.is_run(one) else 1)
        step = min(_MAX_ACCESS_BYTES // one.width, count & -count)
        axes = [*self.others(), *([] if self.is_run(one) else [self.short])]
        if count * one.width > _MAX_THREAD_BYTES or not one.has_own_memory():
            return False
        aligned = all(modulo(one.steps[axis], step) == 0 for axis in axes)
        return aligned and modulo(one.offset, step * one.width) == 0


def lower(op: PointwiseOp, lowering: Lowering) -> bool:
    found = streams_of(op, lowering)
    interleaved = None if found is None else _interleaved(*found, lowering)
    if interleaved is None:
        return False
    k = lowering.kernel("pointwise")
    numbers = [splat(k, value, lowering) for value in op.inputs]
    build(k, _interleave, op, interleaved, numbers)
    k.finish(op)
    return True


def _interleaved(extents: Sequence[Dim], streams: Sequence[Stream], lowering: Lowering) -> Interleaved | None:
    """The tiles of a nest; None where no operand is interleaved."""
    if any(is_bool(one.element) for one in streams):
        return None
    guesses, threads = typical_values(lowering.block), _THREADS * lowering.target.gpu.moves.threads
    elements = typical(product(extents), guesses)
    for short, lines in enumerate(extents):
        if not isinstance(lines, int) or not 1 < lines <= _MAX_INNER_ITERATIONS:
            continue
        for along in (axis for axis in range(len(extents)) if axis != short):
            vector = max(1, _MIN_VECTOR_BYTES // min(one.width for one in streams))
            while vector > 1 and elements < vector * lines * threads:
                vector //= 2
            while vector > 1:
                found = Interleaved(tuple(extents), tuple(streams), along, short, vector)
                if not _is_interleaved(found):
                    break
                if found.fits():
                    return found
                vector //= 2
    return None


def _is_interleaved(one: Interleaved) -> bool:
    """Whether runs become lines, or lines a run, and nothing else is far apart."""
    runs = [one.is_run(own) for own in one.streams]
    lines = [one.is_lines(own) and own.steps[one.short] != 0 for own in one.streams]
    known = [run or one.is_lines(own) or own.steps[one.along] == 0 for run, own in zip(runs, one.streams, strict=True)]
    return any(runs) and any(lines) and all(known) and (runs[-1] or lines[-1])


@kernel
def _interleave(op: PointwiseOp, tiles: Interleaved, numbers: Sequence[Value | None]) -> None:
    extents, short, along = list(tiles.extents), tiles.short, tiles.along
    extents[along] = symbolic.floor_div(extents[along], tiles.vector)
    for loops in parallel([size for axis, size in enumerate(extents) if axis != short]):
        places = [*loops[:short], place(0), *loops[short:]]
        places[along] = places[along] * tiles.vector
        _Tile(tiles, places).write(op, numbers)


@dataclass(frozen=True)
class _Tile:
    """What a thread does; elements of a tile are numbered line after line."""

    tiles: Interleaved
    places: Sequence[Value]

    @kernel
    def write(self, op: PointwiseOp, numbers: Sequence[Value | None]) -> None:
        tiles, (*inputs, output) = self.tiles, self.tiles.streams
        vector, elements = tiles.vector, static_range(tiles.lines * tiles.vector)
        columns = [
            self._read(one) if number is None else [number for _ in elements]
            for one, number in zip(inputs, numbers, strict=True)
        ]
        results = [inline(op.body, [own[at] for own in columns])[0] for at in elements]
        results = [value_of(builder().typed(result, output.element)) for result in results]
        memory = builder().memory(output.buffer, output.element, output.offset)
        if tiles.is_run(output):
            ordered = fragment([results[at] for at in self._run()])
            store_fragment(ordered, memory, self._index(output, 0), Access(elements, wide=True))
        else:
            for line in static_range(tiles.lines):
                values = fragment(results[line * vector : (line + 1) * vector])
                store_fragment(values, memory, self._index(output, line), Access(static_range(vector), wide=True))

    def _run(self) -> list[int]:
        """The numbers of the elements in the order of a run."""
        lines, vector = self.tiles.lines, self.tiles.vector
        return [line * vector + lane for lane in range(vector) for line in range(lines)]

    @kernel
    def _index(self, one: Stream, line: int) -> Value:
        index = place(0)
        for at, step in zip(self.places, one.steps, strict=True):
            index = index + at * stride(step)
        return index + extent(one.steps[self.tiles.short] * line)

    @kernel
    def _read(self, one: Stream) -> list[Value]:
        """The elements of an operand's tile."""
        tiles, memory = self.tiles, value_of(builder().memory(one.buffer, one.element, one.offset))
        elements = static_range(tiles.lines * tiles.vector)
        if tiles.is_run(one):
            read = load_fragment(memory, self._index(one, 0), Access(elements, wide=True))
            placed = {number: element_at(read, at) for at, number in enumerate(self._run())}
            return [placed[number] for number in elements]
        moves = one.steps[tiles.short] != 0
        lines = [self._line(one, memory, line) for line in static_range(tiles.lines if moves else 1)]
        return [element for line in static_range(tiles.lines) for element in lines[line if moves else 0]]

    @kernel
    def _line(self, one: Stream, memory: Value, line: int) -> list[Value]:
        lanes, index = static_range(self.tiles.vector), self._index(one, line)
        if one.steps[self.tiles.along] == 0:
            element = memory[index]
            return [element for _ in lanes]
        read = load_fragment(memory, index, Access(lanes, wide=True))
        return [element_at(read, lane) for lane in lanes]


__all__ = ["lower"]
