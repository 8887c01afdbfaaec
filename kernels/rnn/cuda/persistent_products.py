"""Products of the recurrent weights, which stay in registers, with the hidden state in shared memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from mlirt.dialects.kernel.simt import WARP
from mlirt.kernels.lib.language import Value, kernel, value_of
from mlirt.kernels.lib.language.simt_words import Access, element_at, load_fragment, shared_memory, store_fragment
from mlirt.kernels.lib.language.words import place, static_range, strided
from mlirt.kernels.rnn.cuda.persistent_shape import COLUMNS, UNITS, PersistentShape
from mlirt.kernels.rnn.cuda.weights_in_registers import LaneRows, MatrixUnitRows, lane_rows, matrix_unit_rows


@dataclass(frozen=True, eq=False)
class Products(ABC):
    """Each warp has the weights of all rows of its block for its share of the depth; `accumulators` [warp, row,
    sequence].
    """

    shape: PersistentShape
    element: Attribute
    warp: Value
    lane: Value
    accumulators: Value

    @property
    def size(self) -> int:
        """Elements of a hidden vector [sequence, depth], equally many in each thread."""
        shape = self.shape
        return -(-shape.sequences * shape.pitch // shape.threads) * shape.threads

    def hidden_memory(self) -> Value:
        """Shared memory for one hidden vector."""
        return shared_memory("hidden", self.size, self.element)

    @abstractmethod
    def multiply(self, hidden: Value) -> None:
        """Put this warp's sums of products with a hidden vector where those of all warps are."""

    @kernel
    def total(self, gate: int, unit: Value, sequence: Value) -> Value:
        """The sum of all warps, for a gate of a unit."""
        shape = self.shape
        warps, step = static_range(shape.warps), shape.rows * shape.sequences
        at = (unit + UNITS * gate) * shape.sequences + sequence
        parts = load_fragment(self.accumulators, at, Access([step * warp for warp in warps]))
        return _sum_of_pairs([element_at(parts, warp) for warp in warps])


@kernel
def _sum_of_pairs(values: Sequence[Value]) -> Value:
    """The sum of numbers: of pairs first, then of pairs of pairs."""
    if len(values) == 1:
        return values[0]
    pairs = [values[at] + values[at + 1] for at in static_range(0, len(values) - 1, 2)]
    return _sum_of_pairs([*pairs, *values[2 * len(pairs) :]])


@dataclass(frozen=True, eq=False)
class MatrixUnitProducts(Products):
    """Half precision."""

    rows: MatrixUnitRows

    @kernel
    def multiply(self, hidden: Value) -> None:
        """Accumulator 2 s + e of tile (i, j) of thread (g, t) has row 16 i + 8 s + g, column 8 j + 2 t + e."""
        shape, width = self.shape, self.shape.sequences
        (accumulators,) = self.rows.accumulators(hidden, self.warp * shape.share)
        at = (self.warp * shape.rows + self.lane // 4) * width + self.lane % 4 * 2
        offsets = [
            (16 * i + 8 * s) * width + COLUMNS * j + e
            for i in static_range(shape.tiles)
            for j in static_range(shape.column_tiles)
            for s in static_range(2)
            for e in static_range(2)
        ]
        store_fragment(accumulators, self.accumulators, at, Access(offsets))


@dataclass(frozen=True, eq=False)
class LaneProducts(Products):
    """Single precision: each thread has one row for its warp's share of the depth."""

    rows: LaneRows

    @kernel
    def multiply(self, hidden: Value) -> None:
        shape, row = self.shape, self.warp * self.shape.rows + self.lane
        for sequence in range(shape.batch) if shape.batch > 1 else [place(0)]:
            total = self.rows.sum(hidden, value_of(sequence * shape.pitch + self.warp * shape.share))
            strided(self.accumulators, shape.sequences, 1)[row, sequence] = total


@kernel
def products_of(shape: PersistentShape, element: Attribute, thread: Value, block: Value, weights: Value) -> Products:
    """The products of a thread, with its part of the weights loaded."""
    warp, lane = thread // WARP, thread % WARP
    part = block * shape.warps + warp
    accumulators = shared_memory("accumulators", shape.warps * shape.rows * shape.sequences, f32)
    if shape.half:
        rows = matrix_unit_rows(shape, element, lane, part, weights)
        return MatrixUnitProducts(shape, element, warp, lane, accumulators, rows)
    return LaneProducts(shape, element, warp, lane, accumulators, lane_rows(shape, lane, part, weights))
