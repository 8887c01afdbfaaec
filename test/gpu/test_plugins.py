"""A plugin whose kernel numba compiles, on a GPU: raw pointers and the stream are all that it gets."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from repeat_plugin import Description, Repeat, RepeatCreator, registered

import mlirt
import mlirt as trt

pytestmark = pytest.mark.gpu


class OnDevice(Repeat):
    """`factor * x` by a kernel of numba's."""

    def get_workspace_size(self, inputs: Sequence[Description], outputs: Sequence[Description], /) -> int:
        return 0

    def enqueue(
        self,
        input_desc: Sequence[Description],
        output_desc: Sequence[Description],
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
        /,
    ) -> None:
        cuda: Any = import_module("numba.cuda")
        count, factor = trt.volume(input_desc[0].dims), np.float32(self.factor)
        x, y = (_on_device(address, count, stream) for address in (inputs[0], outputs[0]))

        @cuda.jit
        def scale(x: Any, y: Any, factor: Any) -> None:
            i = cuda.grid(1)
            if i < x.size:
                y[i] = factor * x[i]

        scale[-(-count // 128), 128, cuda.external_stream(stream)](x, y, factor)


class _on_device:
    """An array by the interface that libraries for GPUs share."""

    def __init__(self, address: int, count: int, stream: int) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (count,),
            "typestr": "<f4",
            "version": 3,
            "stream": stream,
        }


def test_plugin_of_numba() -> None:
    """tensorrt-features.md#19.22: between layers of the network, for several shapes."""
    builder = trt.Builder(trt.Logger())
    network = builder.create_network(1)
    relu = network.add_activation(network.add_input("x", trt.float32, (-1, 300)), trt.ActivationType.RELU)
    scaled = network.add_plugin_v2([relu.get_output(0)], OnDevice(3.0))
    sine = network.add_unary(scaled.get_output(0), trt.UnaryOperation.SIN).get_output(0)
    sine.name = "y"
    network.mark_output(sine)
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    config.target = "cuda"
    profile.set_shape("x", (1, 300), (4, 300), (64, 300))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    random = np.random.default_rng(0)
    with registered(RepeatCreator(OnDevice)):
        engine = mlirt.load(bytes(plan))
        for rows in (4, 1, 64, 4):
            x = random.standard_normal((rows, 300)).astype(np.float32)
            np.testing.assert_allclose(engine.run({"x": x})["y"], np.sin(3 * np.maximum(x, 0)), rtol=1e-4, atol=1e-5)
