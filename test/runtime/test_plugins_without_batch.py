"""Plugins of the older kinds, which see tensors without their leading dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from repeat_plugin import Description, array_at, registered

import mlirt
import mlirt as trt

X = np.arange(12, dtype=np.float32).reshape(4, 3)


class Mean(trt.IPluginV2):
    """The mean of each row, as float32."""

    events: list[str]

    def __init__(self, events: list[str] | None = None) -> None:
        super().__init__()
        self.plugin_type, self.plugin_version, self.num_outputs = "Mean", "1", 1
        self.events = [] if events is None else events
        self.length = 0

    def get_output_shape(self, index: int, inputs: Sequence[trt.Dims]) -> trt.Dims:
        self.events.append(f"shape of {inputs[0]}")
        return trt.Dims((1,))

    def supports_format(self, dtype: trt.DataType, format: trt.TensorFormat) -> bool:
        return dtype == trt.float32 and format == trt.TensorFormat.LINEAR

    def configure_with_format(self, *given: Any) -> None:
        inputs, outputs, dtype, _, largest = given
        self.length = inputs[0][0]
        self.events.append(f"configure {inputs} -> {outputs} {dtype.name} {largest}")

    def get_workspace_size(self, max_batch_size: int) -> int:
        return 0

    def execute_async(
        self, batch_size: int, inputs: Sequence[int], outputs: Sequence[int], workspace: int, stream_handle: int
    ) -> None:
        given = array_at(inputs[0], Description((batch_size, self.length)))
        array_at(outputs[0], Description((batch_size, 1)))[...] = given.mean(1, keepdims=True)

    def serialize(self) -> bytes:
        return b""

    def clone(self) -> Mean:
        return type(self)(self.events)


class MeanExt(trt.IPluginV2Ext, Mean):
    """The same with the methods of the kind in between."""

    def configure_plugin(self, *given: Any) -> None:
        inputs, outputs, input_types, output_types, _, shared, _, largest = given
        self.length = inputs[0][0]
        types = [one.name for one in (*input_types, *output_types)]
        self.events.append(f"configure {inputs} -> {outputs} {types} {shared} {largest}")


class MeanCreator(trt.IPluginCreator):
    """Makes them, without fields."""

    def __init__(self, made: type[Mean]) -> None:
        super().__init__()
        self.name, self.made = "Mean", made
        self.events: list[str] = []

    def create_plugin(self, name: str, field_collection: trt.PluginFieldCollection, /) -> Mean:
        return self.made(self.events)

    def deserialize_plugin(self, name: str, serialized_plugin: bytes, /) -> Mean:
        return self.made(self.events)


@pytest.mark.parametrize(
    ("made", "configured"),
    [(Mean, "FLOAT {}"), (MeanExt, "['FLOAT', 'FLOAT'] [False] {}")],
)
def test_batch_is_taken_off_and_put_back(made: type[Mean], configured: str) -> None:
    """tensorrt-features.md#19.5, 19.10, 19.19: the leading dimension is the batch, over which nothing is shared."""
    builder = trt.Builder(trt.Logger())
    network = builder.create_network(1)
    plugin = made()
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, (-1, 3))], plugin)
    assert isinstance(layer.plugin, made)
    assert layer.get_output(0).shape == (-1, 1)
    assert plugin.events[0] == "shape of (3,)"
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    config.target = "cpu"
    profile.set_shape("x", (1, 3), (2, 3), (8, 3))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    assert plugin.events[-1] == f"configure [(3,)] -> [(1,)] {configured.format(8)}"
    creator = MeanCreator(made)
    with registered(creator):
        found = mlirt.load(bytes(plan)).run({"x": X})["y"]
    np.testing.assert_allclose(found, X.mean(1, keepdims=True), rtol=1e-6)
    assert creator.events == [f"configure [(3,)] -> [(1,)] {configured.format(4)}"]


def test_lengths_behind_the_batch_are_known() -> None:
    network = trt.Builder(trt.Logger(trt.Logger.INTERNAL_ERROR)).create_network(1)
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, (2, -1))], Mean())
    assert str(layer.get_output(0).shape) == "(0)"
