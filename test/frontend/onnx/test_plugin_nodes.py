"""Nodes of a model that a registered plugin computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper
from onnx_models import model_of
from repeat_plugin import Repeat, RepeatCreator, registered

import mlirt
import mlirt as trt
from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidModelError, PluginError, UnsupportedError
from mlirt.frontend.onnx.importer import import_model

X = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)


def model(**attributes: Any) -> ModelProto:
    """relu, a node `Repeat` of a domain of its own, and its negative."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node("Repeat", ["a"], ["b"], name="rep", domain="mine", **attributes),
        helper.make_node("Neg", ["b"], ["y"], name="neg"),
    ]
    return model_of(nodes, {"x": ("float32", ["n", 3])}, ["y"], domains=["mine"])


def test_node_becomes_a_plugin() -> None:
    """tensorrt-features.md#11.10, 19.21: attributes are fields; the layer has the node's name."""
    creator = RepeatCreator()
    with registered(creator):
        engine = mlirt.compile(model(factor=3.0, times=2).SerializeToString(), target="cpu")
        found = engine.run({"x": X})["y"]
    np.testing.assert_array_equal(found, -np.concatenate([np.maximum(X, 0) * 3] * 2))
    assert "rep" in [layer["name"] for layer in engine.layers]
    assert {name: field.type.name for name, field in creator.fields.items()} == {"factor": "FLOAT32", "times": "INT32"}


def test_version_and_namespace() -> None:
    """tensorrt-features.md#11.10: the attributes `plugin_version` and `plugin_namespace` choose the creator, and are no
    fields.
    """
    creator = RepeatCreator()
    creator.plugin_version = "2"
    creator.field_names = None
    chosen = model(factor=3.0, plugin_version="2", plugin_namespace="mine")
    with registered(creator, "mine"):
        module = import_model(chosen.SerializeToString(), RtContext())
        with pytest.raises(UnsupportedError, match="could not find Plugin Repeat version 1; register"):
            import_model(model(factor=3.0).SerializeToString(), RtContext())
    assert list(creator.fields) == ["factor"]
    assert 'namespace = "mine"' in str(module)


def test_no_creator() -> None:
    """tensorrt-features.md#11.10, 31.15: the documented message."""
    with pytest.raises(
        UnsupportedError, match=r"Repeat \(node 'rep'.*getPluginCreator\(\) could not find Plugin Repeat v"
    ):
        import_model(model().SerializeToString(), RtContext())


class Refusing(RepeatCreator):
    """Makes nothing."""

    def create_plugin(self, name: str, field_collection: trt.PluginFieldCollection, /) -> Any:
        return super().create_plugin(name, field_collection) if len(field_collection) > 1 else None


def test_creator_that_makes_nothing() -> None:
    with registered(Refusing()), pytest.raises(InvalidModelError, match="Plugin not found, are the plugin name, vers"):
        import_model(model().SerializeToString(), RtContext())


class Fields(RepeatCreator):
    """Notes what it is given."""

    def create_plugin(self, name: str, field_collection: trt.PluginFieldCollection, /) -> Repeat:
        self.fields = {field.name: field for field in field_collection}
        return Repeat()


def test_fields_of_all_types() -> None:
    """tensorrt-features.md#11.10, 19.4."""
    creator = Fields()
    creator.field_names = None
    given = {
        "number": 7,
        "wide": 1 << 40,
        "numbers": [1, 2, 3],
        "real": 0.5,
        "reals": [0.5, 1.5],
        "text": "same",
        "table": numpy_helper.from_array(np.arange(6, dtype=np.float16).reshape(2, 3)),
    }
    with registered(creator):
        import_model(model(**given).SerializeToString(), RtContext())
        kinds = {name: (field.type.name, field.size) for name, field in creator.fields.items()}
        assert kinds == {
            "number": ("INT32", 1),
            "wide": ("INT64", 1),
            "numbers": ("INT32", 3),
            "real": ("FLOAT32", 1),
            "reals": ("FLOAT32", 2),
            "text": ("CHAR", 4),
            "table": ("FLOAT16", 6),
        }
        assert creator.fields["text"].data == b"same"
        with pytest.raises(UnsupportedError, match="attribute 'texts' is no number, no text and no tensor"):
            import_model(model(texts=["a", "b"]).SerializeToString(), RtContext())
        with pytest.raises(UnsupportedError, match="attribute 'flags' has the type bool, which no field has"):
            import_model(model(flags=numpy_helper.from_array(np.ones(2, np.bool_))).SerializeToString(), RtContext())


def test_failing_creator() -> None:
    creator = RepeatCreator()
    creator.field_names = None
    with registered(creator), pytest.raises(PluginError, match="plugin Repeat failed in create_plugin: TypeError"):
        import_model(model(size=1.0).SerializeToString(), RtContext())


def test_parser_makes_plugin_layers() -> None:
    """tensorrt-features.md#19.21: the layer of the network shows the plugin; the builder configures it for the profile.
    """
    creator = RepeatCreator()
    with registered(creator):
        builder = trt.Builder(trt.Logger())
        network = builder.create_network(1)
        parser = trt.OnnxParser(network, trt.Logger())
        assert parser.supports_operator("Repeat")
        assert parser.parse(model(factor=3.0, times=2).SerializeToString())
        assert [layer.type.name for layer in network] == ["ACTIVATION", "PLUGIN_V2", "UNARY"]
        layer = network.get_layer(1)
        layer.__class__ = trt.IPluginV2Layer
        assert isinstance(layer, trt.IPluginV2Layer)
        assert isinstance(layer.plugin, Repeat)
        assert (layer.name, layer.num_inputs, layer.plugin.times) == ("rep", 1, 2)
        assert layer.get_output(0).name == "b"
        config = builder.create_builder_config()
        config.target = "cpu"
        profile = builder.create_optimization_profile()
        profile.set_shape("x", (1, 3), (2, 3), (5, 3))
        config.add_optimization_profile(profile)
        creator.events.clear()
        plan = builder.build_serialized_network(network, config)
        assert plan is not None
        assert "configure (-1, 3) (1, 3) to (5, 3) -> (-1, 3)" in creator.events
        found = mlirt.load(bytes(plan)).run({"x": X})["y"]
    np.testing.assert_array_equal(found, -np.concatenate([np.maximum(X, 0) * 3] * 2))
    assert not parser.supports_operator("Repeat")
