"""Nodes that a plugin computes: those whose op has a registered creator of its name and version
(tensorrt-features.md#11.10).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import AttributeProto

from mlirt.frontend.built_in_plugins import built_in_results
from mlirt.frontend.functions.function_layers import function_results
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.plugin_plan import plan_plugin
from mlirt.tensorrt.plugins.built_in import BuiltInPlugin
from mlirt.tensorrt.plugins.calls import calling, created
from mlirt.tensorrt.plugins.fields import PluginField, PluginFieldCollection, PluginFieldType
from mlirt.tensorrt.plugins.functions.function_plugin import FunctionCreator
from mlirt.tensorrt.plugins.registry import IPluginCreatorInterface, get_plugin_registry

_VERSION, _NAMESPACE = "plugin_version", "plugin_namespace"
_TYPES = {
    "float16": PluginFieldType.FLOAT16,
    "float32": PluginFieldType.FLOAT32,
    "float64": PluginFieldType.FLOAT64,
    "int8": PluginFieldType.INT8,
    "int16": PluginFieldType.INT16,
    "int32": PluginFieldType.INT32,
    "int64": PluginFieldType.INT64,
}
_INT32 = np.iinfo(np.int32)


def creator_of(node: Node) -> IPluginCreatorInterface | None:
    """The creator for a node; its attributes may say another version than 1, and a namespace other than its domain."""
    space = node.text(_NAMESPACE, "") if node.has(_NAMESPACE) else None
    return registered_creator(node.op_type, node.text(_VERSION, "1"), space, node.domain)


def registered_creator(
    op_type: str, version: str, namespace: str | None, domain: str
) -> IPluginCreatorInterface | None:
    """The creator of that name in the namespace; where there is none given in that of the domain, or in none."""
    registry = get_plugin_registry()
    for space in (domain, "") if namespace is None else (namespace,):
        creator = registry.get_creator(op_type, version, space)
        if creator is not None:
            return creator
    return None


def not_found(node: Node) -> str:
    """Why a node without a handler is no plugin either, and what to do."""
    version, namespace = node.text(_VERSION, "1"), node.text(_NAMESPACE, "")
    where = f" in namespace {namespace!r}" if namespace else ""
    return (
        f"getPluginCreator() could not find Plugin {node.op_type} version {version}{where}; "
        "register its creator, remove the node or replace it by supported ones"
    )


def plugin_results(net: Network, node: Node, creator: IPluginCreatorInterface) -> list[Value]:
    """The results of the plugin that a creator makes from the node's attributes."""
    if isinstance(creator, FunctionCreator):
        return function_results(net, node.label, creator, node.present(), _plain(node))
    fields = PluginFieldCollection(_fields(node, creator))
    plugin = created(node.name, creator, fields)
    if plugin is None:
        raise node.invalid("Plugin not found, are the plugin name, version, and namespace correct?")
    given = node.present()
    if isinstance(plugin, BuiltInPlugin):
        return built_in_results(net, node.label, plugin, given)
    plan = plan_plugin(node.label, plugin, [value.type for value in given])
    inputs = [layers.cast(net, value, element) for value, element in zip(given, plan.inputs, strict=True)]
    state = net.constant(plan.state_array(), f"{node.name}.state")
    results = net.emit_many("plugin", [state, inputs], plugin.num_outputs, **plan.properties())
    with calling(node.label, node.op_type, "destroy"):
        plugin.destroy()
    return [layers.cast(net, value, element) for value, element in zip(results, plan.declared, strict=True)]


def _plain(node: Node) -> dict[str, object]:
    """The attributes as a function gets them."""
    found: dict[str, object] = {}
    for name, attribute in node.attributes.items():
        if name not in (_VERSION, _NAMESPACE):
            data = _field(node, name, attribute).data
            found[name] = data.decode(errors="replace") if isinstance(data, bytes) else data
    return found


def _fields(node: Node, creator: IPluginCreatorInterface) -> Iterator[PluginField]:
    """The attributes that the creator has declared as fields; all of them where it has declared none."""
    names = [field.name for field in creator.field_names or ()]
    for name in names or [name for name in node.attributes if name not in (_VERSION, _NAMESPACE)]:
        if node.has(name):
            yield _field(node, name, node.attributes[name])


def _field(node: Node, name: str, attribute: AttributeProto) -> PluginField:
    if attribute.type == AttributeProto.STRING:
        return PluginField(name, bytes(attribute.s), PluginFieldType.CHAR)
    if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS):
        single = attribute.type == AttributeProto.FLOAT
        array = np.array([attribute.f] if single else list(attribute.floats), np.float32)
    elif attribute.type in (AttributeProto.INT, AttributeProto.INTS):
        numbers = [attribute.i] if attribute.type == AttributeProto.INT else list(attribute.ints)
        narrow = all(_INT32.min <= number <= _INT32.max for number in numbers)
        array = np.array(numbers, np.int32 if narrow else np.int64)
    elif attribute.type == AttributeProto.TENSOR:
        array = node.tensor(name)
    else:
        raise node.unsupported(f"the attribute {name!r} is no number, no text and no tensor, so that it is no field")
    if array.dtype.name not in _TYPES:
        raise node.unsupported(f"the attribute {name!r} has the type {array.dtype.name}, which no field has")
    return PluginField(name, array, _TYPES[array.dtype.name])
