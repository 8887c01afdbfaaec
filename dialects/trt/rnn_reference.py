"""The meaning of `trt.rnn` in NumPy: one step after the other, in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlirt.dialects.trt.activation import ActivationKind, apply_activation

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

    States = Sequence[Array]


@dataclass(frozen=True)
class Layer:
    """A layer with its recurrent weights; `functions` are kind, alpha and beta of each activation."""

    cell: str
    functions: Sequence[tuple[ActivationKind, float, float]]
    clip: float
    linear_before_reset: bool
    input_forget: bool
    recurrent: Array
    recurrent_bias: Array | None
    peepholes: Array | None

    @property
    def size(self) -> int:
        return self.recurrent.shape[1]

    def run(
        self,
        x: Array,
        weights: Array,
        bias: Array | None,
        initial: Sequence[Array | None],
        lengths: Array | None,
        backwards: bool,
    ) -> list[Array]:
        """Outputs and last states, in the precision of the input."""
        import numpy as np

        steps, batch, _ = x.shape
        projected = x.astype(np.float64) @ _wide(weights).T + _wide(bias, len(weights))
        states: States = [_wide(state, batch, self.size) for state in initial[: 2 if self.cell == "lstm" else 1]]
        ends = np.full(batch, steps) if lengths is None else np.minimum(lengths, steps)
        outputs, rows = np.zeros((steps, batch, self.size)), np.arange(int(batch))
        for number in range(steps):
            active = number < ends
            times = np.where(active, ends - 1 - number, number) if backwards else np.full(batch, number)
            with np.errstate(over="ignore", invalid="ignore"):
                new = self.step(projected[times, rows], states)
            states = [np.where(active[:, None], one, old) for one, old in zip(new, states, strict=True)]
            outputs[times, rows] = np.where(active[:, None], states[0], 0)
        return [array.astype(x.dtype) for array in (outputs, *states)]

    def step(self, w: Array, states: States) -> States:
        """The states after one step; `w` is what the input gives each gate."""
        import numpy as np

        hidden, recurrent = states[0], _wide(self.recurrent).T
        product = hidden @ recurrent + _wide(self.recurrent_bias, recurrent.shape[1])
        if self.cell == "lstm":
            return self._lstm(w + product, states[1])
        if self.cell == "simple":
            return [self._activated(0, w + product)]
        w_z, w_r, w_h = np.split(w, 3, 1)
        r_z, r_r, r_h = np.split(product, 3, 1)
        update, reset = self._activated(0, w_z + r_z), self._activated(0, w_r + r_r)
        if self.linear_before_reset:
            inner = reset * r_h
        else:
            bias = _wide(self.recurrent_bias, recurrent.shape[1])
            inner = (reset * hidden) @ recurrent[:, 2 * self.size :] + bias[2 * self.size :]
        return [(1 - update) * self._activated(1, w_h + inner) + update * hidden]

    def _lstm(self, total: Array, cell: Array) -> States:
        import numpy as np

        i, o, f, c = np.split(total, 4, 1)
        p_i, p_o, p_f = np.split(_wide(self.peepholes, 3 * self.size), 3)
        into = self._activated(0, i + p_i * cell)
        keep = 1 - into if self.input_forget else self._activated(0, f + p_f * cell)
        new = keep * cell + into * self._activated(1, c)
        kind, alpha, beta = self.functions[2]
        return [self._activated(0, o + p_o * new) * apply_activation(kind, new, alpha, beta), new]

    def _activated(self, number: int, x: Array) -> Array:
        """An activation of the sum of a gate, which is clipped."""
        import numpy as np

        kind, alpha, beta = self.functions[number]
        return apply_activation(kind, np.clip(x, -self.clip, self.clip), alpha, beta)


def _wide(array: Array | None, *shape: int) -> Array:
    """In double precision; zeros where there is no array."""
    import numpy as np

    return np.zeros(shape) if array is None else array.astype(np.float64)
