"""A call of an op that a function computes, as layers: its own where the function can be read, else a plugin."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from mlirt.dialects.broadcasting import broadcast
from mlirt.dialects.tensor_types import element_type
from mlirt.errors import InvalidInputError, InvalidModelError, PluginError
from mlirt.frontend.functions.numbers import Operand, UnreadableError, as_value, is_number
from mlirt.frontend.functions.scalar_reader import read_scalar_function
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.plugin_plan import plan_plugin
from mlirt.tensorrt.data_types import data_type, numpy_name
from mlirt.tensorrt.plugins.calls import calling
from mlirt.tensorrt.plugins.functions.function_plugin import FunctionCreator, unknown_lengths
from mlirt.tensorrt.plugins.functions.op_decorator import types_of
from mlirt.tensorrt.plugins.functions.tensors import TensorDesc

if TYPE_CHECKING:
    from mlirt.frontend.plugin_plan import Bounds
    from mlirt.tensorrt.plugins.functions.function_plugin import FunctionPlugin

_LOG = logging.getLogger("mlirt")


def function_results(
    net: Network, label: str, creator: FunctionCreator, inputs: Sequence[Value], attributes: Mapping[str, Any]
) -> list[Value]:
    """The results of an op for inputs and attributes; `label` names the layer in errors.

    Raises `InvalidModelError` for attributes that do not fit, `PluginError` where a function of the op fails.
    """
    try:
        with calling(label, creator.op.label, "shapes or types"):
            plugin = creator.plugin_for([_described(one) for one in inputs], attributes)
    except InvalidInputError as error:
        raise InvalidModelError(f"{label}: {error}") from error
    read = read_layers(net, label, plugin, inputs)
    return planned_plugin(net, label, plugin, inputs) if read is None else read


def read_layers(net: Network, label: str, plugin: FunctionPlugin, inputs: Sequence[Value]) -> list[Value] | None:
    """What a plugin computes as layers that fuse; None where it has no function of numbers, or one that is not read."""
    op = plugin.op
    if op.scalar is None or not all(is_number(one) for one in plugin.attributes.values()):
        return None
    try:
        with calling(label, op.label, "types"):
            wanted = types_of(op.types, [data_type(one.element_name) for one in inputs])
        given = [layers.widened(net, one) for one in inputs]
        found = read_scalar_function(net, op.scalar, given, cast("Mapping[str, Operand]", plugin.attributes))
        if len(found) != plugin.num_outputs:
            raise PluginError(f"{label}: {op.label} returns {len(found)} results, types= says {plugin.num_outputs}")
        kinds = wanted * len(found) if len(wanted) == 1 else wanted
        return [_as_output(net, one, numpy_name(kind), given) for one, kind in zip(found, kinds, strict=True)]
    except UnreadableError as error:
        op.refusal = str(error)
        _LOG.info("mlirt: %s: %s is called as a plugin on the CPU, element by element: %s", label, op.label, error)
        return None


def _as_output(net: Network, operand: Operand, name: str, inputs: Sequence[Value]) -> Value:
    """An output in its type, as long as all inputs together."""
    element = element_type(name)
    value = operand if isinstance(operand, Value) else as_value(net, operand, inputs[0].element)
    rank = max(one.rank for one in inputs)
    shape = broadcast([(1,) * (rank - one.rank) + one.dims for one in inputs])
    if value.dims != shape:  # it does not read all inputs
        value = layers.expand(net, value, shape)
    return layers.cast(net, value, element)


def planned_plugin(
    net: Network, label: str, plugin: FunctionPlugin, inputs: Sequence[Value], bounds: Bounds | None = None
) -> list[Value]:
    """The results of a layer that calls the function when it runs."""
    plan = plan_plugin(label, plugin, [one.type for one in inputs], (), bounds or {})
    given = [layers.cast(net, one, element) for one, element in zip(inputs, plan.inputs, strict=True)]
    state = net.constant(plan.state_array(), f"{label}.state")
    results = net.emit_many("plugin", [state, given], plugin.num_outputs, **plan.properties())
    return [layers.cast(net, one, element) for one, element in zip(results, plan.declared, strict=True)]


def _described(value: Value) -> TensorDesc:
    try:
        return TensorDesc(unknown_lengths([value.rank])[0], data_type(value.element_name))
    except TypeError as error:
        raise InvalidInputError(str(error)) from error
