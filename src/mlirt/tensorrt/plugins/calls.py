"""Calls of a plugin's own code: found by its creator, with every failure told as one line that names layer and plugin.

Nothing of a plan or a model is executed here: a name, a version and a namespace choose a creator that the process has
registered, and the bytes are its data.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

from mlirt.errors import MlirtError, PluginError
from mlirt.tensorrt.plugins.adapted_v2 import AdaptedV2
from mlirt.tensorrt.plugins.adapted_v3 import AdaptedV3
from mlirt.tensorrt.plugins.field_bytes import fields_of
from mlirt.tensorrt.plugins.fields import PluginFieldCollection
from mlirt.tensorrt.plugins.plugin import IPluginV2, IPluginV2DynamicExt
from mlirt.tensorrt.plugins.plugin_v3 import IPluginCreatorV3One, IPluginV3, TensorRTPhase
from mlirt.tensorrt.plugins.registry import IPluginCreator, IPluginCreatorInterface, get_plugin_registry


@contextmanager
def calling(layer: str, plugin: str, method: str) -> Generator[None]:
    """Turn what the plugin's code raises into a `PluginError`."""
    try:
        yield
    except MlirtError:
        raise
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise PluginError(f"{layer}: plugin {plugin} failed in {method}: {type(error).__name__}: {text}") from error


def find_creator(layer: str, kind: str, version: str, namespace: str) -> IPluginCreatorInterface:
    """The registered creator; raises `PluginError` where there is none."""
    creator = get_plugin_registry().get_creator(kind, version, namespace)
    if creator is None:
        where = f" in namespace {namespace!r}" if namespace else ""
        raise PluginError(
            f"{layer}: getPluginCreator() could not find Plugin {kind} version {version}{where}; "
            "register its creator with mlirt.get_plugin_registry().register_creator first"
        )
    return creator


def restored(layer: str, kind: str, version: str, namespace: str, state: bytes) -> IPluginV2DynamicExt:
    """The plugin that its creator makes from serialised bytes."""
    creator = find_creator(layer, kind, version, namespace)
    if isinstance(creator, IPluginCreatorV3One):
        with calling(layer, kind, "create_plugin"):
            made: object = creator.create_plugin(layer, fields_of(state), TensorRTPhase.RUNTIME)
    else:
        assert isinstance(creator, IPluginCreator)
        with calling(layer, kind, "deserialize_plugin"):
            made = creator.deserialize_plugin(layer, state)
    plugin = checked_plugin(layer, kind, made, TensorRTPhase.RUNTIME)
    plugin.plugin_namespace = namespace
    return plugin


def created(layer: str, creator: IPluginCreatorInterface, fields: PluginFieldCollection) -> IPluginV2DynamicExt | None:
    """The plugin that a creator makes from fields; None where it makes none."""
    with calling(layer, creator.name, "create_plugin"):
        if isinstance(creator, IPluginCreatorV3One):
            made: object = creator.create_plugin(layer, fields, TensorRTPhase.BUILD)
        else:
            assert isinstance(creator, IPluginCreator)
            made = creator.create_plugin(layer, fields)
    if made is None:
        return None
    plugin = checked_plugin(layer, creator.name, made)
    plugin.plugin_namespace = creator.plugin_namespace
    return plugin


def checked_plugin(
    layer: str, kind: str, plugin: object, phase: TensorRTPhase = TensorRTPhase.BUILD
) -> IPluginV2DynamicExt:
    """The plugin, if it is one that can run here; raises `PluginError` for anything else."""
    if isinstance(plugin, IPluginV3):
        with calling(layer, kind, "get_capability_interface"):
            return AdaptedV3(plugin, phase)
    if isinstance(plugin, IPluginV2) and not isinstance(plugin, IPluginV2DynamicExt):
        return AdaptedV2(plugin)
    if not isinstance(plugin, IPluginV2DynamicExt):
        found = "None" if plugin is None else type(plugin).__name__
        raise PluginError(f"{layer}: plugin {kind}: expected an IPluginV2 or an IPluginV3, got {found}")
    return plugin


def cloned(layer: str, plugin: IPluginV2DynamicExt) -> IPluginV2DynamicExt:
    """A clone of a plugin."""
    with calling(layer, plugin.plugin_type, "clone"):
        copy = plugin.clone()
    return checked_plugin(layer, plugin.plugin_type, copy)


def serialized(layer: str, plugin: IPluginV2DynamicExt) -> bytes:
    """The bytes of a plugin; text is written as UTF-8."""
    with calling(layer, plugin.plugin_type, "serialize"):
        state = cast("object", plugin.serialize())
    if not isinstance(state, bytes | str):
        raise PluginError(f"{layer}: plugin {plugin.plugin_type}: serialize returned {type(state).__name__}, not bytes")
    return state.encode() if isinstance(state, str) else state


def initialized(layer: str, plugin: IPluginV2DynamicExt) -> None:
    """Let a plugin get ready; raises `PluginError` where it says that it cannot (tensorrt-features.md#19.15)."""
    with calling(layer, plugin.plugin_type, "initialize"):
        status = plugin.initialize()
    if status:
        raise PluginError(f"Custom layer {layer} returned non-zero initialization")
