"""Rows of recurrent weights in the registers of a warp, and their products with hidden states in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import Float16Type, f32
from xdsl.ir import Attribute

from mlirt.dialects.kernel.dot_product import DotProductOp
from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.dialects.kernel.simt import WARP
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Value, build, kernel
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


class MatrixUnitRows:
    """Half precision: rows are gates and units, columns are sequences; `part` says which of the packed weights."""

    def __init__(
        self,
        k: KernelBuilder,
        shape: PersistentShape,
        element: Attribute,
        lane: Value,
        part: Value,
        weights: Value,
    ) -> None:
        self.k, self.shape, self.lane = k, shape, lane
        self.kind = MmaKind.F16 if isinstance(element, Float16Type) else MmaKind.BF16
        self.steps = shape.share // 16
        self.weights = build(k, self._load, part, weights)

    @kernel
    def _load(self, part: Value, weights: Value) -> list[Value]:
        count = 4 * self.shape.tiles
        start, access = (part * (self.steps * WARP) + self.lane) * count, Access(static_range(count), wide=True)
        return [load_fragment(weights, start + step * WARP * count, access) for step in static_range(self.steps)]

    def accumulators(self, hidden: Value, first: Value, chains: int = 1) -> list[Value]:
        """The accumulators of products with the hidden states from element `first` on.

        Those of several `chains` are to be added; one need not wait for another.
        """
        return build(self.k, self._multiply, hidden, first, min(chains, self.steps))

    @kernel
    def _multiply(self, hidden: Value, first: Value, chains: int) -> list[Value]:
        shape, columns = self.shape, self.shape.column_tiles
        at = self.lane % 8 * shape.pitch + self.lane // 8 * 8 + first
        starts = [at + COLUMNS * shape.pitch * column for column in static_range(columns)]
        loaded = [load_matrix(hidden, start, self.steps // 2, 32) for start in starts]
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


class LaneRows:
    """Single precision: thread `8 g + u` has the row of gate g of unit u; `part` says which of the packed weights."""

    def __init__(self, k: KernelBuilder, shape: PersistentShape, lane: Value, part: Value, weights: Value) -> None:
        self.k, self.shape = k, shape
        self.weights = build(k, self._load, lane, part, weights)

    @kernel
    def _load(self, lane: Value, part: Value, weights: Value) -> Value:
        offsets = [four * 4 * WARP + one for four in static_range(self.shape.share // 4) for one in static_range(4)]
        return load_fragment(weights, part * (self.shape.share * WARP) + lane * 4, Access(offsets, wide=True))

    def sum(self, hidden: Value, first: Value) -> Value:
        """The product of this thread's row with the hidden state from element `first` on."""
        return build(self.k, self._product, hidden, first)

    @kernel
    def _product(self, hidden: Value, first: Value) -> Value:
        values = load_fragment(hidden, first, Access(static_range(self.shape.share), wide=True))
        return emit(DotProductOp(self.weights, values))
