"""Layers with plugins: what a network asks of a plugin, and what it is told where the answers make no sense."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import numpy as np
import pytest
from layer_networks import new_network
from repeat_plugin import Description, Repeat

import mlirt as trt
from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidModelError, PluginError
from mlirt.frontend.network.module import network_module


def text_of(network: trt.INetworkDefinition, layer: trt.ILayer) -> str:
    network.mark_output(layer.get_output(0))
    return str(network_module(network, RtContext()))


def test_layer() -> None:
    """tensorrt-features.md#1.25, 19.20: the network has a clone of the plugin, and the layer shows it."""
    network, plugin = new_network(), Repeat(3.0, 2)
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, (-1, 3))], plugin)
    layer.name = "rep"
    assert layer.type == trt.LayerType.PLUGIN_V2
    assert isinstance(layer.plugin, Repeat)
    assert layer.plugin is not plugin
    assert layer.plugin.times == 2
    assert layer.get_output(0).shape == (-1, 3)
    assert network.get_layer(0).type == trt.LayerType.PLUGIN_V2
    text = text_of(network, layer)
    assert 'trt.plugin %0, %x {plugin = "Repeat"' in text
    assert 'made = [tensor<?x3xf32, #trt.dims<["2*x0.0", "3"]>>]' in text
    assert 'tensor<?x3xf32, #trt.dims<["2*x_0", "3"]>>' in text
    with pytest.raises(TypeError, match="expected an IPluginV2"):
        network.add_plugin_v2([], "Repeat")  # pyright: ignore[reportArgumentType]


def test_shapes_that_are_known() -> None:
    """tensorrt-features.md#19.7: a known length is a constant of the expression builder."""
    network = new_network()
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, (4, 3))], Repeat(3.0, 2))
    assert layer.get_output(0).shape == (8, 3)


def test_order_of_calls_while_a_network_is_made() -> None:
    """tensorrt-features.md#19.8: what is serialised is a clone that knows its tensors; clones are destroyed."""
    network, plugin = new_network(), Repeat()
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, (4, 3))], plugin)
    assert plugin.events == ["clone"]
    network_text = text_of(network, layer)
    assert network_text
    expected = ["supports 0 FLOAT", "supports 1 FLOAT", "clone", "configure (4, 3) (4, 3) to (4, 3) -> (4, 3)"]
    assert plugin.events == ["clone", *expected, "serialize", "destroy"]
    del network, layer
    gc.collect()
    assert plugin.events[-2:] == ["destroy", "destroy"]


class OnlyLower(Repeat):
    """Looks at no tensor behind the one it is asked about."""

    types = (trt.DataType.HALF,)

    def supports_format_combination(self, pos: int, in_out: Sequence[Description], num_inputs: int, /) -> bool:
        assert num_inputs == 2
        fits = super().supports_format_combination(pos, in_out, num_inputs)
        return fits and (pos == 0 or in_out[pos].type == in_out[pos - 1].type)


def test_types_that_a_plugin_takes() -> None:
    """tensorrt-features.md#19.6: tensor after tensor, each with the types that the ones before it have got; others are
    converted.
    """
    network, plugin = new_network(), OnlyLower()
    inputs = [network.add_input("x", trt.float32, (4, 3)), network.add_input("y", trt.float16, (4, 3))]
    layer = network.add_plugin_v2(inputs, plugin)
    assert layer.get_output(0).dtype == trt.float32
    asked = [event for event in plugin.events if event.startswith("supports")]
    assert asked == [
        f"supports {place} {kind}"
        for place, kind in ((0, "FLOAT"), (0, "HALF"), (1, "HALF"), (2, "FLOAT"), (2, "HALF"))
    ]
    text = text_of(network, layer)
    assert "xui8>, tensor<4x3xf16>, tensor<4x3xf16>) -> tensor<4x3xf16>" in text
    assert text.count("trt.identity") == 2


class OnlyChannels(Repeat):
    """Wants blocks of channels."""

    def supports_format_combination(self, pos: int, in_out: Sequence[Description], num_inputs: int, /) -> bool:
        return in_out[pos].format == trt.TensorFormat.CHW32


def test_formats_other_than_linear() -> None:
    """tensorrt-features.md#19.11: tensors are offered as LINEAR alone."""
    network = new_network()
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, (4, 3))], OnlyChannels())
    layer.name = "rep"
    with pytest.raises(InvalidModelError, match=r"rep: .* could not find any supported formats .*\(FLOAT, FLOAT"):
        text_of(network, layer)


class Bytes(Repeat):
    """Takes int8 and notes its scale."""

    types = (trt.DataType.INT8,)

    def supports_format_combination(self, pos: int, in_out: Sequence[Description], num_inputs: int, /) -> bool:
        self.note(f"scale {in_out[pos].scale:.3f}")
        return super().supports_format_combination(pos, in_out, num_inputs)


def test_scale_of_int8() -> None:
    """tensorrt-features.md#19.12: the scale follows from the range of the tensor; -1 where nobody has said it."""
    network, plugin = new_network(), Bytes()
    scale = network.add_constant((), np.array(0.02, np.float32)).get_output(0)
    rounded = network.add_quantize(network.add_input("x", trt.float32, (4, 3)), scale).get_output(0)
    rounded.dynamic_range = (-2.0, 2.54)
    layer = network.add_plugin_v2([rounded], plugin)
    assert layer.get_output(0).dtype == trt.int8
    assert [event for event in plugin.events if event.startswith("scale")] == ["scale 0.020", "scale -1.000"]


class Nowhere(Repeat):
    """Gives shapes that there are not."""

    def get_output_dimensions(
        self, output_index: int, inputs: Sequence[trt.DimsExprs], expr_builder: trt.IExprBuilder, /
    ) -> trt.DimsExprs:
        if self.times == 1:
            return trt.DimsExprs([expr_builder.constant(-2)])
        raise LookupError("no such output")


@pytest.mark.parametrize(
    ("times", "message"),
    [(1, r"output 0 has the shape \[-2\]"), (2, "failed in get_output_dimensions: LookupError: no such output")],
)
def test_shapes_that_make_no_sense(times: int, message: str) -> None:
    network = new_network()
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, (4, 3))], Nowhere(2.0, times))
    with pytest.raises(InvalidModelError, match=message):
        text_of(network, layer)


def test_no_outputs() -> None:
    plugin = Repeat()
    plugin.num_outputs = 0
    with pytest.raises(PluginError, match="Repeat has 0 outputs"):
        new_network().add_plugin_v2([], plugin)


def test_constants_stay_inputs() -> None:
    """A plugin is not called to compute a shape, though all that it reads is known."""
    network = new_network()
    given = network.add_constant((2,), np.array([2, 3], np.int32)).get_output(0)

    class Whole(Repeat):
        types = (trt.DataType.INT32,)

    shape = network.add_plugin_v2([given], Whole()).get_output(0)
    layer = network.add_shuffle(network.add_input("x", trt.float32, (6,)))
    layer.set_input(1, shape)
    assert layer.get_output(0).shape == (-1, -1)
