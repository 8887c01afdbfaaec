"""Vectors of elements a few elements apart or backwards, against NumPy; memory beyond them is never touched."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_plan import GuardedMemory
from cpu_kernel_runs import compile_sources

_ELEMENTS = ("float32", "float64", "int8", "bool")
_STEPS = (-1, 2, 3, 4)


def _sources(lanes: int) -> dict[str, str]:
    """For each element type two kernels: whole vectors at each step, and the first lanes of them."""
    sources: dict[str, str] = {}
    for element in _ELEMENTS:
        for name, first in ((f"whole_{element}", ""), (f"first_{element}", "_first")):
            rest = ", count" if first else ""
            lines = [
                f"from mlirt.builder.numba_cpu_intrinsics import const_{element}_pointer, {element}_pointer",
                f"from mlirt.builder.numba_cpu_intrinsics import load_steps{first}, store{first}",
                f"def {name}(params, worker, workers):",
                f"    y = {element}_pointer(params[0])",
                "    count = params[1]",
                "    at = params[2]",
            ]
            for number, step in enumerate(_STEPS):
                lines += [
                    f"    x_{number} = const_{element}_pointer(params[{3 + number}])",
                    f"    v_{number} = load_steps{first}(x_{number}, {'at' if step < 0 else 0}, {step}, {lanes}{rest})",
                    f"    store{first}(y, {number * lanes}, v_{number}{rest})",
                ]
            sources[name] = "\n".join(lines) + "\n"
    return sources


@pytest.mark.parametrize("lanes", [4, 16, 64])
def test_elements_are_picked_out_of_whole_vectors(lanes: int) -> None:
    kernels = compile_sources(_sources(lanes))
    rng = np.random.default_rng(0)
    for element in _ELEMENTS:
        for kind, counts in (("whole", (lanes,)), ("first", (1, lanes // 2 + 1, lanes - 1))):
            for count in counts:
                xs = [rng.integers(0, 2, 1 + (count - 1) * abs(step)).astype(element) for step in _STEPS]
                memories = [GuardedMemory(x.nbytes, x) for x in xs]
                y = np.zeros((len(_STEPS), lanes), element)
                kernels[f"{kind}_{element}"](y, count, count - 1, *(memory.address for memory in memories), workers=1)
                for row, x, step in zip(y, xs, _STEPS, strict=True):
                    np.testing.assert_array_equal(row[:count], x[::step])
