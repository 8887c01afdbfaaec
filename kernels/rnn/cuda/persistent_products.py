"""Products of the recurrent weights, which stay in registers, with the hidden state in shared memory."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from mlirt.dialects.kernel.fragment import FragmentElementOp, LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.simt import WARP, SharedOp
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Value, kernel, value_of
from mlirt.kernels.lib.language.words import place, strided
from mlirt.kernels.rnn.cuda.persistent_shape import COLUMNS, PersistentShape
from mlirt.kernels.rnn.cuda.weights_in_registers import LaneRows, MatrixUnitRows


class Products(ABC):
    """Each warp has the weights of all rows of its block for its share of the depth; `accumulators` [warp, row,
    sequence].
    """

    def __init__(
        self, k: KernelBuilder, shape: PersistentShape, element: Attribute, thread: Value, block: Value
    ) -> None:
        self.k, self.shape, self.element = k, shape, element
        self.warp, self.lane = k.div(thread, WARP), k.rem(thread, WARP)
        self.part = k.add(k.mul(block, shape.warps), self.warp)
        self.size = -(-shape.sequences * shape.pitch // shape.threads) * shape.threads
        self.accumulators = k.value(SharedOp(shape.warps * shape.rows * shape.sequences, f32))
        self.accumulators.name_hint = "accumulators"

    def hidden_memory(self) -> Value:
        """Shared memory for one hidden vector [sequence, depth]."""
        hidden = self.k.value(SharedOp(self.size, self.element))
        hidden.name_hint = "hidden"
        return hidden

    @abstractmethod
    def multiply(self, hidden: Value) -> None:
        """Put this warp's sums of products with a hidden vector where those of all warps are."""

    def total(self, gate: int, unit: Value, sequence: Value) -> Value:
        """The sum of all warps, for a gate of a unit."""
        k, shape = self.k, self.shape
        row = k.add(unit, 8 * gate)
        step = shape.rows * shape.sequences
        at = k.add(k.mul(row, shape.sequences), sequence)
        parts = k.value(LoadFragmentOp(self.accumulators, at, [step * warp for warp in range(shape.warps)]))
        s = k.scalars(f32)
        values = [k.value(FragmentElementOp(parts, warp)) for warp in range(shape.warps)]
        while len(values) > 1:
            pairs = [value_of(s.add(*values[at : at + 2])) for at in range(0, len(values) - 1, 2)]
            values = pairs + values[len(values) // 2 * 2 :]
        return values[0]

    @property
    def share(self) -> Value:
        """The first hidden unit of this warp's share."""
        return self.k.mul(self.warp, self.shape.share)


class MatrixUnitProducts(Products):
    """Half precision."""

    def __init__(
        self,
        k: KernelBuilder,
        shape: PersistentShape,
        element: Attribute,
        thread: Value,
        block: Value,
        weights: Value,
    ) -> None:
        super().__init__(k, shape, element, thread, block)
        self.rows = MatrixUnitRows(k, shape, element, self.lane, self.part, weights)

    def multiply(self, hidden: Value) -> None:
        """Accumulator 2 s + e of tile (i, j) of thread (g, t) has row 16 i + 8 s + g, column 8 j + 2 t + e."""
        k, shape = self.k, self.shape
        (accumulators,) = self.rows.accumulators(hidden, self.share)
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
        k.insert(StoreFragmentOp(accumulators, self.accumulators, at, offsets))


class LaneProducts(Products):
    """Single precision: each thread has one row for its warp's share of the depth."""

    def __init__(
        self,
        k: KernelBuilder,
        shape: PersistentShape,
        element: Attribute,
        thread: Value,
        block: Value,
        weights: Value,
    ) -> None:
        super().__init__(k, shape, element, thread, block)
        self.rows = LaneRows(k, shape, self.lane, self.part, weights)

    @kernel
    def multiply(self, hidden: Value) -> None:
        shape, row = self.shape, self.warp * self.shape.rows + self.lane
        for sequence in range(shape.batch) if shape.batch > 1 else [place(0)]:
            total = self.rows.sum(hidden, value_of(sequence * shape.pitch + self.share))
            strided(self.accumulators, shape.sequences, 1)[row, sequence] = total
