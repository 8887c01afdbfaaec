"""The classes that plugins derive from: a layer whose kernel the user writes (tensorrt-features.md#19.5).

The life of a plugin: `add_plugin_v2` keeps a clone in the network. A build asks for its formats, configures a clone of
that and keeps what `serialize` returns. An engine gets the plugin back from its creator and calls `initialize`; each
context has a clone, which is configured for the shapes of a run before `enqueue`. `destroy` ends every clone, and
`terminate` comes before it in the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.errors import UnsupportedError
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.plugins.shape_expressions import DimsExprs, IExprBuilder
from mlirt.tensorrt.plugins.tensor_descriptions import DynamicPluginTensorDesc, PluginTensorDesc

# The version of TensorRT whose calls these are: 10.0.
_VERSION = 100000


class IPluginV2:
    """What all plugins have. Its own kinds of shapes and formats are of networks with an implicit batch."""

    num_outputs: int = 1
    plugin_type: str = ""
    plugin_version: str = "1"
    plugin_namespace: str = ""

    def __init__(self, other: IPluginV2 | None = None) -> None:
        if other is not None:
            self.__dict__.update(other.__dict__)

    @property
    def tensorrt_version(self) -> int:
        return _VERSION

    @property
    def serialization_size(self) -> int:
        """The number of bytes that `serialize` returns."""
        return self.get_serialization_size()

    def get_serialization_size(self) -> int:
        return len(self.serialize())

    def initialize(self) -> int | None:
        """Get ready to run; anything but None and 0 is a failure (tensorrt-features.md#19.15)."""

    def terminate(self) -> None:
        """Give back what `initialize` got."""

    def serialize(self) -> bytes | str:
        """What the creator's `deserialize_plugin` makes an equal plugin from."""
        raise self._missing("serialize")

    def destroy(self) -> None:
        """The plugin is used no more."""

    def clone(self) -> Any:
        """An equal plugin, which may share what it does not change."""
        raise self._missing("clone")

    def _missing(self, method: str) -> UnsupportedError:
        kind = type(self).__name__
        return UnsupportedError(f"plugin {self.plugin_type or kind}: {kind} does not implement {method}")


class IPluginV2Ext(IPluginV2):
    """A plugin that is told about contexts, and may have outputs of another type than its inputs."""

    def get_output_data_type(self, index: int, input_types: Sequence[DataType], /) -> DataType:
        """The type of an output: that of the first input."""
        return input_types[0] if input_types else DataType.FLOAT

    def can_broadcast_input_across_batch(self, input_index: int, /) -> bool:
        """Whether an input that is the same for all samples may come once; asked with an implicit batch
        (tensorrt-features.md#19.19).
        """
        return False

    def is_output_broadcast_across_batch(self, output_index: int, input_is_broadcasted: Sequence[bool], /) -> bool:
        """Whether an output is the same for all samples, given which inputs come once; asked with an implicit batch."""
        return False

    def attach_to_context(self, cudnn: object, cublas: object, allocator: object) -> None:
        """A context has the plugin now; there are no libraries and no allocator to offer."""

    def detach_from_context(self) -> None:
        """The context has the plugin no more."""


class IPluginV2IOExt(IPluginV2Ext):
    """A plugin with tensors of several types and formats, which it sees without their batch.

    As the kinds before it, one has `get_output_shape`, `get_workspace_size` and `execute_async`.
    """

    def supports_format_combination(
        self, pos: int, in_out: Sequence[PluginTensorDesc], num_inputs: int, num_outputs: int, /
    ) -> bool:
        """Whether tensor `pos`, inputs first, may have its type, given those before it (tensorrt-features.md#19.6)."""
        raise self._missing("supports_format_combination")

    def configure_plugin(self, inputs: Sequence[PluginTensorDesc], outputs: Sequence[PluginTensorDesc], /) -> None:
        """Learn what the tensors are like when an engine is built, and before runs with other batches."""


class IPluginV2DynamicExt(IPluginV2Ext):
    """A plugin for networks whose shapes the run decides."""

    def get_output_datatype(self, index: int, input_types: Sequence[DataType], /) -> DataType:
        """The type of an output; by default what `get_output_data_type` says."""
        return self.get_output_data_type(index, input_types)

    def get_output_dimensions(
        self, output_index: int, inputs: Sequence[DimsExprs], expr_builder: IExprBuilder, /
    ) -> DimsExprs:
        """The lengths of an output as formulas over those of the inputs."""
        raise self._missing("get_output_dimensions")

    def supports_format_combination(self, pos: int, in_out: Sequence[PluginTensorDesc], num_inputs: int, /) -> bool:
        """Whether tensor `pos`, inputs first, may have its type, given those before it (tensorrt-features.md#19.6)."""
        raise self._missing("supports_format_combination")

    def configure_plugin(
        self, inputs: Sequence[DynamicPluginTensorDesc], outputs: Sequence[DynamicPluginTensorDesc], /
    ) -> None:
        """Learn what the tensors are like: when an engine is built, and before runs with other shapes."""

    def get_workspace_size(self, inputs: Sequence[PluginTensorDesc], outputs: Sequence[PluginTensorDesc], /) -> int:
        """The bytes of memory that `enqueue` needs besides its tensors."""
        return 0

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
        """Compute the outputs; tensors and workspace are given by their addresses.

        In an engine for a GPU they are addresses of the device, and the work is queued on the CUDA stream. On a CPU
        they are addresses of host memory, `stream` is 0, and the work is done when the call returns.
        """
        raise self._missing("enqueue")
