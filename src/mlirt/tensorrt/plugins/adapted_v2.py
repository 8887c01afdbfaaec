"""The older kinds of plugins as an `IPluginV2DynamicExt`: the leading dimension of their tensors is the batch.

Such plugins see tensors without their batch (tensorrt-features.md#19.10), whose other lengths are known when the engine
is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mlirt.errors import InvalidModelError
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.plugins.plugin import IPluginV2, IPluginV2DynamicExt, IPluginV2Ext, IPluginV2IOExt
from mlirt.tensorrt.plugins.shape_expressions import DimsExprs, IExprBuilder
from mlirt.tensorrt.plugins.tensor_descriptions import DynamicPluginTensorDesc, PluginTensorDesc


class AdaptedV2(IPluginV2DynamicExt):
    """The calls of the older plugin behind the methods of the newer kind.

    With an implicit batch the plugin says which tensors are the same for all samples (tensorrt-features.md#19.19).
    """

    def __init__(self, plugin: IPluginV2, *, has_implicit_batch: bool = False) -> None:
        super().__init__()
        self.has_implicit_batch = has_implicit_batch
        self.plugin = plugin
        self._calls = cast("Any", plugin)  # methods that only plugins of these kinds have
        self.plugin_type, self.plugin_version = plugin.plugin_type, plugin.plugin_version
        self.plugin_namespace, self.num_outputs = plugin.plugin_namespace, plugin.num_outputs

    def get_output_datatype(self, index: int, input_types: Sequence[DataType], /) -> DataType:
        if isinstance(self.plugin, IPluginV2Ext):
            return self.plugin.get_output_data_type(index, input_types)
        return super().get_output_datatype(index, input_types)

    def get_output_dimensions(
        self, output_index: int, inputs: Sequence[DimsExprs], expr_builder: IExprBuilder, /
    ) -> DimsExprs:
        if any(not length.is_constant() for one in inputs for length in one[1:]) or not all(inputs):
            raise InvalidModelError(f"plugin {self.plugin_type}: its inputs have a batch, and known lengths behind it")
        shapes = [Dims(length.get_constant_value() for length in one[1:]) for one in inputs]
        found = self._calls.get_output_shape(output_index, shapes)
        shared = [one[0].is_constant() and one[0].get_constant_value() == 1 for one in inputs]
        batch = next((one[0] for one, is_shared in zip(inputs, shared, strict=True) if not is_shared), inputs[0][0])
        if self._is_shared(output_index, shared):
            batch = expr_builder.constant(1)
        return DimsExprs([batch, *map(expr_builder.constant, found)])

    def takes_shared(self, input_index: int) -> bool:
        """Whether an input that is the same for all samples may come once."""
        is_asked = self.has_implicit_batch and isinstance(self.plugin, IPluginV2Ext)
        return is_asked and bool(self._calls.can_broadcast_input_across_batch(input_index))

    def _is_shared(self, output_index: int, shared: Sequence[bool]) -> bool:
        is_asked = self.has_implicit_batch and isinstance(self.plugin, IPluginV2Ext)
        return is_asked and bool(self._calls.is_output_broadcast_across_batch(output_index, list(shared)))

    def supports_format_combination(self, pos: int, in_out: Sequence[PluginTensorDesc], num_inputs: int, /) -> bool:
        if isinstance(self.plugin, IPluginV2IOExt):
            described = [_without_batch(one) for one in in_out]
            return self.plugin.supports_format_combination(pos, described, num_inputs, len(in_out) - num_inputs)
        one = in_out[pos]
        is_alike = isinstance(self.plugin, IPluginV2Ext) or one.type == in_out[0].type
        return is_alike and bool(self._calls.supports_format(one.type, one.format))

    def configure_plugin(
        self, inputs: Sequence[DynamicPluginTensorDesc], outputs: Sequence[DynamicPluginTensorDesc], /
    ) -> None:
        if isinstance(self.plugin, IPluginV2IOExt):
            self.plugin.configure_plugin(*([_without_batch(one.desc) for one in some] for some in (inputs, outputs)))
            return
        shapes = [[Dims(list(one.desc.dims)[1:]) for one in some] for some in (inputs, outputs)]
        format_, largest = inputs[0].desc.format, max(1, *(one.max[0] for one in inputs))
        if isinstance(self.plugin, IPluginV2Ext):
            types = [[one.desc.type for one in some] for some in (inputs, outputs)]
            shared = [[one.desc.dims[0] == 1 < largest for one in some] for some in (inputs, outputs)]
            self._calls.configure_plugin(*shapes, *types, *shared, format_, largest)
        else:
            self._calls.configure_with_format(*shapes, inputs[0].desc.type, format_, largest)

    def get_workspace_size(self, inputs: Sequence[PluginTensorDesc], outputs: Sequence[PluginTensorDesc], /) -> int:
        return int(self._calls.get_workspace_size(_batch(inputs)))

    def enqueue(
        self,
        input_desc: Sequence[PluginTensorDesc],
        output_desc: Sequence[PluginTensorDesc],
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
        /,
    ) -> None:
        self._calls.execute_async(_batch(input_desc), inputs, outputs, workspace, stream)

    def initialize(self) -> int | None:
        return self.plugin.initialize()

    def terminate(self) -> None:
        self.plugin.terminate()

    def destroy(self) -> None:
        self.plugin.destroy()

    def serialize(self) -> bytes | str:
        return self.plugin.serialize()

    def clone(self) -> AdaptedV2:
        return AdaptedV2(self.plugin.clone())

    def attach_to_context(self, cudnn: object, cublas: object, allocator: object) -> None:
        if isinstance(self.plugin, IPluginV2Ext):
            self.plugin.attach_to_context(cudnn, cublas, allocator)

    def detach_from_context(self) -> None:
        if isinstance(self.plugin, IPluginV2Ext):
            self.plugin.detach_from_context()


def _without_batch(one: PluginTensorDesc) -> PluginTensorDesc:
    return PluginTensorDesc(list(one.dims)[1:], one.type, one.format, one.scale)


def _batch(inputs: Sequence[PluginTensorDesc]) -> int:
    return max(one.dims[0] for one in inputs)
