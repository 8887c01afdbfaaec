"""Products of the recurrent weights, which stay in registers, with the hidden state in shared memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.dialects.builtin import Float16Type, f32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.core import StoreOp
from mlirt.dialects.kernel.dot_product import DotProductOp
from mlirt.dialects.kernel.fragment import (
    FillFragmentOp,
    FragmentElementOp,
    FragmentOp,
    LoadFragmentOp,
    StoreFragmentOp,
)
from mlirt.dialects.kernel.fragment_map import FragmentPartOp
from mlirt.dialects.kernel.matrix_unit import LoadMatrixOp, MmaKind, MmaOp
from mlirt.dialects.kernel.simt import WARP, SharedOp
from mlirt.passes.lowering.kernel_builder import KernelBuilder
from mlirt.passes.lowering.rnn.persistent_shape import COLUMNS, PersistentShape


class Products(ABC):
    """Each warp has the weights of all rows of its block for its share of the depth; `sums` [warp, row, sequence]."""

    def __init__(self, k: KernelBuilder, shape: PersistentShape, element: Attribute, thread: SSAValue) -> None:
        self.k, self.shape, self.element = k, shape, element
        self.warp, self.lane = k.div(thread, WARP), k.rem(thread, WARP)
        self.size = -(-shape.sequences * shape.pitch // shape.threads) * shape.threads
        self.sums = k.value(SharedOp(shape.warps * shape.rows * shape.sequences, f32))
        self.sums.name_hint = "sums"

    def hidden_memory(self) -> SSAValue:
        """Shared memory for one hidden vector [sequence, depth]."""
        hidden = self.k.value(SharedOp(self.size, self.element))
        hidden.name_hint = "hidden"
        return hidden

    @abstractmethod
    def multiply(self, hidden: SSAValue) -> None:
        """Put this warp's sums of products with a hidden vector where those of all warps are."""

    def total(self, gate: int, unit: SSAValue, sequence: SSAValue) -> SSAValue:
        """The sum of all warps, for a gate of a unit."""
        k, shape = self.k, self.shape
        row = k.add(unit, 8 * gate)
        step = shape.rows * shape.sequences
        at = k.add(k.mul(row, shape.sequences), sequence)
        parts = k.value(LoadFragmentOp(self.sums, at, [step * warp for warp in range(shape.warps)]))
        s = k.scalars(f32)
        values = [k.value(FragmentElementOp(parts, warp)) for warp in range(shape.warps)]
        while len(values) > 1:
            pairs = [s.add(*values[at : at + 2]) for at in range(0, len(values) - 1, 2)]
            values = pairs + values[len(values) // 2 * 2 :]
        return values[0]

    def _share(self) -> SSAValue:
        """The first hidden unit of this warp's share."""
        return self.k.mul(self.warp, self.shape.share)


class MatrixUnitProducts(Products):
    """Half precision: rows are gates and units, columns are sequences."""

    def __init__(
        self,
        k: KernelBuilder,
        shape: PersistentShape,
        element: Attribute,
        thread: SSAValue,
        block: SSAValue,
        weights: SSAValue,
    ) -> None:
        super().__init__(k, shape, element, thread)
        self.steps, count = shape.share // 16, 4 * shape.tiles
        first = k.mul(k.add(k.mul(block, shape.warps), self.warp), self.steps * WARP)
        start = k.mul(k.add(first, self.lane), count)
        self.weights = [
            k.value(LoadFragmentOp(weights, k.add(start, step * WARP * count), range(count), wide=True))
            for step in range(self.steps)
        ]

    def multiply(self, hidden: SSAValue) -> None:
        k, shape = self.k, self.shape
        columns = shape.column_tiles
        kind = MmaKind.F16 if isinstance(self.element, Float16Type) else MmaKind.BF16
        row, matrix = k.rem(self.lane, 8), k.div(self.lane, 8)
        at = k.add(k.add(k.mul(row, shape.pitch), k.mul(matrix, 8)), self._share())
        loaded = [
            k.value(LoadMatrixOp(hidden, k.add(at, COLUMNS * shape.pitch * j), self.steps // 2, 32))
            for j in range(columns)
        ]
        sums = k.value(FillFragmentOp(k.constant(0, f32), 4 * shape.tiles * columns))
        for step, left in enumerate(self.weights):
            sums = k.value(MmaOp(kind, sums, left, self._right(loaded, step), shape.tiles, columns))
        self._put(sums)

    def _right(self, loaded: Sequence[SSAValue], step: int) -> SSAValue:
        k = self.k
        if len(loaded) == 1:
            return k.value(FragmentPartOp(loaded[0], 2 * step, 2))
        parts = [k.value(FragmentElementOp(one, 2 * step + h)) for one in loaded for h in range(2)]
        return k.value(FragmentOp(parts))

    def _put(self, sums: SSAValue) -> None:
        """Accumulator 2 s + e of tile (i, j) of thread (g, t) has row 16 i + 8 s + g, column 8 j + 2 t + e."""
        k, shape = self.k, self.shape
        width = shape.sequences
        row = k.add(k.mul(self.warp, shape.rows), k.div(self.lane, 4))
        at = k.add(k.mul(row, width), k.mul(k.rem(self.lane, 4), 2))
        offsets = [
            (16 * i + 8 * s) * width + COLUMNS * j + e
            for i in range(shape.tiles)
            for j in range(shape.column_tiles)
            for s in range(2)
            for e in range(2)
        ]
        k.insert(StoreFragmentOp(sums, self.sums, at, offsets))


class LaneProducts(Products):
    """Single precision: each thread has one row for its warp's share of the depth."""

    def __init__(
        self,
        k: KernelBuilder,
        shape: PersistentShape,
        element: Attribute,
        thread: SSAValue,
        block: SSAValue,
        weights: SSAValue,
    ) -> None:
        super().__init__(k, shape, element, thread)
        first = k.mul(k.add(k.mul(block, shape.warps), self.warp), shape.share * WARP)
        at = k.add(first, k.mul(self.lane, 4))
        offsets = [four * 4 * WARP + one for four in range(shape.share // 4) for one in range(4)]
        self.weights = k.value(LoadFragmentOp(weights, at, offsets, wide=True))

    def multiply(self, hidden: SSAValue) -> None:
        k, shape = self.k, self.shape
        row = k.add(k.mul(self.warp, shape.rows), self.lane)

        def one(sequence: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            at = k.add(k.mul(sequence, shape.pitch), self._share())
            values = k.value(LoadFragmentOp(hidden, at, range(shape.share), wide=True))
            total = k.value(DotProductOp(self.weights, values))
            k.insert(StoreOp(total, self.sums, [row, sequence], [shape.sequences, 1]))
            return []

        if shape.batch == 1:
            one(k.constant(0), [])
        else:
            k.loop(shape.batch, [], one)
