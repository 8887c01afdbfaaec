"""Rows of A19: the kinds of plugins that programs derive from, and what they are offered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from layer_networks import CollectingLogger, new_network
from network_engines import built, cpu_config, run
from repeat_plugin import Description, array_at, registered

import mlirt as trt

X = np.arange(12, dtype=np.float32).reshape(4, 3)


class Rounded(trt.IPluginV2IOExt):
    """An input in FLOAT and another in INT32; their sum in INT32."""

    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self.plugin_type, self.plugin_version, self.num_outputs = "Rounded", "1", 1
        self.told, self.length = told, 0

    def get_output_data_type(self, index: int, input_types: Sequence[trt.DataType], /) -> trt.DataType:
        return trt.int32

    def get_output_shape(self, index: int, inputs: Sequence[trt.Dims]) -> trt.Dims:
        return inputs[0]

    def supports_format_combination(
        self, pos: int, in_out: Sequence[trt.PluginTensorDesc], num_inputs: int, num_outputs: int, /
    ) -> bool:
        self.told.append(f"{pos} of {num_inputs} and {num_outputs}: {tuple(in_out[pos].dims)}")
        return in_out[pos].type == (trt.float32, trt.int32, trt.int32)[pos]

    def configure_plugin(
        self, inputs: Sequence[trt.PluginTensorDesc], outputs: Sequence[trt.PluginTensorDesc], /
    ) -> None:
        self.length = inputs[0].dims[0]
        self.told.append(f"configure {[one.type.name for one in (*inputs, *outputs)]}")

    def get_workspace_size(self, max_batch_size: int) -> int:
        return 0

    def execute_async(
        self, batch_size: int, inputs: Sequence[int], outputs: Sequence[int], workspace: int, stream_handle: int
    ) -> None:
        shape = (batch_size, self.length)
        floats = array_at(inputs[0], Description(shape))
        numbers, result = (array_at(one, Description(shape, trt.int32)) for one in (inputs[1], outputs[0]))
        result[...] = np.rint(floats).astype(np.int32) + numbers

    def serialize(self) -> bytes:
        return b""

    def clone(self) -> Rounded:
        return Rounded(self.told)


class RoundedCreator(trt.IPluginCreator):
    """Makes them, without fields."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "Rounded"

    def create_plugin(self, name: str, field_collection: trt.PluginFieldCollection, /) -> Rounded:
        return Rounded([])

    def deserialize_plugin(self, name: str, serialized_plugin: bytes, /) -> Rounded:
        return Rounded([])


@pytest.mark.parametrize("batch", [1, 4])
def test_plugins_with_tensors_of_several_types(batch: int) -> None:
    """tensorrt-features.md#19.5: `IPluginV2IOExt` is asked about each tensor, without the batch."""
    logger = CollectingLogger()
    network = new_network(logger)
    x, n = (network.add_input(name, kind, (batch, 3)) for name, kind in (("x", trt.float32), ("n", trt.int32)))
    told: list[str] = []
    y = network.add_plugin_v2([x, n], Rounded(told)).get_output(0)
    y.name = "y"
    network.mark_output(y)
    assert (y.dtype, y.shape) == (trt.int32, (batch, 3))
    with registered(RoundedCreator()):
        context = built(network, cpu_config(logger), logger).create_execution_context()
        feeds = {"x": X[:batch] + np.float32(0.25), "n": np.full((batch, 3), 7, np.int32)}
        found = run(context, feeds)
    assert found is not None
    assert {f"{pos} of 2 and 1: (3,)" for pos in range(3)} <= set(told)
    assert "configure ['FLOAT', 'INT32', 'INT32']" in told
    np.testing.assert_array_equal(found["y"], X[:batch].astype(np.int32) + 7)
