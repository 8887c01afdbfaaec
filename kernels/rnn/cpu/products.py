"""Products of packed recurrent weights with the hidden states of some sequences, in register tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import f32, i32

from mlirt.dialects.layout import arranged
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Index, Value, kernel, value_of
from mlirt.kernels.lib.language.tile_words import elements, fill, multiply_add, multiply_add_int8
from mlirt.kernels.lib.language.words import Strided, constant, strided
from mlirt.kernels.rnn.cpu.shape import RecurrentTile

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_UNROLLED = 4


def packed(recurrent: Array, tile: RecurrentTile, word: int = 1) -> Array:
    """Weights [depth, gate, unit] as [panel, word of the depth, block, gate, lane, place in the word].

    There are zeros beyond the last unit and the last depth. Words of several weights are bytes, others float32.
    """
    import numpy as np

    weights, sizes = recurrent.astype(np.float32 if word == 1 else np.int8), {"b": tile.blocks, "l": tile.lanes}
    return arranged(weights, "(d v) g (p b l)", "(p d b g l v)", v=word, p=tile.panels, **sizes)


class Products:
    """Sums [sequence, gate, unit] for `gates` gates: of float32 numbers, or of words of four bytes in int32."""

    def __init__(
        self,
        k: KernelBuilder,
        tile: RecurrentTile,
        weights: Value,
        gates: int,
        accumulators: Strided,
        batch: Dim,
        word: int = 1,
    ) -> None:
        self.tile, self.weights, self.gates = tile, weights, gates
        self.accumulators, self.batch, self.word = accumulators, batch, word
        self.weights.name_hint = "w"
        words = tile.units // word
        self.depth, self.whole = k.size(words), k.size(words // _UNROLLED * _UNROLLED)
        self.panels, self.panel_step = k.size(tile.panels), k.size(-(-tile.units // word) * self.width)
        sizes = [self.depth, self.whole, self.panels, self.panel_step]
        for value, name in zip(sizes, ("depth", "whole_depth", "panels", "panel_step"), strict=True):
            value.name_hint = name

    @property
    def width(self) -> int:
        """Weights for one word of the hidden state in a tile."""
        return self.vectors * self.tile.lanes * self.word

    @property
    def vectors(self) -> int:
        """Vectors of a row of a tile."""
        return self.tile.blocks * self.gates

    @kernel
    def multiply(self, hidden: Strided, first: Value, rows: Value, panel: Value | None = None) -> None:
        """The accumulators for `rows` sequences from `first` on, of one panel or of all.

        A single sequence does not compute what others would need.
        """
        height, batch = self.tile.rows, self.batch
        x_at = first * hidden.strides[0]
        if height == 1 or (isinstance(batch, int) and batch % height == 0):
            self._panels(hidden, x_at, first, height, None, panel)
        elif isinstance(batch, int):
            self._panels(hidden, x_at, first, height, rows, panel)
        elif rows == 1:
            self._panels(hidden, x_at, first, 1, None, panel)
        else:
            self._panels(hidden, x_at, first, height, rows, panel)

    @kernel
    def _panels(
        self, hidden: Strided, x_at: Value, first: Value, height: int, rows: Value | None, chosen: Value | None
    ) -> None:
        tile, (words, rest) = self.tile, divmod(self.tile.units, self.word)
        for panel in range(self.panels) if chosen is None else [chosen]:
            accumulators = fill(constant(0, f32 if self.word == 1 else i32), height, self.vectors, tile.lanes)
            w_at = value_of(panel * self.panel_step)
            for depth in range(0, self.whole, _UNROLLED):
                accumulators = self._added(accumulators, hidden, depth, x_at, w_at, _UNROLLED, rows, self.word)
            if words % _UNROLLED:
                for depth in range(self.whole, self.depth):
                    accumulators = self._added(accumulators, hidden, depth, x_at, w_at, 1, rows, self.word)
            if rest:
                accumulators = self._added(accumulators, hidden, self.depth, x_at, w_at, 1, rows, rest)
            self._put(accumulators, first, value_of(panel), rows)

    @kernel
    def _added(
        self,
        accumulators: Value,
        hidden: Strided,
        depth: Index,
        x_at: Value,
        w_at: Value,
        count: int,
        rows: Value | None,
        last: int,
    ) -> Value:
        """The accumulators with `count` words more, from `depth` on; `last` numbers of the last one count."""
        x, w, step = x_at + depth * self.word, w_at + depth * self.width, hidden.strides[0]
        if self.word == 1:
            return multiply_add(accumulators, hidden.memory, x, (step, 1), self.weights, w, count, rows)
        return multiply_add_int8(accumulators, hidden.memory, x, step, self.weights, w, count, rows, last=last)

    @kernel
    def _put(self, accumulators: Value, first: Value, panel: Value, rows: Value | None) -> None:
        tile, unit = self.tile, panel * self.tile.width(self.tile.lanes)
        row_step, gate_step, _ = self.accumulators.strides
        target = strided(self.accumulators.memory, row_step, row_step, gate_step, 1, tile.lanes, 1)
        for element, row, vector, lane in elements(accumulators, rows):
            block, gate = vector // self.gates, vector % self.gates
            target[first, row, gate, unit, block, lane] = element
