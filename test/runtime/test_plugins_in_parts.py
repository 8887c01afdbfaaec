"""Plugins of TensorRT 10's last kind, in three parts: in a network, a model and an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from layer_networks import new_network
from onnx import helper
from onnx_models import model_of
from repeat_plugin import Description, array_at, registered

import mlirt
import mlirt as trt
from mlirt.errors import UnsupportedError
from mlirt.tensorrt.plugins.field_bytes import bytes_of, fields_of

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Pad(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
    """Adds columns of `value` behind a matrix."""

    def __init__(self, columns: int, value: float, events: list[str]) -> None:
        trt.IPluginV3.__init__(self)
        self.plugin_name, self.plugin_version, self.plugin_namespace, self.num_outputs = "Pad2", "1", "", 1
        self.columns, self.value, self.events = columns, value, events

    def get_output_data_types(self, input_types: Sequence[trt.DataType], /) -> Sequence[trt.DataType]:
        return [input_types[0]]

    def get_output_shapes(
        self, inputs: Sequence[trt.DimsExprs], shape_inputs: Sequence[trt.DimsExprs], builder: trt.IExprBuilder, /
    ) -> Sequence[trt.DimsExprs]:
        rows, columns = inputs[0]
        more = builder.constant(self.columns)
        return [trt.DimsExprs([rows, builder.operation(trt.DimensionOperation.SUM, columns, more)])]

    def supports_format_combination(
        self, pos: int, in_out: Sequence[trt.DynamicPluginTensorDesc], num_inputs: int, /
    ) -> bool:
        return in_out[pos].desc.type == trt.float32 and in_out[pos].desc.format == trt.TensorFormat.LINEAR

    def configure_plugin(
        self, inputs: Sequence[trt.DynamicPluginTensorDesc], outputs: Sequence[trt.DynamicPluginTensorDesc], /
    ) -> None:
        self.events.append(f"configure {inputs[0].desc.dims}")

    def get_valid_tactics(self) -> Sequence[int]:
        return [7, 8]

    def set_tactic(self, tactic: int, /) -> None:
        self.events.append(f"tactic {tactic}")

    def on_shape_change(self, inputs: Sequence[Description], outputs: Sequence[Description], /) -> None:
        self.events.append(f"shapes {inputs[0].dims} -> {outputs[0].dims}")

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
        made, given = array_at(outputs[0], output_desc[0]), array_at(inputs[0], input_desc[0])
        made[...] = np.pad(given, ((0, 0), (0, self.columns)), constant_values=self.value)

    def get_fields_to_serialize(self) -> trt.PluginFieldCollection:
        columns = trt.PluginField("columns", np.array([self.columns], np.int32), trt.PluginFieldType.INT32)
        value = trt.PluginField("value", np.array([self.value], np.float32), trt.PluginFieldType.FLOAT32)
        return trt.PluginFieldCollection([columns, value])

    def attach_to_context(self, resource_context: Any, /) -> Pad:
        self.events.append("attach")
        return self.clone()

    def clone(self) -> Pad:
        return Pad(self.columns, self.value, self.events)

    def destroy(self) -> None:
        self.events.append("destroy")


class PadCreator(trt.IPluginCreatorV3One):
    """Makes them from the fields `columns` and `value`."""

    def __init__(self) -> None:
        super().__init__()
        self.name, self.plugin_version = "Pad2", "1"
        self.field_names = trt.PluginFieldCollection([trt.PluginField("columns"), trt.PluginField("value")])
        self.events: list[str] = []

    def create_plugin(self, name: str, field_collection: trt.PluginFieldCollection, phase: trt.TensorRTPhase, /) -> Pad:
        self.events.append(f"create for {phase.name}")
        columns, value = (np.asarray(field.data).item() for field in field_collection)
        return Pad(columns, value, self.events)


def test_layer_and_engine() -> None:
    """tensorrt-features.md#19.5: `add_plugin_v3`; the fields that a plugin serialises are what its creator makes it
    from again.
    """
    creator = PadCreator()
    builder = trt.Builder(trt.Logger())
    network = builder.create_network(1)
    x = network.add_input("x", trt.float32, (2, 3))
    layer = network.add_plugin_v3([x], [], Pad(2, 5.0, creator.events))
    assert isinstance(layer, trt.IPluginV3Layer)
    assert isinstance(layer.plugin, Pad)
    assert (layer.type, layer.get_output(0).shape) == (trt.LayerType.PLUGIN_V2, (2, 5))
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    config = builder.create_builder_config()
    config.target = "cpu"
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    creator.events.clear()
    with registered(creator):
        engine = mlirt.load(bytes(plan))
        assert creator.events == ["create for RUNTIME", "tactic 7", "attach", "destroy"]
        found = engine.run({"x": X})["y"]
        assert creator.events[-1] == "shapes (2, 3) -> (2, 5)"
    np.testing.assert_array_equal(found, np.pad(X, ((0, 0), (0, 2)), constant_values=5))


def test_node_of_a_model() -> None:
    """tensorrt-features.md#19.21, and through the parser."""
    node = helper.make_node("Pad2", ["x"], ["y"], name="pad", domain="mine", columns=1, value=2.0)
    model = model_of([node], {"x": ("float32", [2, 3])}, ["y"], domains=["mine"]).SerializeToString()
    with registered(PadCreator()):
        found = mlirt.compile(model, target="cpu").run({"x": X})["y"]
        network = new_network()
        assert trt.OnnxParser(network, trt.Logger()).parse(model)
        layer = network.get_layer(0)
        layer.__class__ = trt.IPluginV3Layer
        assert isinstance(layer, trt.IPluginV3Layer)
        assert isinstance(layer.plugin, Pad)
        assert layer.plugin.columns == 1
    np.testing.assert_array_equal(found, np.pad(X, ((0, 0), (0, 1)), constant_values=2))


def test_registry_tells_creators_apart() -> None:
    """tensorrt-features.md#19.1."""
    creator = PadCreator()
    with registered(creator) as registry:
        assert registry.get_creator("Pad2", "1") is creator
        assert registry.get_plugin_creator("Pad2", "1") is None
        assert creator in registry.all_creators
        assert creator not in registry.plugin_creator_list


def test_shape_inputs_are_refused() -> None:
    network = new_network()
    x = network.add_input("x", trt.float32, (2, 3))
    with pytest.raises(UnsupportedError, match="inputs that are shapes are not supported"):
        network.add_plugin_v3([x], [x], Pad(1, 0.0, []))


def test_fields_as_bytes() -> None:
    """tensorrt-features.md#19.4: every kind of data comes back."""
    fields = [
        trt.PluginField("numbers", np.arange(6, dtype=np.int64).reshape(2, 3), trt.PluginFieldType.INT64),
        trt.PluginField("text", "same", trt.PluginFieldType.CHAR),
        trt.PluginField("shape", trt.Dims((1, 2)), trt.PluginFieldType.DIMS),
        trt.PluginField("nothing"),
    ]
    again = fields_of(bytes_of(fields))
    assert [(one.name, one.type) for one in again] == [(one.name, one.type) for one in fields]
    np.testing.assert_array_equal(np.asarray(again[0].data), np.arange(6).reshape(2, 3))
    assert [one.data for one in again[1:]] == [b"same", trt.Dims((1, 2)), None]
