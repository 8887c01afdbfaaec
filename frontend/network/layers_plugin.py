"""Layers of the user's own: plugins (features 1.25, 19.20)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast
from weakref import finalize

from xdsl.ir import SSAValue

from mlirt.dialects.trt.plugin import PluginOp
from mlirt.errors import PluginError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.plugin_plan import plan_plugin
from mlirt.tensorrt.argument_types import expect
from mlirt.tensorrt.layer_enums import LayerType
from mlirt.tensorrt.plugins.calls import cloned
from mlirt.tensorrt.plugins.plugin import IPluginV2DynamicExt

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor


class IPluginV2Layer(ILayer):
    """A layer that a plugin computes."""

    KIND, TYPE = "PluginV2", LayerType.PLUGIN_V2

    @property
    def plugin(self) -> IPluginV2DynamicExt:
        """The network's own clone of the plugin that was added."""
        return cast("IPluginV2DynamicExt", self.record.settings["plugin"])

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        given = [ir.input(index) for index in range(len(self.record.inputs))]
        ranges = [None if one is None else one.range for one in self.record.inputs]
        types = [value.type for value in given]
        plan = plan_plugin(self.name, self.plugin, types, ranges, ir.emission.bounds)
        inputs = [ir.cast(value, element) for value, element in zip(given, plan.inputs, strict=True)]
        state = ir.constant(plan.state_array(), "state")
        results = ir.op(PluginOp, [state, inputs], plan.properties(), len(self.record.outputs))
        return [ir.cast(value, element) for value, element in zip(results, plan.declared, strict=True)]


class PluginMethods(Methods):
    """`add_plugin_v2`."""

    def add_plugin_v2(self, inputs: Sequence[ITensor], plugin: IPluginV2DynamicExt) -> IPluginV2Layer:
        """A layer that computes what a clone of the plugin does (feature 19.20)."""
        expect("add_plugin_v2(): plugin", plugin, IPluginV2DynamicExt)
        if plugin.num_outputs < 1:
            raise PluginError(f"add_plugin_v2: plugin {plugin.plugin_type} has {plugin.num_outputs} outputs")
        layer = self.graph.add(IPluginV2Layer, list(inputs), plugin.num_outputs)
        layer.record.settings["plugin"] = kept = cloned(layer.name, plugin)
        finalize(layer.record, kept.destroy).atexit = False
        return layer
