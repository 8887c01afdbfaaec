"""Creators of plugins, and the registry where networks, models and plans find them (tensorrt-features.md#19.1 to 19.3,
19.18).
"""

from __future__ import annotations

from typing import Any

from mlirt.errors import UnsupportedError
from mlirt.tensorrt.argument_types import expect
from mlirt.tensorrt.error_recorder import IErrorRecorder
from mlirt.tensorrt.plugins.fields import PluginFieldCollection
from mlirt.tensorrt.reported_version import reports_at_least


class IPluginCreatorInterface:
    """What all creators have: the name and the version of the plugins that they make, and what they make them from."""

    name: str = ""
    plugin_version: str = "1"
    plugin_namespace: str = ""
    field_names: PluginFieldCollection | None = None


class IPluginCreator(IPluginCreatorInterface):
    """Makes plugins of one name and version: from fields, and from what such a plugin has serialised."""

    @property
    def tensorrt_version(self) -> int:
        """How many fields there are, as TensorRT's documentation has it."""
        return len(self.field_names or ())

    def create_plugin(self, name: str, field_collection: PluginFieldCollection, /) -> Any:
        """A plugin for the layer `name`; None where the fields do not make one."""
        raise UnsupportedError(f"plugin creator {self.name}: {type(self).__name__} does not implement create_plugin")

    def deserialize_plugin(self, name: str, serialized_plugin: bytes, /) -> Any:
        """The plugin that has serialised itself as these bytes."""
        raise UnsupportedError(
            f"plugin creator {self.name}: {type(self).__name__} does not implement deserialize_plugin"
        )


class IPluginRegistry:
    """The creators that have been registered, by name, version and namespace. There is one for the process."""

    def __init__(self) -> None:
        self._creators: dict[tuple[str, str, str], IPluginCreatorInterface] = {}
        self._resources: dict[str, tuple[Any, int]] = {}
        self.error_recorder: IErrorRecorder | None = None
        self.parent_search_enabled = True

    @property
    def plugin_creator_list(self) -> list[IPluginCreator]:
        """The creators of plugins up to `IPluginV2DynamicExt`."""
        return [creator for creator in self._creators.values() if isinstance(creator, IPluginCreator)]

    @property
    def all_creators(self) -> list[IPluginCreatorInterface]:
        return list(self._creators.values())

    def register_creator(self, creator: IPluginCreatorInterface, plugin_namespace: str = "") -> bool:
        """Let a creator be found in a namespace; False where there is one of its name and version
        (tensorrt-features.md#19.18).
        """
        expect("register_creator(): creator", creator, IPluginCreatorInterface)
        key = (creator.name, creator.plugin_version, plugin_namespace)
        if not creator.name or key in self._creators:
            return False
        creator.plugin_namespace = plugin_namespace
        self._creators[key] = creator
        return True

    def deregister_creator(self, creator: IPluginCreatorInterface) -> bool:
        """Let a creator be found no more; False for one that is not registered."""
        places = [key for key, one in self._creators.items() if one is creator]
        for key in places:
            del self._creators[key]
        return bool(places)

    def get_plugin_creator(self, type: str, version: str, plugin_namespace: str = "") -> IPluginCreator | None:
        """The creator of plugins up to `IPluginV2DynamicExt`; None where there is none."""
        creator = self.get_creator(type, version, plugin_namespace)
        return creator if isinstance(creator, IPluginCreator) else None

    def get_creator(self, type: str, version: str, plugin_namespace: str = "") -> IPluginCreatorInterface | None:
        """The creator of a name, a version and a namespace, of whatever kind; None where there is none."""
        return self._creators.get((type, version, plugin_namespace))

    def acquire_plugin_resource(self, key: str, resource: Any) -> Any:
        """What plugins share under a name: that of the first who asks, kept until all have released it."""
        kept, users = self._resources.get(key, (resource, 0))
        self._resources[key] = (kept, users + 1)
        return kept

    def release_plugin_resource(self, key: str) -> None:
        """One user less of what is shared under a name."""
        kept, users = self._resources.pop(key, (None, 0))
        if users > 1:
            self._resources[key] = (kept, users - 1)

    def load_library(self, plugin_path: str) -> None:
        """Not supported: plugins are written in Python."""
        raise UnsupportedError(f"load_library({plugin_path!r}): plugins are Python classes; register their creators")

    if reports_at_least(8, 6):

        def deregister_library(self, handle: object) -> None:
            """Not supported, as `load_library`."""
            raise UnsupportedError("deregister_library(): plugins are Python classes; deregister their creators")


_REGISTRY = IPluginRegistry()


def get_plugin_registry() -> IPluginRegistry:
    """The registry of the process."""
    return _REGISTRY
