"""The meaning of `trt.rnn` in NumPy: one step after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlirt.dialects.dynamic_steps import dynamic_steps
from mlirt.dialects.trt.activation import ActivationKind, apply_activation

if TYPE_CHECKING:
    import numpy as np

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
    scale: Array | None
    recurrent_bias: Array | None
    peepholes: Array | None

    @property
    def size(self) -> int:
        return self.recurrent.shape[1]

    @property
    def number(self) -> type[np.floating[Any]]:
        """The precision of all numbers: single where the roundings are part of the meaning, else double."""
        import numpy as np

        return np.float64 if self.scale is None else np.float32

    def run(
        self,
        x: Array,
        weights: Array | None,
        bias: Array | None,
        initial: Sequence[Array | None],
        lengths: Array | None,
        backwards: bool,
    ) -> list[Array]:
        """Outputs and last states, in the precision of the input."""
        import numpy as np

        steps, batch, _ = x.shape
        projected = self._wide(x)
        if weights is not None:
            projected = projected @ self._wide(weights).T + self._wide(bias, len(weights))
        states: States = [self._wide(state, batch, self.size) for state in initial[: 2 if self.cell == "lstm" else 1]]
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

        hidden, recurrent = states[0], self._wide(self.recurrent).T
        bias = self._wide(self.recurrent_bias, recurrent.shape[1])
        if self.scale is not None:
            return self._lstm(w + self._product_in_steps(hidden, self.scale) + bias, states[1])
        product = hidden @ recurrent + bias
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
            inner = (reset * hidden) @ recurrent[:, 2 * self.size :] + bias[2 * self.size :]
        return [(1 - update) * self._activated(1, w_h + inner) + update * hidden]

    def _product_in_steps(self, hidden: Array, scale: Array) -> Array:
        """Recurrent weights times a hidden state that has been rounded to steps."""
        import numpy as np

        steps, size = dynamic_steps(hidden)
        exact = steps.astype(np.float64) @ self.recurrent.T.astype(np.float64)
        return exact.astype(np.float32) * (size * self._wide(scale))

    def _lstm(self, total: Array, cell: Array) -> States:
        import numpy as np

        i, o, f, c = np.split(total, 4, 1)
        p_i, p_o, p_f = np.split(self._wide(self.peepholes, 3 * self.size), 3)
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

    def _wide(self, array: Array | None, *shape: int) -> Array:
        """In the precision of all numbers; zeros where there is no array."""
        import numpy as np

        return np.zeros(shape, self.number) if array is None else array.astype(self.number)
