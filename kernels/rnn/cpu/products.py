"""Products of packed recurrent weights with the hidden states of some sequences, in register tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Block, Region, SSAValue

from mlirt.dialects.kernel.core import StoreOp, YieldOp
from mlirt.dialects.kernel.tile import TileFillOp, TileForEachOp
from mlirt.dialects.kernel.tile_products import TileDotAddOp, TileMultiplyAddOp
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.rnn.cpu.scratch import Scratch
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

    depth, gates, units = recurrent.shape
    words = -(-depth // word)
    wide = np.zeros((words * word, gates, tile.width), np.float32 if word == 1 else np.int8)
    wide[:depth, :, :units] = recurrent
    split = wide.reshape(words, word, gates, tile.panels, tile.blocks, tile.lanes)
    return np.ascontiguousarray(split.transpose(3, 0, 4, 2, 5, 1)).reshape(-1)


class Products:
    """Sums [sequence, gate, unit] for `gates` gates: of float32 numbers, or of words of four bytes in int32."""

    def __init__(
        self,
        k: KernelBuilder,
        tile: RecurrentTile,
        weights: SSAValue,
        gates: int,
        accumulators: Scratch,
        batch: Dim,
        word: int = 1,
    ) -> None:
        self.k, self.tile, self.weights, self.gates, self.accumulators, self.batch = (
            k,
            tile,
            weights,
            gates,
            accumulators,
            batch,
        )
        self.word = word
        self.weights.name_hint = "w"
        self.chosen: SSAValue | None = None
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

    def multiply(self, hidden: Scratch, first: SSAValue, rows: SSAValue, panel: SSAValue | None = None) -> None:
        """The accumulators for `rows` sequences from `first` on, of one panel or of all.

        A single sequence does not compute what others would need.
        """
        self.chosen = panel
        k, height = self.k, self.tile.rows
        start = hidden.at([first, k.constant(0)])
        start.name_hint = "x_at"
        if height == 1 or (isinstance(self.batch, int) and self.batch % height == 0):
            self._panels(hidden, start, first, height, None)
        elif isinstance(self.batch, int):
            self._panels(hidden, start, first, height, rows)
        else:
            single, several = Block(), Block()
            with k.inside(single):
                self._panels(hidden, start, first, 1, None)
                k.insert(scf.YieldOp())
            with k.inside(several):
                self._panels(hidden, start, first, height, rows)
                k.insert(scf.YieldOp())
            k.insert(scf.IfOp(k.compare("eq", rows, 1), [], Region(single), Region(several)))

    def _panels(self, hidden: Scratch, x_at: SSAValue, first: SSAValue, height: int, rows: SSAValue | None) -> None:
        k, tile = self.k, self.tile

        def panel(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            number.name_hint = "panel"
            zero = k.constant(0, f32 if self.word == 1 else i32)
            accumulators = k.value(TileFillOp(zero, height, self.vectors, tile.lanes))
            w_at = k.mul(number, self.panel_step)
            w_at.name_hint = "w_at"
            accumulators = self._sum(k.constant(0), self.whole, _UNROLLED, accumulators, hidden, x_at, w_at, rows)
            words, rest = divmod(tile.units, self.word)
            if words % _UNROLLED:
                accumulators = self._sum(self.whole, self.depth, 1, accumulators, hidden, x_at, w_at, rows)
            if rest:
                accumulators = self._added(accumulators, hidden, self.depth, x_at, w_at, 1, rows, rest)
            self._put(accumulators, first, number, rows)
            return []

        if self.chosen is None:
            k.loop(self.panels, [], panel)
        else:
            panel(self.chosen, [])

    def _sum(
        self,
        start: SSAValue,
        stop: SSAValue,
        step: int,
        accumulators: SSAValue,
        hidden: Scratch,
        x_at: SSAValue,
        w_at: SSAValue,
        rows: SSAValue | None,
    ) -> SSAValue:
        k = self.k
        block = Block(arg_types=[start.type, accumulators.type])
        depth, carried = block.args
        depth.name_hint, carried.name_hint = "depth", "accumulators"
        with k.inside(block):
            k.insert(scf.YieldOp(self._added(carried, hidden, depth, x_at, w_at, step, rows, self.word)))
        made = k.insert(scf.ForOp(start, stop, k.constant(step), [accumulators], block))
        return made.results[0]

    def _added(
        self,
        accumulators: SSAValue,
        hidden: Scratch,
        depth: SSAValue,
        x_at: SSAValue,
        w_at: SSAValue,
        count: int,
        rows: SSAValue | None,
        last: int,
    ) -> SSAValue:
        """The accumulators with `count` words more, from `depth` on; `last` numbers of the last one count."""
        k = self.k
        x, w = k.add(x_at, k.mul(depth, self.word)), k.add(w_at, k.mul(depth, self.width))
        row_step = k.index(hidden.steps[0])
        if self.word == 1:
            one = k.constant(1)
            return k.value(
                TileMultiplyAddOp(accumulators, hidden.memory, x, row_step, one, self.weights, w, count, rows)
            )
        return k.value(TileDotAddOp(accumulators, hidden.memory, x, row_step, self.weights, w, count, rows, last))

    def _put(self, accumulators: SSAValue, first: SSAValue, panel: SSAValue, rows: SSAValue | None) -> None:
        k, tile = self.k, self.tile
        unit = k.mul(panel, tile.blocks * tile.lanes)
        unit.name_hint = "unit"
        each = TileForEachOp(accumulators, rows)
        element, row, vector, lane = each.body.block.args
        with k.inside(each.body.block):
            block, gate = k.div(vector, self.gates), k.rem(vector, self.gates)
            row_step, gate_step, _ = self.accumulators.steps
            indices = [first, row, gate, unit, block, lane]
            steps = [row_step, row_step, gate_step, 1, tile.lanes, 1]
            k.insert(StoreOp(element, self.accumulators.memory, indices, steps))
            k.insert(YieldOp(operands=[[]]))
        k.insert(each)
