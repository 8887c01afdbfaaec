"""Plugins in three parts, as TensorRT 10 has them: what they are, what a build asks, what a run calls (19.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.errors import UnsupportedError
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.enumeration import Enumeration
from mlirt.tensorrt.plugins.fields import PluginFieldCollection
from mlirt.tensorrt.plugins.registry import IPluginCreatorInterface
from mlirt.tensorrt.plugins.shape_expressions import DimsExprs, IExprBuilder
from mlirt.tensorrt.plugins.tensor_descriptions import DynamicPluginTensorDesc, PluginTensorDesc


class PluginCapabilityType(Enumeration):
    """The parts of a plugin."""

    CORE = 0
    BUILD = 1
    RUNTIME = 2


class TensorRTPhase(Enumeration):
    """What a creator makes a plugin for."""

    BUILD = 0
    RUNTIME = 1


class IPluginV3:
    """A plugin; each part may be the plugin itself."""

    def get_capability_interface(self, type: PluginCapabilityType) -> Any:
        """The part of a kind, `IPluginV3OneCore`, `..OneBuild` or `..OneRuntime`."""
        return self

    def clone(self) -> Any:
        """An equal plugin."""
        raise _missing(self, "clone")

    def destroy(self) -> None:
        """The plugin is used no more."""


class IPluginV3OneCore:
    """What a plugin is called."""

    plugin_name: str = ""
    plugin_version: str = "1"
    plugin_namespace: str = ""


class IPluginV3OneBuild:
    """What a build asks."""

    num_outputs: int = 1

    def configure_plugin(
        self, inputs: Sequence[DynamicPluginTensorDesc], outputs: Sequence[DynamicPluginTensorDesc], /
    ) -> None:
        """Learn what the tensors are like."""

    def get_output_data_types(self, input_types: Sequence[DataType], /) -> Sequence[DataType]:
        """The types of all outputs."""
        raise _missing(self, "get_output_data_types")

    def get_output_shapes(
        self, inputs: Sequence[DimsExprs], shape_inputs: Sequence[DimsExprs], expr_builder: IExprBuilder, /
    ) -> Sequence[DimsExprs]:
        """The lengths of all outputs as formulas over those of the inputs."""
        raise _missing(self, "get_output_shapes")

    def supports_format_combination(
        self, pos: int, in_out: Sequence[DynamicPluginTensorDesc], num_inputs: int, /
    ) -> bool:
        """Whether tensor `pos`, inputs first, may have its type, given those before it."""
        raise _missing(self, "supports_format_combination")

    def get_workspace_size(
        self, inputs: Sequence[DynamicPluginTensorDesc], outputs: Sequence[DynamicPluginTensorDesc], /
    ) -> int:
        """The bytes of memory that `enqueue` needs besides its tensors."""
        return 0

    def get_valid_tactics(self) -> Sequence[int]:
        """The ways to compute it; the first one is taken."""
        return ()


class IPluginV3OneRuntime:
    """What a run calls."""

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
        """Compute the outputs, as `IPluginV2DynamicExt.enqueue` does."""
        raise _missing(self, "enqueue")

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        """The fields that the creator makes an equal plugin from."""
        raise _missing(self, "get_fields_to_serialize")

    def attach_to_context(self, resource_context: Any, /) -> Any:
        """The plugin of a context: a clone."""
        raise _missing(self, "attach_to_context")

    def on_shape_change(self, inputs: Sequence[PluginTensorDesc], outputs: Sequence[PluginTensorDesc], /) -> None:
        """Runs with these shapes follow."""

    def set_tactic(self, tactic: int, /) -> None:
        """Compute it in this way; 0 where there are none to choose among."""


class IPluginCreatorV3One(IPluginCreatorInterface):
    """Makes such plugins from fields, also those that an engine gets back from a plan."""

    def create_plugin(self, name: str, field_collection: PluginFieldCollection, phase: TensorRTPhase, /) -> Any:
        """A plugin for the layer `name`, to be built with or to be run."""
        raise UnsupportedError(f"plugin creator {self.name}: {type(self).__name__} does not implement create_plugin")


def _missing(part: object, method: str) -> UnsupportedError:
    return UnsupportedError(f"plugin {type(part).__name__} does not implement {method}")
