"""`mlirt.op`: a function of numbers or of NumPy arrays as a layer of networks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from mlirt.errors import InvalidInputError, PluginError
from mlirt.tensorrt.data_types import DataType, data_type, numpy_name
from mlirt.tensorrt.plugins.functions.function_op import FunctionOp, split_name, split_parameters
from mlirt.tensorrt.plugins.functions.function_plugin import register_function
from mlirt.tensorrt.plugins.functions.tensors import Tensor, TensorDesc
from mlirt.tensorrt.plugins.shape_expressions import IDimensionExpr, Length, maximum

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

_NUMBERS = (float, int, bool, "float", "int", "bool")


def op(
    name: str, *, elementwise: bool | None = None, shapes: Callable[..., Any] | None = None, types: Any = None
) -> Callable[[AnyFunction], AnyFunction]:
    """Let a function compute the layer `domain::Name`; the function itself stays as it is.

    Its parameters without defaults are the inputs, those with defaults and those behind `*` are attributes. Nodes of
    that domain and name in ONNX models, custom operators of PyTorch, and `network.add_plugin(mlirt.plugin.op.domain
    .Name(x))` become the layer. A function whose inputs are annotated as numbers (`x: float`), or one that says
    `elementwise`, is applied to each element, with broadcast; where its source can be read it is compiled and fused.
    Any other function gets NumPy arrays and returns one, or a tuple; it runs on the CPU.

    shapes: gives the shape of the output, or a list of shapes, for the inputs' shapes and the attributes by name. A
        shape is a tuple of numbers and of lengths that a run decides, with which + - * // may be done. The default is
        the first input's shape; of an elementwise function, the broadcast one.
    types: the outputs' types, such as "float32" or ["float32", "int64"], or a function of the inputs' types; the
        default is the first input's type.

    Raises `InvalidInputError` for a name that is none, or a function that cannot be an op.
    """
    domain, own = split_name(name)

    def register(function: AnyFunction) -> AnyFunction:
        written = getattr(function, "py_func", function)  # that of a function which numba compiles
        inputs, takes_more, attributes = split_parameters(written)
        is_scalar = _takes_numbers(written, inputs) if elementwise is None else elementwise
        if is_scalar and (takes_more or not inputs):
            raise InvalidInputError(f"{name}: an elementwise function has its inputs by name, at least one")
        outputs = _Outputs(shapes, types, is_scalar)
        register_function(
            FunctionOp(
                domain,
                own,
                inputs,
                takes_more,
                attributes,
                frozenset({"cpu"}),
                outputs.describe,
                _Calls(name, function, is_scalar).compute,
                scalar=written if is_scalar and shapes is None else None,
                types=types,
            )
        )
        return function

    return register


def types_of(types: Any, given: Sequence[DataType]) -> list[DataType]:
    """The types of the outputs: those of an op's `types=`, else that of the first input."""
    names = [numpy_name(one) for one in given]
    found = types(names) if callable(types) and not isinstance(types, type) else types
    if found is None:
        return [given[0] if given else DataType.FLOAT]
    listed = cast("Sequence[Any]", found) if isinstance(found, list | tuple) else [found]
    return [_data_type(one) for one in listed]


