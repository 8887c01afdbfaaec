"""Pre-activations of the gates of eight hidden units, with the recurrent weights of a warp, in the threads that have
the cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from xdsl.dialects.builtin import f32

from mlirt.dialects.kernel.fragment import FragmentElementOp
from mlirt.dialects.kernel.simt import ShuffleOp
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Value, value_of
from mlirt.kernels.lib.language.values import bool_of
from mlirt.kernels.rnn.cuda.persistent_shape import COLUMNS, UNITS, PersistentShape
from mlirt.kernels.rnn.cuda.weights_in_registers import LaneRows, MatrixUnitRows

_CHAINS = 2  # of products, which need not wait for each other


@dataclass(frozen=True)
class CellPlace:
    """The sequence of a thread's cell, which is below `most`, and whether the cell exists (`True`: in all threads)."""

    sequence: Value
    most: int
    exists: bool


class Accumulators(ABC):
    """The accumulators for a warp's units; all threads have equally many cells, of the same unit."""

    unit: Value

    def __init__(self, k: KernelBuilder, shape: PersistentShape, lane: Value) -> None:
        self.k, self.shape, self.lane = k, shape, lane

    @abstractmethod
    def places(self) -> list[CellPlace]:
        """The sequences of a thread's cells."""

    @abstractmethod
    def of(self, hidden: Value, start: Value) -> list[list[Value]]:
        """For each cell of a thread the pre-activations of all gates, of the hidden vectors from element `start` on."""


class MatrixUnitAccumulators(Accumulators):
    """Half precision: accumulator (i, j, s, e) of thread (g, t) is gate 2 i + s of unit g, sequence 8 j + 2 t + e."""

    def __init__(
        self, k: KernelBuilder, shape: PersistentShape, rows: MatrixUnitRows, warp: Value, lane: Value
    ) -> None:
        super().__init__(k, shape, lane)
        self.rows = rows
        self.unit = k.add(k.mul(warp, UNITS), k.div(lane, 4))
        columns = [(j, e) for j in range(shape.column_tiles) for e in range(2)]
        self.columns = [(j, e) for j, e in columns if COLUMNS * j + e < shape.batch]

    def places(self) -> list[CellPlace]:
        k, batch = self.k, self.shape.batch
        pair = k.mul(k.rem(self.lane, 4), 2)
        found: list[CellPlace] = []
        for j, e in self.columns:
            sequence, most = k.add(pair, COLUMNS * j + e), COLUMNS * j + e + 7
            found.append(CellPlace(sequence, most, most <= batch or bool_of(k.compare("slt", sequence, batch))))
        return found

    def of(self, hidden: Value, start: Value) -> list[list[Value]]:
        chains = self.rows.accumulators(hidden, start, _CHAINS)
        return [[self._sum(chains, gate, j, e) for gate in range(self.shape.gates)] for j, e in self.columns]

    def _sum(self, chains: list[Value], gate: int, j: int, e: int) -> Value:
        at = (gate // 2 * self.shape.column_tiles + j) * 4 + gate % 2 * 2 + e
        parts = [self.k.value(FragmentElementOp(one, at)) for one in chains]
        return parts[0] if len(parts) == 1 else value_of(self.k.scalars(f32).add(*parts))


class LaneAccumulators(Accumulators):
    """Single precision: thread `8 g + u` has the accumulators of gate g of unit u, and threads 0 to 7 have the cells.
    """

    def __init__(
        self, k: KernelBuilder, shape: PersistentShape, rows: LaneRows, warp: Value, lane: Value
    ) -> None:
        super().__init__(k, shape, lane)
        self.rows = rows
        self.unit = k.add(k.mul(warp, UNITS), k.rem(lane, UNITS))

    def places(self) -> list[CellPlace]:
        k = self.k
        exists = bool_of(k.compare("slt", self.lane, UNITS))
        return [CellPlace(k.constant(n), n + 1, exists) for n in range(self.shape.batch)]

    def of(self, hidden: Value, start: Value) -> list[list[Value]]:
        k, found = self.k, list[list[Value]]()
        for n in range(self.shape.batch):
            own = self.rows.sum(hidden, k.add(start, n * self.shape.pitch))
            others = [k.value(ShuffleOp(own, UNITS * gate)) for gate in range(1, self.shape.gates)]
            found.append([own, *others])
        return found
