"""A network that doubles numbers, as a system that keeps what it was asked, and can be told to fail or to be wrong."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from mlperf.closeness import of_numbers
from mlperf.workloads import Arrays, Workload
from onnx import ModelProto, TensorProto, helper

from mlirt.runtime.joined_arrays import JoinedArrays

Array = np.ndarray[Any, np.dtype[Any]]
WRONG, FAILING = 1000.0, 2000.0
"""Numbers that it gives wrong answers to, and that it fails for."""


def model(batch: int | str) -> ModelProto:
    """x[batch, 3] to 2 x."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "doubling",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def sample(index: int) -> Arrays:
    """The index, three times."""
    return {"x": np.full(3, index, np.float32)}


DOUBLING = Workload("doubling", model, sample, of_numbers, 0.1, ())


class Doubling:
    """Doubles by NumPy; `sizes` are the rows of the batches that it has run."""

    def __init__(self, runs_at_once: int = 1, wrong: float = WRONG, failing: float = FAILING) -> None:
        self.runs_at_once, self._wrong, self._failing = runs_at_once, wrong, failing
        self.sizes: list[int] = []
        self.joins_arrays = False
        self._lock = threading.Lock()

    def host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return np.empty(shape, dtype)

    def run(self, feeds: Mapping[str, Array]) -> Arrays:
        assert isinstance(feeds["x"], JoinedArrays) <= self.joins_arrays
        x = np.asarray(feeds["x"])
        with self._lock:
            self.sizes.append(len(x))
        if (x == self._failing).any():
            raise RuntimeError(f"{self._failing:g} is refused")
        return {"y": np.where(x == self._wrong, 0, 2 * x)}

    def close(self) -> None:
        self.sizes.clear()
