"""Takes a module in the `trt` dialect into a network: each op becomes a layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.interpreter import entry_function, input_names, output_names, squeezed_outputs
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_names import tensor_names
from mlirt.dialects.tensor_types import dims, element_name, element_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.plugin import PluginOp
from mlirt.dialects.weights import WeightStore
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.held_weights import holds_weights, is_held, kernel_settings, weights_of
from mlirt.frontend.network.imported_op import outer_values
from mlirt.frontend.network.layer import ILayer, settings_of
from mlirt.frontend.network.layer_classes import ImportedLayer, layer_class_of
from mlirt.frontend.network.layers_pointwise import IIdentityLayer
from mlirt.frontend.network.tensor import ITensor
from mlirt.tensorrt.border_types import border_type
from mlirt.tensorrt.data_types import data_type
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.plugins.adapted_v3 import AdaptedV3
from mlirt.tensorrt.plugins.calls import calling, restored

if TYPE_CHECKING:
    from mlirt.frontend.network.definition import INetworkDefinition


def adopt(module: ModuleOp, store: WeightStore, network: INetworkDefinition) -> list[str]:
    """Append the layers of `func.func @main`; its inputs become inputs of the network, its results outputs.

    Gives the names of inputs and outputs that have another type than in the model (`border_type`).
    """
    function = entry_function(module)
    values: dict[SSAValue, ITensor] = {}
    other_types = _adopt_inputs(function, network, values)
    names = tensor_names(module)
    for op in function.body.block.ops:
        if isinstance(op, ReturnOp):
            other_types += _mark_outputs(function, op, network, values)
        elif isinstance(op, PluginOp):
            _adopt_plugin(op, store, network, values, names)
        elif isinstance(op, ConvolutionOp | DeconvolutionOp) and holds_weights(op):
            _adopt_kernel_layer(op, store, network, values, names)
        elif not _is_state(op) and not is_held(op):
            _adopt_op(op, store, network, values, [names.get(result, "") for result in op.results])
    return other_types


def _adopt_inputs(function: FuncOp, network: INetworkDefinition, values: dict[SSAValue, ITensor]) -> list[str]:
    other_types: list[str] = []
    for name, argument in zip(input_names(function), function.body.block.args, strict=True):
        lengths = dims(argument.type)
        shape = [length if isinstance(length, int) else -1 for length in lengths]
        if network.graph.is_taken(name):
            raise InvalidModelError(f"the network has an input or output {name!r} already")
        in_model = data_type(element_name(element_of(argument.type)))
        tensor = network.add_input(name, border_type(in_model), shape)
        tensor.formulas = {axis: str(length) for axis, length in enumerate(lengths) if not isinstance(length, int)}
        tensor.dimension_names, tensor.model_formulas = dict(tensor.formulas), dict(tensor.formulas)
        tensor.model_dtype = in_model
        if tensor.dtype is not in_model:
            other_types.append(name)
        values[argument] = tensor
    return other_types


def _adopt_plugin(
    op: PluginOp,
    store: WeightStore,
    network: INetworkDefinition,
    values: dict[SSAValue, ITensor],
    names: Mapping[SSAValue, str],
) -> None:
    """The layer that `add_plugin_v2` makes of the plugin, which comes back from its bytes."""
    state = op.state.owner
    assert isinstance(state, ConstantOp)
    label = name_of(op)
    key = (op.plugin.data, op.version.data, op.plugin_namespace.data)
    plugin = restored(label, *key, state.array(store).tobytes())
    inputs = [values[value] for value in op.inputs]
    if isinstance(plugin, AdaptedV3):
        layer: ILayer = network.add_plugin_v3(inputs, [], plugin.plugin)
    else:
        layer = network.add_plugin_v2(inputs, plugin)
    layer.name = label
    for output, result in zip(layer.record.outputs, op.results, strict=True):
        output.name = output.implied_name = names.get(result, "") or output.name
        values[result] = output
    with calling(label, plugin.plugin_type, "destroy"):
        plugin.destroy()


def _is_state(op: Operation) -> bool:
    """Whether an op is the bytes of a plugin, which are no layer."""
    uses = list(op.results[0].uses) if isinstance(op, ConstantOp) else []
    return bool(uses) and all(isinstance(use.operation, PluginOp) and use.index == 0 for use in uses)


def _adopt_op(
    op: Operation,
    store: WeightStore,
    network: INetworkDefinition,
    values: dict[SSAValue, ITensor],
    names: Sequence[str],
) -> None:
    inputs = [values[value] for value in outer_values(op)]
    layer = network.graph.add(layer_class_of(op), inputs, len(op.results), template=op, store=store)
    if not isinstance(op, ConstantOp):
        layer.name = name_of(op)
    _read_settings(layer, op, store)
    for output, name, result in zip(layer.record.outputs, names, op.results, strict=True):
        output.name = output.implied_name = name or output.name
        values[result] = output


def _adopt_kernel_layer(
    op: ConvolutionOp | DeconvolutionOp,
    store: WeightStore,
    network: INetworkDefinition,
    values: dict[SSAValue, ITensor],
    names: Mapping[SSAValue, str],
) -> None:
    """The layer that `add_convolution_nd` makes, which holds its weights under their names in the model."""
    layer = network.graph.add(layer_class_of(op), [values[op.input]])
    _read_settings(layer, op, store)
    for name, (array, in_model) in weights_of(op, store).items():
        layer.record.settings[name] = array
        if in_model:
            network.graph.name_weights(array, in_model)
    layer.record.settings |= kernel_settings(op)
    layer.name = name_of(op)
    (output,) = layer.record.outputs
    output.name = names.get(op.output, "") or output.name
    if op.output.name_hint is None:
        output.implied_name = output.name
    values[op.output] = output


def _read_settings(layer: ILayer, op: Operation, store: WeightStore) -> None:
    """What the layer shows of its op; properties for which TensorRT has no words are kept aside."""
    record = layer.record
    if isinstance(op, ConstantOp):
        array = op.array(store)
        record.settings["shape"] = Dims(array.shape)
        if array.size == 0 or element_name(element_of(op.output.type)) in _WEIGHTS:
            record.settings["weights"] = array
        return
    if isinstance(layer, ImportedLayer):
        return
    for setting in settings_of(type(layer)):
        if setting.prop in op.properties:
            try:
                record.settings[setting.name] = setting.from_property(op.properties[setting.prop])
            except (KeyError, ValueError):
                record.foreign[setting.prop] = op.properties[setting.prop]


_WEIGHTS = frozenset({"float32", "float16", "int8", "int32", "bool", "uint8", "bfloat16", "int64"})


def _mark_outputs(
    function: FuncOp, last: ReturnOp, network: INetworkDefinition, values: dict[SSAValue, ITensor]
) -> list[str]:
    other_types: list[str] = []
    squeezed = squeezed_outputs(function)
    for name, value, bare in zip(output_names(function), last.operands, squeezed, strict=True):
        tensor = values[value]
        if tensor.is_network_input or tensor.is_network_output:
            tensor = network.graph.add(IIdentityLayer, [tensor]).get_output(0)
        tensor.name = name
        tensor.squeezed = bare
        if border_type(tensor.dtype) is not tensor.dtype:
            tensor.dtype = border_type(tensor.dtype)
            other_types.append(name)
        network.mark_output(tensor)
    return other_types
