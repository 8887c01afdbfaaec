"""Pre-activations of the gates of eight hidden units, with the recurrent weights of a warp, in the threads that have
the cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from mlirt.kernels.lib.language import Value, kernel, value_of
from mlirt.kernels.lib.language.simt_words import element_at, shuffle_xor
from mlirt.kernels.lib.language.words import place, static_range
from mlirt.kernels.rnn.cuda.persistent_shape import COLUMNS, UNITS, PersistentShape
from mlirt.kernels.rnn.cuda.weights_in_registers import LaneRows, MatrixUnitRows

_CHAINS = 2  # of products, which need not wait for each other


@dataclass(frozen=True)
class CellPlace:
    """The sequence of a thread's cell, which is below `most`, and whether the cell exists (`True`: in all threads)."""

    sequence: Value
    most: int
    exists: bool


@dataclass(frozen=True, eq=False)
class Accumulators(ABC):
    """The accumulators for a warp's units; all threads have equally many cells, of the same unit."""

    shape: PersistentShape
    lane: Value
    unit: Value

    @abstractmethod
    def places(self) -> list[CellPlace]:
        """The sequences of a thread's cells."""

    @abstractmethod
    def of(self, hidden: Value, start: Value) -> list[list[Value]]:
        """For each cell of a thread the pre-activations of all gates, of the hidden vectors from element `start` on."""


@dataclass(frozen=True, eq=False)
class MatrixUnitAccumulators(Accumulators):
    """Half precision: accumulator (i, j, s, e) of thread (g, t) is gate 2 i + s of unit g, sequence 8 j + 2 t + e."""

    rows: MatrixUnitRows

    @property
    def _columns(self) -> list[tuple[int, int]]:
        """The j and e of a thread's cells."""
        columns = [(j, e) for j in range(self.shape.column_tiles) for e in range(2)]
        return [(j, e) for j, e in columns if COLUMNS * j + e < self.shape.batch]

    @kernel
    def places(self) -> list[CellPlace]:
        batch, pair, found = self.shape.batch, self.lane % 4 * 2, list[CellPlace]()
        for j, e in self._columns:
            sequence, most = pair + (COLUMNS * j + e), COLUMNS * j + e + 7
            found.append(CellPlace(sequence, most, most <= batch or sequence < batch))
        return found

    @kernel
    def of(self, hidden: Value, start: Value) -> list[list[Value]]:
        chains = self.rows.accumulators(hidden, start, _CHAINS)
        return [[self._sum(chains, gate, j, e) for gate in static_range(self.shape.gates)] for j, e in self._columns]

    @kernel
    def _sum(self, chains: Sequence[Value], gate: int, j: int, e: int) -> Value:
        at = (gate // 2 * self.shape.column_tiles + j) * 4 + gate % 2 * 2 + e
        return value_of(sum([element_at(one, at) for one in chains]))


@kernel
def matrix_unit_accumulators(shape: PersistentShape, rows: MatrixUnitRows, warp: Value, lane: Value) -> Accumulators:
    """The accumulators of a warp's rows in half precision."""
    return MatrixUnitAccumulators(shape, lane, warp * UNITS + lane // 4, rows)


@dataclass(frozen=True, eq=False)
class LaneAccumulators(Accumulators):
    """Single precision: thread `8 g + u` has the accumulators of gate g of unit u; threads 0 to 7 have the cells."""

    rows: LaneRows

    @kernel
    def places(self) -> list[CellPlace]:
        exists = self.lane < UNITS
        return [CellPlace(place(n), n + 1, exists) for n in static_range(self.shape.batch)]

    @kernel
    def of(self, hidden: Value, start: Value) -> list[list[Value]]:
        found = list[list[Value]]()
        for n in static_range(self.shape.batch):
            own = self.rows.sum(hidden, start + n * self.shape.pitch)
            others = [shuffle_xor(own, UNITS * gate) for gate in static_range(1, self.shape.gates)]
            found.append([own, *others])
        return found


@kernel
def lane_accumulators(shape: PersistentShape, rows: LaneRows, warp: Value, lane: Value) -> Accumulators:
    """The accumulators of a warp's rows in single precision."""
    return LaneAccumulators(shape, lane, warp * UNITS + lane % UNITS, rows)
