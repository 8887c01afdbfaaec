"""Layers of the user's own: plugins (tensorrt-features.md#1.25, 19.20)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar, cast
from weakref import finalize

from xdsl.ir import SSAValue

from mlirt.dialects.trt.plugin import PluginOp
from mlirt.errors import PluginError, UnsupportedError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.tensor import ITensor
from mlirt.frontend.plugin_plan import plan_plugin
from mlirt.tensorrt.argument_types import expect
from mlirt.tensorrt.layer_enums import LayerType
from mlirt.tensorrt.plugins.adapted_v2 import AdaptedV2
from mlirt.tensorrt.plugins.adapted_v3 import AdaptedV3
from mlirt.tensorrt.plugins.built_in import BuiltInPlugin
from mlirt.tensorrt.plugins.calls import checked_plugin, cloned
from mlirt.tensorrt.plugins.functions.op_calls import OpCall
from mlirt.tensorrt.plugins.functions.tensors import TensorDesc
from mlirt.tensorrt.plugins.plugin import IPluginV2, IPluginV2DynamicExt
from mlirt.tensorrt.plugins.plugin_v3 import IPluginV3

if TYPE_CHECKING:
    from mlirt.frontend.importing.network import Network, Value
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.tensorrt.plugins.functions.function_plugin import FunctionPlugin


Layer = TypeVar("Layer", bound=ILayer)


class IPluginV3Layer(ILayer):
    """A layer that a plugin in three parts computes; TensorRT 8.5 has no type for it but that of plugins."""

    KIND, TYPE = "PluginV3", LayerType.PLUGIN_V2

    @property
    def plugin(self) -> IPluginV3:
        """The network's own clone of the plugin that was added."""
        return cast("AdaptedV3", self.record.settings["plugin"]).plugin

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        return _emit(self, ir)


class IPluginV2Layer(ILayer):
    """A layer that a plugin computes."""

    KIND, TYPE = "PluginV2", LayerType.PLUGIN_V2

    @property
    def plugin(self) -> IPluginV2:
        """The network's own clone of the plugin that was added."""
        plugin = self.record.settings["plugin"]
        return plugin.plugin if isinstance(plugin, AdaptedV2) else cast("IPluginV2DynamicExt", plugin)

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        return _emit(self, ir)


class IFunctionLayer(ILayer):
    """A layer that a function computes (`mlirt.op`, `mlirt.plugin.register`): layers that fuse, or a plugin."""

    KIND, TYPE = "Plugin", LayerType.PLUGIN_V2

    @property
    def plugin(self) -> FunctionPlugin:
        """The plugin that calls the function."""
        return cast("FunctionPlugin", self.record.settings["plugin"])

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        from mlirt.frontend.functions.function_layers import planned_plugin, read_layers

        def make(net: Network, inputs: list[Value]) -> list[Value]:
            read = read_layers(net, self.name, self.plugin, inputs)
            return planned_plugin(net, self.name, self.plugin, inputs, ir.emission.bounds) if read is None else read

        return ir.by_importer(make)


def _emit(layer: ILayer, ir: LayerEmitter) -> Sequence[SSAValue]:
    plugin = cast("IPluginV2DynamicExt", layer.record.settings["plugin"])
    if isinstance(plugin, BuiltInPlugin):
        from mlirt.frontend.built_in_plugins import built_in_results

        return ir.by_importer(lambda net, inputs: built_in_results(net, layer.name, plugin, inputs))
    given = [ir.input(index) for index in range(len(layer.record.inputs))]
    ranges = [None if one is None else one.range for one in layer.record.inputs]
    types = [value.type for value in given]
    plan = plan_plugin(layer.name, plugin, types, ranges, ir.emission.bounds)
    inputs = [ir.cast(value, element) for value, element in zip(given, plan.inputs, strict=True)]
    state = ir.constant(plan.state_array(), "state")
    results = ir.op(PluginOp, [state, inputs], plan.properties(), len(layer.record.outputs))
    return [ir.cast(value, element) for value, element in zip(results, plan.declared, strict=True)]


class PluginMethods(Methods):
    """`add_plugin_v2`, `add_plugin_v3` and `add_plugin`."""

    def add_plugin_v2(self, inputs: Sequence[ITensor], plugin: IPluginV2) -> IPluginV2Layer:
        """A layer that computes what a clone of the plugin does (tensorrt-features.md#19.20)."""
        expect("add_plugin_v2(): plugin", plugin, IPluginV2)
        return self._add_plugin(IPluginV2Layer, inputs, checked_plugin("add_plugin_v2", plugin.plugin_type, plugin))

    def add_plugin_v3(
        self, inputs: Sequence[ITensor], shape_inputs: Sequence[ITensor], plugin: IPluginV3
    ) -> IPluginV3Layer:
        """The same for a plugin in three parts, which here has no inputs that are shapes."""
        expect("add_plugin_v3(): plugin", plugin, IPluginV3)
        if shape_inputs:
            raise UnsupportedError("add_plugin_v3: inputs that are shapes are not supported; give them as other inputs")
        return self._add_plugin(IPluginV3Layer, inputs, checked_plugin("add_plugin_v3", type(plugin).__name__, plugin))

    def add_plugin(self, call: OpCall) -> IFunctionLayer:
        """A layer for `mlirt.plugin.op.domain.Name(x, attribute=..)`: an op that a function computes."""
        expect("add_plugin(): call", call, OpCall)
        for one in call.inputs:
            expect(f"add_plugin(): input of {call.creator.op.label}", one, ITensor)
        described = [
            TensorDesc([max(length, 0) for length in one.shape], one.dtype)
            for one in cast("Sequence[ITensor]", call.inputs)
        ]
        plugin = call.creator.plugin_for(described, call.attributes)
        return self._add_plugin(IFunctionLayer, cast("Sequence[ITensor]", call.inputs), plugin)

    def _add_plugin(self, layer_class: type[Layer], inputs: Sequence[ITensor], plugin: IPluginV2DynamicExt) -> Layer:
        if plugin.num_outputs < 1:
            raise PluginError(f"add_plugin: plugin {plugin.plugin_type} has {plugin.num_outputs} outputs")
        layer = self.graph.add(layer_class, list(inputs), plugin.num_outputs)
        layer.record.settings["plugin"] = kept = cloned(layer.name, plugin)
        finalize(layer.record, kept.destroy).atexit = False
        return layer
