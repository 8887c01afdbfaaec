"""Hidden states in whole steps on a CPU: what the products of integers read, and what their sums stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerType, Signedness, f32, i32
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.core import LoadOp
from mlirt.dialects.kernel.tile_products import FOUR
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import build, value_of
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.cpu.scratch import Scratch
from mlirt.kernels.rnn.hidden_steps import steps_of

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_BYTE = IntegerType(8, Signedness.UNSIGNED)
Lanes = Callable[[Callable[[SSAValue], None]], None]


class WholeSteps:
    """The states of all sequences in steps: uint8 for weights of int8, else whole float32 numbers.

    uint8 count from the least number on; the sums of the weights times the step of zero are taken off again.
    """

    def __init__(self, k: KernelBuilder, lowering: Lowering, recurrent: Array, batch: Dim, width: int) -> None:
        import numpy as np

        self.k, self._units = k, int(recurrent.shape[2])
        self.word = FOUR if recurrent.dtype == np.int8 else 1
        element = f32 if self.word == 1 else _BYTE
        self.memory = Scratch.of(k, lowering, [batch, width], "whole_steps", element)
        self._sizes = Scratch.of(k, lowering, [batch], "step_sizes")
        self._zeros = Scratch.of(k, lowering, [batch], "step_zeros", i32)
        self._depth_sums = None
        if self.word != 1:
            self._depth_sums = k.weights(recurrent.astype(np.int32).sum(0, dtype=np.int32).reshape(-1), "accumulators")

    def round(self, hidden: Scratch, n: SSAValue, units: SSAValue, width: int, lanes: Lanes) -> None:
        """Write the hidden state of sequence `n` in steps."""
        k = self.k
        steps = build(k, steps_of, units, lambda unit: value_of(hidden.load([n, unit])), width)
        self._sizes.store(steps.size, [n])
        if self._depth_sums is not None:
            self._zeros.store(k.scalars(i32).cast(steps.zero, f32), [n])

        def write(unit: SSAValue) -> None:
            number = value_of(hidden.load([n, unit]))
            if self.word == 1:
                self.memory.store(build(k, steps.of_number, number), [n, unit])
            else:
                place = k.scalars(_BYTE).cast(build(k, steps.place_of, number), f32)
                self.memory.store(k.typed(place, _BYTE), [n, unit])

        lanes(write)

    def real(self, total: SSAValue, scale: SSAValue, n: SSAValue, gate: int, unit: SSAValue) -> SSAValue:
        """What a sum of products stands for."""
        k, s = self.k, self.k.scalars(f32)
        if self._depth_sums is not None:
            weights = k.value(LoadOp(self._depth_sums, [k.constant(gate), unit], [self._units, 1]))
            integers = k.scalars(i32)
            total = s.cast(integers.sub(total, integers.mul(self._zeros.load([n]), weights)), i32)
        return s.mul(total, s.mul(self._sizes.load([n]), scale))
