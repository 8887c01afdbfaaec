"""A network of layers as a module in the `trt` dialect, as the ONNX importer makes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, Region, SSAValue

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.tensor_types import element_of, element_type, is_float
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.definition import INetworkDefinition
from mlirt.frontend.network.emission import Emission
from mlirt.frontend.network.emitter import LayerEmitter
from mlirt.frontend.network.loops import IRecurrenceLayer
from mlirt.frontend.network.scaled_int8 import int8_of_numbers, within_int32
from mlirt.frontend.network.tensor import ITensor
from mlirt.tensorrt.data_types import DataType, numpy_name


def network_module(
    network: INetworkDefinition,
    ctx: RtContext,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    bounds: Mapping[str, tuple[int, int]] | None = None,
) -> ModuleOp:
    """The network as `func.func @main`, every layer of it checked; weights go to the context's store.

    `shapes` replaces the dimensions of inputs, `bounds` are the least and the greatest value of symbols. Raises
    `InvalidModelError`, naming the layer, for a network that is wrong or not complete, and `UnsupportedError` for what
    is not supported.
    """
    graph = network.graph
    register_dialects(ctx)
    if not graph.outputs:
        raise InvalidModelError("Network must have at least one output")
    unnamed = [tensor for tensor in (*graph.inputs, *graph.outputs) if not tensor.name]
    if unnamed:
        raise InvalidModelError("an input or output of the network has no name; set tensor.name")
    emission = Emission(graph.inputs, ctx.weights, shapes, bounds)
    for record in graph.records:
        emission.require(record)
    for record in graph.records:
        layer = record.view()
        if isinstance(layer, IRecurrenceLayer):
            layer.emit_late(LayerEmitter(emission, record))
    results = [_result(emission, tensor) for tensor in graph.outputs]
    emission.block.add_op(ReturnOp(*results))
    function = FuncOp(
        "main",
        ([argument.type for argument in emission.block.args], [result.type for result in results]),
        Region(emission.block),
        arg_attrs=_names(graph.inputs),
        res_attrs=_names(graph.outputs),
    )
    return ModuleOp([function])


def _result(emission: Emission, tensor: ITensor) -> SSAValue:
    """The value of an output, in the type that it was given."""
    value = emission.value_of(tensor)
    wanted = element_of(value.type) if tensor.given_dtype is None else element_type(numpy_name(tensor.given_dtype))
    if element_of(value.type) == wanted:
        return value
    location = None if tensor.producer is None else LayerEmitter(emission, tensor.producer).location

    def append(op: Operation) -> None:
        op.location = location or op.location
        emission.block.add_op(op)

    if tensor.given_dtype is DataType.INT8 and is_float(element_of(value.type)) and tensor.range is not None:
        return int8_of_numbers(value, max(map(abs, tensor.range)), emission.store, append)
    if tensor.given_dtype is DataType.INT8 and is_float(element_of(value.type)):
        raise InvalidModelError(f"{tensor.name}: an output of INT8 stands for numbers by its dynamic range; set one")
    if element_of(value.type) == element_type("int64") and tensor.given_dtype is DataType.INT32:
        value = within_int32(value, emission.store, append)
    made = IdentityOp.cast(value, wanted)
    append(made)
    return made.output


def _names(tensors: Sequence[ITensor]) -> ArrayAttr[DictionaryAttr]:
    squeeze: dict[str, Attribute] = {"trt.squeezed": UnitAttr()}
    return ArrayAttr(
        DictionaryAttr({"trt.name": StringAttr(tensor.name)} | (squeeze if tensor.squeezed else {}))
        for tensor in tensors
    )
