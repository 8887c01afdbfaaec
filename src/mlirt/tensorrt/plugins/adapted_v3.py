"""An `IPluginV3` as an `IPluginV2DynamicExt`, which is what networks and engines work with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.plugins.field_bytes import bytes_of
from mlirt.tensorrt.plugins.plugin import IPluginV2DynamicExt
from mlirt.tensorrt.plugins.plugin_v3 import (
    IPluginV3,
    IPluginV3OneBuild,
    IPluginV3OneCore,
    IPluginV3OneRuntime,
    PluginCapabilityType,
    TensorRTPhase,
)
from mlirt.tensorrt.plugins.shape_expressions import DimsExprs, IExprBuilder
from mlirt.tensorrt.plugins.tensor_descriptions import DynamicPluginTensorDesc, PluginTensorDesc


class AdaptedV3(IPluginV2DynamicExt):
    """The parts of a plugin behind the methods of the older kind; `phase` tells which of them are asked."""

    def __init__(self, plugin: IPluginV3, phase: TensorRTPhase) -> None:
        super().__init__()
        self.plugin, self.phase = plugin, phase
        core: IPluginV3OneCore = plugin.get_capability_interface(PluginCapabilityType.CORE)
        self.plugin_type, self.plugin_version = core.plugin_name, core.plugin_version
        self.plugin_namespace = core.plugin_namespace
        self.num_outputs = self._build.num_outputs

    @property
    def _build(self) -> IPluginV3OneBuild:
        return self.plugin.get_capability_interface(PluginCapabilityType.BUILD)

    @property
    def _runtime(self) -> IPluginV3OneRuntime:
        return self.plugin.get_capability_interface(PluginCapabilityType.RUNTIME)

    def get_output_datatype(self, index: int, input_types: Sequence[DataType], /) -> DataType:
        return self._build.get_output_data_types(input_types)[index]

    def get_output_dimensions(
        self, output_index: int, inputs: Sequence[DimsExprs], expr_builder: IExprBuilder, /
    ) -> DimsExprs:
        return self._build.get_output_shapes(inputs, [], expr_builder)[output_index]

    def supports_format_combination(self, pos: int, in_out: Sequence[PluginTensorDesc], num_inputs: int, /) -> bool:
        described = [DynamicPluginTensorDesc(one) for one in in_out]
        return self._build.supports_format_combination(pos, described, num_inputs)

    def configure_plugin(
        self, inputs: Sequence[DynamicPluginTensorDesc], outputs: Sequence[DynamicPluginTensorDesc], /
    ) -> None:
        if self.phase is TensorRTPhase.BUILD:
            self._build.configure_plugin(inputs, outputs)
        else:
            self._runtime.on_shape_change([one.desc for one in inputs], [one.desc for one in outputs])

    def get_workspace_size(self, inputs: Sequence[PluginTensorDesc], outputs: Sequence[PluginTensorDesc], /) -> int:
        described = [[DynamicPluginTensorDesc(one) for one in some] for some in (inputs, outputs)]
        return self._build.get_workspace_size(described[0], described[1])

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
        self._runtime.enqueue(input_desc, output_desc, inputs, outputs, workspace, stream)

    def initialize(self) -> None:
        """The first of the ways to compute it is taken; an engine does not measure them."""
        tactics = list(self._build.get_valid_tactics())
        self._runtime.set_tactic(tactics[0] if tactics else 0)

    def serialize(self) -> bytes:
        return bytes_of(self._runtime.get_fields_to_serialize())

    def clone(self) -> AdaptedV3:
        return AdaptedV3(self.plugin.clone(), self.phase)

    def attach_to_context(self, cudnn: Any, cublas: Any, allocator: Any) -> None:
        before, self.plugin = self.plugin, self._runtime.attach_to_context(None)
        if before is not self.plugin:
            before.destroy()

    def destroy(self) -> None:
        self.plugin.destroy()
