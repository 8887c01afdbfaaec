"""Hidden states in whole steps on a CPU: what the products of integers read, and what their sums stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerType, Signedness, f32, i32

from mlirt.dialects.kernel.tile_products import FOUR
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.tile_words import lane_loop
from mlirt.kernels.lib.language.words import Strided, cast, narrowed, strided
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.cpu.scratch import scratch
from mlirt.kernels.rnn.hidden_steps import steps_of

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_BYTE = IntegerType(8, Signedness.UNSIGNED)


class WholeSteps:
    """The states of all sequences in steps: uint8 for weights of int8, else whole float32 numbers.

    uint8 count from the least number on; the sums of the weights times the step of zero are taken off again.
    """

    def __init__(self, k: KernelBuilder, lowering: Lowering, recurrent: Array, batch: Dim, width: int) -> None:
        import numpy as np

        self._units = int(recurrent.shape[2])
        self.word = FOUR if recurrent.dtype == np.int8 else 1
        element = f32 if self.word == 1 else _BYTE
        self.memory = scratch(k, lowering, [batch, width], "whole_steps", element)
        self._sizes = scratch(k, lowering, [batch], "step_sizes")
        self._zeros = scratch(k, lowering, [batch], "step_zeros", i32)
        self._depth_sums = None
        if self.word != 1:
            self._depth_sums = k.weights(recurrent.astype(np.int32).sum(0, dtype=np.int32).reshape(-1), "accumulators")

    @kernel
    def round(self, hidden: Strided, n: Value, units: Value, lanes: int) -> None:
        """Write the hidden state of sequence `n` in steps."""
        steps = steps_of(units, lambda unit: hidden[n, unit], lanes)
        self._sizes[n,] = steps.size
        if self._depth_sums is not None:
            self._zeros[n,] = cast(steps.zero, f32, i32)
        for unit in lane_loop(units, lanes):
            number = hidden[n, unit]
            if self.word == 1:
                self.memory[n, unit] = steps.of_number(number)
            else:
                self.memory[n, unit] = narrowed(steps.place_of(number), f32, _BYTE)

    @kernel
    def real(self, total: Value, scale: Value, n: Value, gate: int, unit: Value) -> Value:
        """What a sum of products stands for."""
        if self._depth_sums is not None:
            weights = strided(self._depth_sums, self._units, 1)[gate, unit]
            total = cast(total - self._zeros[n,] * weights, i32, f32)
        return total * (self._sizes[n,] * scale)
