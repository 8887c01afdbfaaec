"""Runs a plugin on NumPy arrays, as an engine on a CPU would: what a layer with a plugin means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.tensorrt.data_types import data_type
from mlirt.tensorrt.plugins.calls import calling, initialized
from mlirt.tensorrt.plugins.plugin import IPluginV2DynamicExt
from mlirt.tensorrt.plugins.tensor_descriptions import DynamicPluginTensorDesc, PluginTensorDesc

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def run_on_host(
    layer: str, plugin: IPluginV2DynamicExt, inputs: Sequence[Array], results: Sequence[tuple[Sequence[int], Any]]
) -> list[Array]:
    """The outputs, whose shapes and NumPy types are `results`; the plugin is ended behind the call."""
    import numpy as np

    given = [np.ascontiguousarray(array).reshape(array.shape) for array in inputs]
    made = [np.empty(tuple(shape), dtype) for shape, dtype in results]
    read, written = ([PluginTensorDesc(one.shape, data_type(one.dtype.name)) for one in some] for some in (given, made))
    initialized(layer, plugin)
    try:
        with calling(layer, plugin.plugin_type, "configure_plugin"):
            plugin.configure_plugin(*([DynamicPluginTensorDesc(desc) for desc in some] for some in (read, written)))
        with calling(layer, plugin.plugin_type, "get_workspace_size"):
            workspace = np.empty(int(plugin.get_workspace_size(read, written)), np.uint8)
        with calling(layer, plugin.plugin_type, "enqueue"):
            plugin.enqueue(
                read,
                written,
                [one.ctypes.data for one in given],
                [one.ctypes.data for one in made],
                workspace.ctypes.data if workspace.size else 0,
                0,
            )
    finally:
        with calling(layer, plugin.plugin_type, "terminate"):
            plugin.terminate()
            plugin.destroy()
    return made
