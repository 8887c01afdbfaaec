"""The words of plugins: fields, shape formulas, creators and their registry."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from collecting_recorder import CollectingRecorder
from repeat_plugin import Repeat, RepeatCreator, registered

import mlirt as trt
from mlirt.errors import InvalidInputError, PluginError, UnsupportedError
from mlirt.tensorrt.plugins.calls import calling, restored


def test_registry() -> None:
    """tensorrt-features.md#19.1, 19.18: a creator is found by name, version and namespace, and registered once."""
    creator = RepeatCreator()
    with registered(creator, "mine") as registry:
        assert registry is trt.get_plugin_registry()
        assert creator in registry.plugin_creator_list
        assert registry.get_plugin_creator("Repeat", "1", "mine") is creator
        assert creator.plugin_namespace == "mine"
        assert registry.get_plugin_creator("Repeat", "1") is None
        assert registry.get_plugin_creator("Repeat", "2", "mine") is None
        assert not registry.register_creator(RepeatCreator(), "mine")
        recorder = registry.error_recorder = CollectingRecorder()
        assert registry.error_recorder is recorder
        registry.error_recorder = None
    assert not registry.deregister_creator(creator)
    assert registry.get_plugin_creator("Repeat", "1", "mine") is None
    with pytest.raises(UnsupportedError, match="plugins are Python classes"):
        registry.load_library("libmine.so")
    with pytest.raises(TypeError, match="expected an IPluginCreator"):
        registry.register_creator("Repeat")  # pyright: ignore[reportArgumentType]


def test_resources_are_shared() -> None:
    registry = trt.get_plugin_registry()
    first, second = object(), object()
    assert registry.acquire_plugin_resource("pool", first) is first
    assert registry.acquire_plugin_resource("pool", second) is first
    registry.release_plugin_resource("pool")
    assert registry.acquire_plugin_resource("pool", second) is first
    registry.release_plugin_resource("pool")
    registry.release_plugin_resource("pool")
    assert registry.acquire_plugin_resource("pool", second) is second
    registry.release_plugin_resource("pool")


def test_built_in_plugins() -> None:
    """tensorrt-features.md#19.2."""
    assert trt.init_libnvinfer_plugins(trt.Logger(), "")


def test_fields_of_creators() -> None:
    """tensorrt-features.md#19.3, 19.4: a field keeps its data alive, and says how many elements it has."""
    names = "FLOAT16 FLOAT32 FLOAT64 INT8 INT16 INT32 CHAR DIMS UNKNOWN BF16 INT64 FP8"
    assert [kind.name for kind in trt.PluginFieldType] == names.split()
    pads = trt.PluginField("pads", np.array([1, 2], np.int32), trt.PluginFieldType.INT32)
    mode = trt.PluginField("mode", b"same", trt.PluginFieldType.CHAR)
    assert (pads.size, mode.size, trt.PluginField("none").size) == (2, 4, 0)
    assert trt.PluginField("shape", trt.Dims((1, 2, 3)), trt.PluginFieldType.DIMS).size == 3
    assert trt.PluginField("text", "same").data == b"same"
    fields = trt.PluginFieldCollection([pads])
    fields.append(mode)
    fields.extend([trt.PluginField("x", 1.0)])
    fields.insert(0, trt.PluginField("y", 2.0))
    assert [field.name for field in fields] == ["y", "pads", "mode", "x"]
    assert fields.pop().name == "x"
    with pytest.raises(TypeError, match="a collection holds PluginField"):
        fields.append("mode")  # pyright: ignore[reportArgumentType]
    creator = RepeatCreator()
    assert [field.name for field in creator.field_names or ()] == ["factor", "times"]
    plugin = creator.create_plugin("r", trt.PluginFieldCollection([trt.PluginField("times", np.array([3], np.int32))]))
    assert (plugin.factor, plugin.times) == (2.0, 3)


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "SUM": lambda a, b: a + b,
    "PROD": lambda a, b: a * b,
    "MAX": max,
    "MIN": min,
    "SUB": lambda a, b: a - b,
    "EQUAL": lambda a, b: int(a == b),
    "LESS": lambda a, b: int(a < b),
    "FLOOR_DIV": lambda a, b: a // b,
    "CEIL_DIV": lambda a, b: -(-a // b),
}


@pytest.mark.parametrize("operation", trt.DimensionOperation)
@pytest.mark.parametrize(("left", "right"), [(7, 2), (2, 7), (4, 4), (0, 3)])
def test_dimension_formulas(operation: trt.DimensionOperation, left: int, right: int) -> None:
    """tensorrt-features.md#19.7: what is known is a number at once, and formulas of names have the same value later."""
    from mlirt.runtime.expressions import evaluate
    from mlirt.tensorrt.plugins.shape_expressions import IDimensionExpr

    builder, expected = trt.IExprBuilder(), OPERATIONS[operation.name](left, right)
    known = builder.operation(operation, builder.constant(left), builder.constant(right))
    assert known.is_constant()
    assert known.get_constant_value() == expected
    named = builder.operation(operation, IDimensionExpr("a"), IDimensionExpr("b"))
    assert not named.is_constant()
    assert named.get_constant_value() == -(1 << 31)
    assert evaluate(named.formula, {"a": left, "b": right}) == expected


def test_dimensions_of_a_tensor() -> None:
    builder = trt.IExprBuilder()
    three = trt.DimsExprs(3)
    three[1] = builder.constant(5)
    assert [one.get_constant_value() for one in trt.DimsExprs(three)] == [0, 5, 0]
    with pytest.raises(InvalidInputError, match="divided by 0"):
        builder.operation(trt.DimensionOperation.CEIL_DIV, builder.constant(1), builder.constant(0))


def test_failures_are_told_in_one_line() -> None:
    with (
        pytest.raises(PluginError, match="rep: plugin Repeat failed in enqueue: KeyError: 'x y'") as found,
        calling("rep", "Repeat", "enqueue"),
    ):
        raise KeyError("x\ny".replace("\n", " "))
    assert isinstance(found.value.__cause__, KeyError)


def test_plugins_that_are_not_there() -> None:
    """tensorrt-features.md#31.15, 19.14: the message names the plugin, and says what to do."""
    with pytest.raises(PluginError, match=r"rep: getPluginCreator\(\) could not find Plugin Absent version 1; r"):
        restored("rep", "Absent", "1", "", b"")
    with pytest.raises(PluginError, match="could not find Plugin Absent version 2 in namespace 'mine'"):
        restored("rep", "Absent", "2", "mine", b"")
    with pytest.raises(UnsupportedError, match="plugin Half: Half does not implement enqueue"):
        Half().enqueue([], [], [], [], 0, 0)


class Half(trt.IPluginV2DynamicExt):
    """A plugin with nothing in it."""


def test_what_a_plugin_need_not_write() -> None:
    """tensorrt-features.md#19.5: the methods that have a default."""
    plugin = Repeat()
    assert plugin.serialization_size == len(plugin.serialize())
    assert plugin.get_output_datatype(0, [trt.float16]) == trt.float16
    assert plugin.get_output_datatype(0, []) == trt.float32
    half = Half()
    assert (half.num_outputs, half.plugin_version, half.get_workspace_size([], [])) == (1, "1", 0)
    assert half.tensorrt_version == 100000
    half.attach_to_context(None, None, None)
    half.configure_plugin([], [])
    assert trt.IPluginV2DynamicExt(plugin).__dict__ == plugin.__dict__
