"""Rows of recurrent weights in the registers of a warp, and their products with hidden states in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import Float16Type, f32
from xdsl.ir import Attribute

from mlirt.dialects.kernel.dot_product import DotProductOp
from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.dialects.kernel.simt import WARP
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.simt_words import (
    Access,
    element_at,
    fragment,
    load_fragment,
    load_matrix,
    mma,
    part_of,
    zeros,
)
from mlirt.kernels.lib.language.words import static_range
from mlirt.kernels.rnn.cuda.persistent_shape import COLUMNS, PersistentShape


@dataclass(frozen=True, eq=False)
class MatrixUnitRows:
    """Half precision: rows are gates and units, columns are sequences; a fragment of weights for each step of 16."""

    shape: PersistentShape
    kind: MmaKind
    lane: Value
    weights: Sequence[Value]

    @kernel
    def accumulators(self, hidden: Value, first: Value, chains: int = 1) -> list[Value]:
        """The accumulators of products with the hidden states from element `first` on.

        Those of several `chains` are to be added; one need not wait for another.
        """
        shape, steps, columns = self.shape, len(self.weights), self.shape.column_tiles
        chains = min(chains, steps)
        at = self.lane % 8 * shape.pitch + self.lane // 8 * 8 + first
        starts = [at + COLUMNS * shape.pitch * column for column in static_range(columns)]
        loaded = [load_matrix(hidden, start, steps // 2, 32) for start in starts]
        accumulators = [zeros(f32, 4 * shape.tiles * columns) for _ in static_range(chains)]
        for step, left in enumerate(self.weights):
            factors = (left, self._right(loaded, 2 * step))
            accumulators[step % chains] = mma(self.kind, accumulators[step % chains], *factors, shape.tiles, columns)
        return accumulators

    @kernel
    def _right(self, loaded: Sequence[Value], first: int) -> Value:
        if len(loaded) == 1:
            return part_of(loaded[0], first, 2)
        return fragment([element_at(one, first + half) for one in loaded for half in static_range(2)])


@kernel
def matrix_unit_rows(
    shape: PersistentShape, element: Attribute, lane: Value, part: Value, weights: Value
) -> MatrixUnitRows:
    """The rows of a warp, loaded; `part` says which of the packed weights they are."""
    kind = MmaKind.F16 if isinstance(element, Float16Type) else MmaKind.BF16
    steps, count = shape.share // 16, 4 * shape.tiles
    start, access = (part * (steps * WARP) + lane) * count, Access(static_range(count), wide=True)
    loaded = [load_fragment(weights, start + step * WARP * count, access) for step in static_range(steps)]
    return MatrixUnitRows(shape, kind, lane, loaded)


@dataclass(frozen=True, eq=False)
class LaneRows:
    """Single precision: thread `8 g + u` has the row of gate g of unit u."""

    shape: PersistentShape
    weights: Value

    @kernel
    def sum(self, hidden: Value, first: Value) -> Value:
        """The product of this thread's row with the hidden state from element `first` on."""
        values = load_fragment(hidden, first, Access(static_range(self.shape.share), wide=True))
        return emit(DotProductOp(self.weights, values))


@kernel
def lane_rows(shape: PersistentShape, lane: Value, part: Value, weights: Value) -> LaneRows:
    """The row of a thread, loaded; `part` says which of the packed weights its warp has."""
    offsets = [four * 4 * WARP + one for four in static_range(shape.share // 4) for one in static_range(4)]
    start = part * (shape.share * WARP) + lane * 4
    return LaneRows(shape, load_fragment(weights, start, Access(offsets, wide=True)))
