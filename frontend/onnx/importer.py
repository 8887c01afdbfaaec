"""ONNX in, `trt` out: the entry of the importer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import onnx
from onnx import GraphProto, ModelProto, ValueInfoProto
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Region

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_names import hint_of_name
from mlirt.dialects.tensor_types import Tensor, dims, element_name, element_of, tensor
from mlirt.errors import InvalidInputError, InvalidModelError
from mlirt.frontend.onnx.assumptions import Assumptions, Reading, best_reading
from mlirt.frontend.onnx.dimension_names import DimensionNames, given_dims, identifier
from mlirt.frontend.onnx.function_bodies import function_table
from mlirt.frontend.onnx.graph_reader import GraphReader, Scope
from mlirt.frontend.onnx.model_reader import ModelSource, opsets, read_model
from mlirt.frontend.onnx.narrow_types import NARROW_TYPES
from mlirt.frontend.onnx.network import Network, Value
from mlirt.frontend.onnx.number_arrays import Array
from mlirt.frontend.onnx.refusals import not_supported
from mlirt.frontend.onnx.squeezed_outputs import squeezed_results
from mlirt.frontend.onnx.tensor_reader import element

LARGEST_LENGTH = 1 << 40

Shapes = Mapping[str, Sequence[int | str]]


def import_model(
    model: ModelSource,
    ctx: RtContext,
    input_shapes: Shapes | None = None,
    constants: Mapping[str, Array] | None = None,
) -> ModuleOp:
    """The network of an ONNX model as `func.func @main` in the `trt` dialect; weights go to the context's store.

    `input_shapes` replaces the dimensions of inputs (numbers, or names and expressions for dynamic ones); `constants`
    gives inputs fixed values, which then are no inputs of the network any more.
    Raises `InvalidModelError` for a damaged model, `UnsupportedError` for one that uses what is not supported yet.
    """
    proto, folder = read_model(model)
    register_dialects(ctx)

    def read(assumed: Assumptions) -> Reading:
        net = Network(ctx.weights, assumed)
        scope = Scope(opsets(proto), function_table(proto.functions), folder=folder)
        _read_inputs(proto.graph, net, scope, input_shapes or {}, constants or {})
        outputs = GraphReader(net).read_graph(proto.graph, scope)
        return Reading(_module(proto, net, outputs), net.failed_arms)

    return best_reading(read)


def input_dims(proto: ModelProto) -> dict[str, list[int | str]]:
    """The dimensions of each input that is no initializer: numbers, or the names that the network gives them."""
    names, version = DimensionNames(), opsets(proto)[""]
    return {
        value.name: [
            dim if isinstance(dim, int) else str(dim) for dim in dims(_input_type(value, names, None, version))
        ]
        for value in _inputs(proto.graph)
    }


def _inputs(graph: GraphProto) -> list[ValueInfoProto]:
    stored = {value.name for value in graph.initializer} | {value.values.name for value in graph.sparse_initializer}
    return [value for value in graph.input if value.name not in stored]


def _read_inputs(graph: GraphProto, net: Network, scope: Scope, shapes: Shapes, constants: Mapping[str, Array]) -> None:
    inputs = _inputs(graph)
    known = [value.name for value in inputs]
    for name in [*shapes, *constants]:
        if name not in known:
            raise InvalidInputError(f"the model has no input {name!r}; its inputs are {known}")
    names = DimensionNames()
    for value in inputs:
        type_ = _input_type(value, names, shapes.get(value.name), scope.opsets[""])
        if value.name in scope.values:
            raise InvalidModelError(f"the graph input {value.name!r} is defined twice")
        scope.values[value.name] = (
            _fixed(value.name, type_, constants[value.name], net)
            if value.name in constants
            else _argument(value.name, type_, net)
        )
        scope.values[value.name].narrow = NARROW_TYPES.get(value.type.tensor_type.elem_type)


def _argument(name: str, type_: Tensor, net: Network) -> Value:
    argument = net.block.insert_arg(type_, len(net.block.args))
    argument.name_hint = hint_of_name(name)
    net.input_names.append(name)
    return Value(type_, argument, hint=name)


def _fixed(name: str, type_: Tensor, array: Array, net: Network) -> Value:
    value = net.constant(array, name)
    if value.element != element_of(type_):
        raise InvalidInputError(
            f"input {name!r} needs {element_name(element_of(type_))}, but its constant is {value.element_name}"
        )
    return value


def _input_type(value: ValueInfoProto, names: DimensionNames, given: Sequence[int | str] | None, opset: int) -> Tensor:
    kind = value.type.WhichOneof("value")
    what = f"graph input {value.name!r}"
    if kind is None:
        raise InvalidModelError(f"{what} has no type")
    if kind != "tensor_type":
        raise not_supported("Input", value.name, opset, "", f"it is a {kind.removesuffix('_type')}, expected a tensor")
    tensor_type = value.type.tensor_type
    if not tensor_type.HasField("shape") and given is None:
        raise not_supported("Input", value.name, opset, "", "the model gives it no shape; give one in input_shapes")
    declared = [_dim(value.name, k, dim, names) for k, dim in enumerate(tensor_type.shape.dim)]
    rank = len(declared) if tensor_type.HasField("shape") else len(given or ())
    shape = declared if given is None else given_dims(value.name, given, rank)
    return tensor(element(tensor_type.elem_type, what), shape)


def _dim(name: str, axis: int, dim: onnx.TensorShapeProto.Dimension, names: DimensionNames) -> Dim:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        if dim.dim_value > LARGEST_LENGTH:
            raise InvalidModelError(
                f"graph input {name!r} has the length {dim.dim_value} in dimension {axis}; no memory holds that"
            )
        return dim.dim_value
    return names.symbol(dim.dim_param if dim.dim_param else f"{identifier(name)}_d{axis}")


def _module(proto: ModelProto, net: Network, outputs: Sequence[Value]) -> ModuleOp:
    names = [value.name for value in proto.graph.output]
    if len(set(names)) != len(names):
        raise InvalidModelError(f"two graph outputs have the same name: {names}")
    results = [net.ssa(value) for value in outputs]
    net.append(ReturnOp(*results))
    function = FuncOp(
        "main",
        ([arg.type for arg in net.block.args], [result.type for result in results]),
        Region(net.block),
        arg_attrs=_tensor_names(net.input_names),
        res_attrs=_result_attributes(names, squeezed_results(net)),
    )
    return ModuleOp([function])


def _result_attributes(names: Sequence[str], squeezed: Collection[int]) -> ArrayAttr[DictionaryAttr]:
    squeeze: dict[str, Attribute] = {"trt.squeezed": UnitAttr()}
    return ArrayAttr(
        DictionaryAttr({"trt.name": StringAttr(name)} | (squeeze if k in squeezed else {}))
        for k, name in enumerate(names)
    )


def _tensor_names(names: Sequence[str]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr(DictionaryAttr({"trt.name": StringAttr(name)}) for name in names)
