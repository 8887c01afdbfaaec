"""The inputs of a graph as arguments of the network, or as constants where the caller gives their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

import onnx
from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_names import hint_of_name
from mlirt.dialects.tensor_types import Tensor, dims, element_name, element_of, tensor
from mlirt.errors import InvalidInputError, InvalidModelError
from mlirt.frontend.importing.dimension_names import DimensionNames, given_dims, identifier, is_name
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.number_arrays import Array
from mlirt.frontend.importing.refusals import ValueNeededError
from mlirt.frontend.onnx.graph_reader import Scope
from mlirt.frontend.onnx.model_reader import opsets
from mlirt.frontend.onnx.narrow_types import NARROW_TYPES
from mlirt.frontend.onnx.refusals import not_supported
from mlirt.frontend.onnx.sequences import MissingValue, SequenceValue, item_name
from mlirt.frontend.onnx.tensor_reader import element

MAX_LENGTH = 1 << 40

Shape: TypeAlias = "Sequence[int | str]"
Shapes: TypeAlias = "Mapping[str, Shape | Sequence[Shape] | None]"


def input_dims(proto: ModelProto, shapes: Shapes) -> dict[str, list[int | str]]:
    """The dimensions of each input that is a tensor and no initializer: numbers, or the names of dynamic ones."""
    names, version = DimensionNames(), opsets(proto)[""]
    types = {
        value.name: _input_type(value, names, cast("Shape | None", shapes.get(value.name)), version)
        for value in _inputs(proto.graph)
        if _kind(value) == "tensor_type"
    }
    return {name: [dim if isinstance(dim, int) else str(dim) for dim in dims(type_)] for name, type_ in types.items()}


def read_inputs(graph: GraphProto, net: Network, scope: Scope, shapes: Shapes, constants: Mapping[str, Array]) -> None:
    """Put the inputs into the scope. A sequence becomes one argument for each item, called `name[0]`, `name[1]`, ..

    Raises `InvalidInputError` for shapes and constants of inputs that do not exist, and `InvalidModelError` for inputs
    without a name or with that of another one.
    """
    inputs = _inputs(graph)
    known = {value.name for value in inputs}
    unknown = [name for name in shapes if name not in known]
    names = DimensionNames()
    for number, value in enumerate(inputs):
        if not value.name:
            raise InvalidModelError(f"graph input {number} has no name")
        if value.name in scope.values:
            raise InvalidModelError(f"the graph input {value.name!r} is defined twice")
        if _kind(value) in ("sequence_type", "optional_type"):
            read = _composed(value, value.type, net, names, shapes, constants)
        else:
            type_ = _input_type(value, names, cast("Shape | None", shapes.get(value.name)), scope.opsets[""])
            read = _tensor(value.name, type_, value.type, net, constants)
        scope.values[value.name] = read
        known |= (
            {item_name(value.name, k) for k in range(len(read.items))} if isinstance(read, SequenceValue) else set()
        )
    unknown += [name for name in constants if name not in known]
    if unknown:
        raise InvalidInputError(
            f"the model has no input {unknown[0]!r}; its inputs are {[value.name for value in inputs]}"
        )


def _inputs(graph: GraphProto) -> list[ValueInfoProto]:
    stored = {value.name for value in graph.initializer} | {value.values.name for value in graph.sparse_initializer}
    return [value for value in graph.input if value.name not in stored]


def _kind(value: ValueInfoProto) -> str | None:
    return value.type.WhichOneof("value")


def _composed(
    value: ValueInfoProto,
    type_: TypeProto,
    net: Network,
    names: DimensionNames,
    shapes: Shapes,
    constants: Mapping[str, Array],
) -> Value:
    """A sequence or an optional; an optional is there unless the caller says that its shape is None."""
    name = value.name
    if type_.HasField("optional_type"):
        if name in shapes and shapes[name] is None:
            return MissingValue()
        return _composed(value, type_.optional_type.elem_type, net, names, shapes, constants)
    if type_.HasField("tensor_type"):
        alone = onnx.helper.make_value_info(name, type_)
        given = cast("Shape | None", shapes.get(name))
        return _tensor(name, _input_type(alone, names, given, 0), type_, net, constants)
    if not type_.HasField("sequence_type") or not type_.sequence_type.elem_type.HasField("tensor_type"):
        raise not_supported("Input", name, 0, "", "it is neither a tensor nor a sequence of tensors")
    given = shapes.get(name)
    if given is None or any(isinstance(shape, int | str) for shape in given):
        raise ValueNeededError(
            f"the graph input {name!r} is a sequence: input_shapes must say the shape of each item, "
            f"such as {{{name!r}: [[2, 3], [4, 3]]}}"
        )
    item = type_.sequence_type.elem_type
    kind = element(item.tensor_type.elem_type, f"graph input {name!r}")
    items = [
        _tensor(
            item_name(name, k), tensor(kind, given_dims(item_name(name, k), shape, len(shape))), item, net, constants
        )
        for k, shape in enumerate(cast("Sequence[Shape]", given))
    ]
    return SequenceValue(items, kind)


def _tensor(name: str, type_: Tensor, declared: TypeProto, net: Network, constants: Mapping[str, Array]) -> Value:
    read = _fixed(name, type_, constants[name], net) if name in constants else _argument(name, type_, net)
    read.narrow = NARROW_TYPES.get(declared.tensor_type.elem_type)
    return read


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
    wanted = dims(type_)
    if len(wanted) != array.ndim or any(
        isinstance(dim, int) and dim != size for dim, size in zip(wanted, array.shape, strict=True)
    ):
        shape = ", ".join(map(str, wanted))
        raise InvalidInputError(f"input {name!r} has the shape [{shape}], but its constant is {list(array.shape)}")
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
        if dim.dim_value > MAX_LENGTH:
            raise InvalidModelError(
                f"graph input {name!r} has the length {dim.dim_value} in dimension {axis}; no memory holds that"
            )
        return dim.dim_value
    return names.symbol(dim.dim_param if is_name(dim.dim_param) else f"{identifier(name)}_d{axis}")
