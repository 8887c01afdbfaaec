"""tensorrt-features.md#13.21, 17.10 and 28.7: ranges of NVTX around runs and layers, told to a stand-in for its
package.
"""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
from layer_networks import CollectingLogger, constant, new_network
from network_engines import built, cpu_config

import mlirt as trt


class Ranges(ModuleType):
    """Notes what is pushed, and how deep."""

    def __init__(self) -> None:
        super().__init__("nvtx")
        self.pushed: list[tuple[int, str]] = []
        self.depth = 0

    def push_range(self, message: str, domain: str) -> None:
        assert domain == "TensorRT"
        self.pushed.append((self.depth, message))
        self.depth += 1

    def pop_range(self, domain: str) -> None:
        self.depth -= 1


def softmax_of_a_product(logger: CollectingLogger, verbosity: trt.ProfilingVerbosity) -> trt.IExecutionContext:
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (4, 8))
    none = trt.MatrixOperation.NONE
    product = network.add_matrix_multiply(x, none, constant(network, np.eye(8, dtype=np.float32)), none)
    soft = network.add_softmax(product.get_output(0))
    product.name, soft.name, soft.axes = "product", "soft", 2
    network.mark_output(soft.get_output(0))
    config = cpu_config(logger)
    config.profiling_verbosity = verbosity
    return built(network, config, logger).create_execution_context()


def run(context: trt.IExecutionContext) -> None:
    x, y = np.ones((4, 8), np.float32), np.empty((4, 8), np.float32)
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    np.testing.assert_allclose(y, np.full((4, 8), 1 / 8), rtol=1e-5)


def test_each_layer_has_a_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#17.10, 28.7: inside of that of the run, by the names that a profiler of ours is told."""
    monkeypatch.setitem(sys.modules, "nvtx", ranges := Ranges())
    context = softmax_of_a_product(CollectingLogger(), trt.ProfilingVerbosity.LAYER_NAMES_ONLY)
    run(context)
    assert ranges.pushed[0] == (0, "ExecutionContext::enqueue")
    names = [name for depth, name in ranges.pushed if depth == 1]
    assert names == [str(layer["name"]) for layer in context.engine.engine.layers]
    assert ranges.depth == 0


def test_no_ranges_without_a_listener() -> None:
    """tensorrt-features.md#28.7: where no program has the package, and no profiler asks, there are none, and runs go
    on.
    """
    assert "nvtx" not in sys.modules
    run(softmax_of_a_product(CollectingLogger(), trt.ProfilingVerbosity.DETAILED))


@pytest.mark.parametrize("at_build", [True, False])
def test_ranges_are_turned_off(monkeypatch: pytest.MonkeyPatch, at_build: bool) -> None:
    """tensorrt-features.md#13.21, 17.10: by NONE of the build, or of the context."""
    monkeypatch.setitem(sys.modules, "nvtx", ranges := Ranges())
    none, names = trt.ProfilingVerbosity.NONE, trt.ProfilingVerbosity.LAYER_NAMES_ONLY
    context = softmax_of_a_product(CollectingLogger(), none if at_build else names)
    context.nvtx_verbosity = none
    run(context)
    assert not ranges.pushed
