"""The plugins of an engine, their clones for a context, and the calls that are launches (tensorrt-features.md#19.8).

A plugin is made by the creator that the process has registered for the name in the plan, and by nobody else.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import numpy as np

from mlirt.errors import MlirtError
from mlirt.runtime.bound_launch import BoundLaunch
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.shape_binding import ShapeBinding
from mlirt.tensorrt.data_types import data_type
from mlirt.tensorrt.plugins.calls import calling, cloned, initialized, restored
from mlirt.tensorrt.plugins.plugin import IPluginV2DynamicExt
from mlirt.tensorrt.plugins.tensor_descriptions import DynamicPluginTensorDesc, PluginTensorDesc


class Memory(Protocol):
    """Memory of the device."""

    address: int
    size: int


class EnginePlugins:
    """A plugin for each launch of one, initialised until the engine is deleted."""

    def __init__(self, manifest: Manifest, weights: Mapping[str, np.ndarray]) -> None:
        self.manifest = manifest
        self._ready: dict[int, IPluginV2DynamicExt] = {}
        for index, launch in enumerate(manifest.launches):
            call = manifest.kernels[launch.kernel].plugin
            if call is not None:
                state = b"" if call.state is None else np.ascontiguousarray(weights[call.state]).tobytes()
                plugin = restored(launch.layer, call.name, call.version, call.namespace, state)
                initialized(launch.layer, plugin)
                self._ready[index] = plugin

    def __del__(self) -> None:
        for plugin in self._ready.values():
            with suppress(MlirtError), calling("engine", plugin.plugin_type, "terminate"):
                plugin.terminate()
            with suppress(MlirtError), calling("engine", plugin.plugin_type, "destroy"):
                plugin.destroy()

    def for_context(self) -> "ContextPlugins":
        """Clones for one context."""
        return ContextPlugins(self, self._ready)


class ContextPlugins:
    """A context's own clones."""

    def __init__(self, engine: EnginePlugins, plugins: Mapping[int, IPluginV2DynamicExt]) -> None:
        self.manifest = engine.manifest
        self._engine = engine  # which must not be ended before its clones
        self._clones: dict[int, IPluginV2DynamicExt] = {}
        for index, plugin in plugins.items():
            layer = self.manifest.launches[index].layer
            self._clones[index] = clone = cloned(layer, plugin)
            with calling(layer, clone.plugin_type, "attach_to_context"):
                clone.attach_to_context(None, None, None)

    def __del__(self) -> None:
        for clone in self._clones.values():
            with suppress(MlirtError), calling("context", clone.plugin_type, "detach_from_context"):
                clone.detach_from_context()
            with suppress(MlirtError), calling("context", clone.plugin_type, "destroy"):
                clone.destroy()

    def bound(self, binding: ShapeBinding, allocate: Callable[[int], Memory]) -> dict[int, "PluginLaunch"]:
        """The launches of plugins for one set of shapes, by number; `allocate` gets memory for their workspace."""
        return {
            index: PluginLaunch(self.manifest, clone, binding.launches[index], allocate)
            for index, clone in self._clones.items()
        }


class PluginLaunch:
    """One launch, with the shapes that its tensors have."""

    def __init__(
        self,
        manifest: Manifest,
        plugin: IPluginV2DynamicExt,
        launch: BoundLaunch,
        allocate: Callable[[int], Memory],
    ) -> None:
        entry = manifest.launches[launch.index]
        call = manifest.kernels[entry.kernel].plugin
        assert call is not None
        self.layer, self.plugin = entry.layer, plugin
        self.tensors = len(call.ranks)
        self._inputs, self._allocate = call.inputs, allocate
        self._has_work = 0 not in launch.grid
        lengths = iter([argument for argument in launch.args[self.tensors :] if isinstance(argument, int)])
        described = [
            PluginTensorDesc([next(lengths) for _ in range(rank)], data_type(element))
            for element, rank in zip(call.elements, call.ranks, strict=True)
        ]
        self._read, self._written = described[: call.inputs], described[call.inputs :]
        self._workspace: Memory | None = None
        self._is_configured = False

    def others_have_run(self) -> None:
        """The plugin may have been told other shapes since."""
        self._is_configured = False

    def enqueue(self, addresses: Sequence[int], stream: int) -> None:
        """Let the plugin compute, on tensors at these addresses, inputs first; nothing where outputs have no bytes."""
        if not self._has_work:
            return
        if not self._is_configured:
            self._configure()
        inputs, outputs = list(addresses[: self._inputs]), list(addresses[self._inputs : self.tensors])
        workspace = 0 if self._workspace is None else self._workspace.address
        with calling(self.layer, self.plugin.plugin_type, "enqueue"):
            self.plugin.enqueue(self._read, self._written, inputs, outputs, workspace, stream)

    def _configure(self) -> None:
        """Tell the plugin the shapes, and get what memory it wants besides its tensors (tensorrt-features.md#19.13)."""
        with calling(self.layer, self.plugin.plugin_type, "configure_plugin"):
            self.plugin.configure_plugin(
                [DynamicPluginTensorDesc(one) for one in self._read],
                [DynamicPluginTensorDesc(one) for one in self._written],
            )
        with calling(self.layer, self.plugin.plugin_type, "get_workspace_size"):
            size = int(self.plugin.get_workspace_size(self._read, self._written))
        if size and (self._workspace is None or self._workspace.size < size):
            self._workspace = self._allocate(size)
        self._is_configured = True