class _Outputs:
    """What the outputs are like, by the arguments of the decorator."""

    def __init__(self, shapes: Callable[..., Any] | None, types: Any, is_scalar: bool) -> None:
        self._shapes, self._types, self._is_scalar = shapes, types, is_scalar

    def describe(self, inputs: Sequence[TensorDesc], attributes: Mapping[str, Any]) -> list[TensorDesc]:
        kinds = types_of(self._types, [one.dtype for one in inputs])
        shapes = self._lengths(inputs, attributes)
        if len(shapes) == 1 < len(kinds):
            shapes = shapes * len(kinds)
        if len(kinds) == 1 < len(shapes):
            kinds = kinds * len(shapes)
        if len(kinds) != len(shapes):
            raise PluginError(f"shapes= gives {len(shapes)} outputs, types= {len(kinds)}")
        return [TensorDesc(lengths, kind) for lengths, kind in zip(shapes, kinds, strict=True)]

    def _lengths(self, inputs: Sequence[TensorDesc], attributes: Mapping[str, Any]) -> list[Sequence[Length]]:
        if self._shapes is not None:
            given = [tuple(one.formula if one.is_constant() else one for one in desc.shape_expr) for desc in inputs]
            wanted = inspect.signature(self._shapes).parameters
            takes_all = any(one.kind is one.VAR_KEYWORD for one in wanted.values())
            named = {name: value for name, value in attributes.items() if takes_all or name in wanted}
            found = self._shapes(*given, **named)
            listed: list[Any] = list(found)
            return listed if isinstance(found, list) and isinstance(listed[0], tuple | list) else [listed]
        if not inputs:
            raise PluginError("an op without inputs says its shape by shapes=")
        return [_broadcast([one.shape_expr for one in inputs]) if self._is_scalar else inputs[0].shape_expr]


class _Calls:
    """Calls of a function with arrays of the host."""

    def __init__(self, name: str, function: Callable[..., Any], is_scalar: bool) -> None:
        self._name, self._function, self._is_scalar = name, function, is_scalar

    def compute(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        attributes: Mapping[str, Any],
        stream: int,
        tactic: int,
    ) -> None:
        if stream:
            raise PluginError(f"{self._name} is a Python function of arrays, which runs on CPUs")
        arrays = [one.array() for one in inputs]
        found = (
            self._each(arrays, attributes, len(outputs)) if self._is_scalar else self._function(*arrays, **attributes)
        )
        results: list[Any] = list(cast("tuple[Any, ...]", found)) if isinstance(found, tuple) else [found]
        if len(results) != len(outputs):
            raise PluginError(f"it returned {len(results)} arrays, expected {len(outputs)}")
        for number, (result, output) in enumerate(zip(results, outputs, strict=True)):
            _write(number, result, output)

    def _each(self, arrays: Sequence[Array], attributes: Mapping[str, Any], count: int) -> Any:
        """The function of the elements, one after the other."""
        import numpy as np

        def one(*elements: Any) -> Any:
            return self._function(*elements, **attributes)

        return np.frompyfunc(one, len(arrays), count)(*(array.astype(object) for array in arrays))


def _write(number: int, result: Any, output: Tensor) -> None:
    import numpy as np

    target, found = output.array(), np.asarray(result)
    if found.shape != target.shape:
        raise PluginError(f"result {number} has the shape {found.shape}, expected {target.shape}; see shapes=")
    if found.dtype != object and not np.can_cast(found.dtype, target.dtype, "same_kind"):
        raise PluginError(f"result {number} has the type {found.dtype}, expected {target.dtype}; see types=")
    target[...] = found.astype(target.dtype)


def _takes_numbers(function: Callable[..., Any], inputs: Sequence[str]) -> bool:
    parameters = inspect.signature(function).parameters
    return bool(inputs) and all(parameters[name].annotation in _NUMBERS for name in inputs)


def _broadcast(shapes: Sequence[Sequence[IDimensionExpr]]) -> list[IDimensionExpr]:
    rank = max(map(len, shapes))
    found = [IDimensionExpr(1) for _ in range(rank)]
    for lengths in shapes:
        for axis, length in enumerate(lengths, rank - len(lengths)):
            found[axis] = _common(found[axis], length)
    return found


def _common(left: IDimensionExpr, right: IDimensionExpr) -> IDimensionExpr:
    if left.formula == 1 or left.formula == right.formula:
        return right
    if right.formula == 1:
        return left
    for one in (left, right):
        if one.is_constant():
            return one
    return maximum(left, right)


def _data_type(text: Any) -> DataType:
    if isinstance(text, DataType):
        return text
    import numpy as np

    try:
        return data_type(text if isinstance(text, str) else np.dtype(text).name)
    except TypeError as error:
        raise InvalidInputError(f"types={text!r}: {error}") from error
