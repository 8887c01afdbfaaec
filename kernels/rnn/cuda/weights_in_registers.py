"""Rows of recurrent weights in the registers of a warp, and their products with hidden states in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import Float16Type, f32
from xdsl.ir import Attribute

from mlirt.dialects.kernel.dot_product import DotProductOp
from mlirt.dialects.kernel.fragment import FillFragmentOp, FragmentElementOp, FragmentOp, LoadFragmentOp
from mlirt.dialects.kernel.fragment_map import FragmentPartOp
from mlirt.dialects.kernel.matrix_unit import LoadMatrixOp, MmaKind, MmaOp
from mlirt.dialects.kernel.simt import WARP
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Value
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
        self.steps, count = shape.share // 16, 4 * shape.tiles
        start = k.mul(k.add(k.mul(part, self.steps * WARP), lane), count)
        self.weights = [
            k.value(LoadFragmentOp(weights, k.add(start, step * WARP * count), range(count), wide=True))
            for step in range(self.steps)
        ]

    def accumulators(self, hidden: Value, first: Value, chains: int = 1) -> list[Value]:
        """The accumulators of products with the hidden states from element `first` on.

        Those of several `chains` are to be added; one need not wait for another.
        """
        k, shape = self.k, self.shape
        columns = shape.column_tiles
        row, matrix = k.rem(self.lane, 8), k.div(self.lane, 8)
        at = k.add(k.add(k.mul(row, shape.pitch), k.mul(matrix, 8)), first)
        loaded = [
            k.value(LoadMatrixOp(hidden, k.add(at, COLUMNS * shape.pitch * j), self.steps // 2, 32))
            for j in range(columns)
        ]
        count = min(chains, self.steps)
        accumulators: list[Value] = [
            k.value(FillFragmentOp(k.constant(0, f32), 4 * shape.tiles * columns)) for _ in range(count)
        ]
        for step, left in enumerate(self.weights):
            right = self._right(loaded, step)
            accumulators[step % count] = k.value(
                MmaOp(self.kind, accumulators[step % count], left, right, shape.tiles, columns)
            )
        return accumulators

    def _right(self, loaded: Sequence[Value], step: int) -> Value:
        k = self.k
        if len(loaded) == 1:
            return k.value(FragmentPartOp(loaded[0], 2 * step, 2))
        parts = [k.value(FragmentElementOp(one, 2 * step + h)) for one in loaded for h in range(2)]
        return k.value(FragmentOp(parts))


class LaneRows:
    """Single precision: thread `8 g + u` has the row of gate g of unit u; `part` says which of the packed weights."""

    def __init__(
        self, k: KernelBuilder, shape: PersistentShape, lane: Value, part: Value, weights: Value
    ) -> None:
        self.k, self.shape = k, shape
        at = k.add(k.mul(part, shape.share * WARP), k.mul(lane, 4))
        offsets = [four * 4 * WARP + one for four in range(shape.share // 4) for one in range(4)]
        self.weights = k.value(LoadFragmentOp(weights, at, offsets, wide=True))

    def sum(self, hidden: Value, first: Value) -> Value:
        """The product of this thread's row with the hidden state from element `first` on."""
        values = self.k.value(LoadFragmentOp(hidden, first, range(self.shape.share), wide=True))
        return self.k.value(DotProductOp(self.weights, values))
