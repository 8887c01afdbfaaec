"""TensorRT 10's decorators: a function that describes the outputs of a plugin, and one that computes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from mlirt.errors import InvalidInputError, PluginError, UnsupportedError
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.plugins.functions.function_op import FunctionOp, attribute_of, split_name
from mlirt.tensorrt.plugins.functions.function_plugin import FunctionCreator, function_op, register_function
from mlirt.tensorrt.plugins.functions.tensors import ShapeExprs, Tensor, TensorDesc
from mlirt.tensorrt.plugins.shape_expressions import Length

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


@dataclass
class AutoTuneCombination:
    """Types and formats that a plugin supports, such as "FP32|FP16, FP32|FP16", and the tactics that it has."""

    io_types: str = ""
    layouts: str = ""
    tactics: Sequence[int] = field(default_factory=tuple)


def from_shape_expr(shape_expr: Sequence[Length], dtype: DataType) -> TensorDesc:
    """The description of a tensor of these lengths and type."""
    return TensorDesc(ShapeExprs(shape_expr), dtype)


def register(plugin_id: str, lazy_register: bool = False) -> Callable[[AnyFunction], AnyFunction]:
    """Register a plugin `namespace::name` by the function that describes its outputs.

    Its parameters annotated as `TensorDesc` are the inputs, the others attributes; it returns a `TensorDesc`, or a
    tuple. `lazy_register` changes nothing. Raises `InvalidInputError` for a name that is none or is another plugin's.
    """

    def decorate(function: AnyFunction) -> AnyFunction:
        domain, name = split_name(plugin_id)
        parameters = inspect.signature(function).parameters
        inputs = tuple(one for one, parameter in parameters.items() if _is_tensor(parameter.annotation))
        attributes = {one: attribute_of(parameter) for one, parameter in parameters.items() if one not in inputs}
        plugin = _Decorated(plugin_id, function)
        described, computed, targets = plugin.describe, plugin.compute, frozenset({"cpu", "cuda"})
        register_function(
            FunctionOp(domain, name, inputs, False, attributes, targets, described, computed, plugin.choose)
        )
        return function

    return decorate


def impl(plugin_id: str) -> Callable[[AnyFunction], AnyFunction]:
    """Register the function that computes a plugin: of its inputs, attributes, `outputs` and `stream`.

    Tensors have `data_ptr`, `shape` and the array interfaces; `stream` is 0 where they lie on the host. Raises
    `InvalidInputError` where `register` has not been used before.
    """

    def decorate(function: AnyFunction) -> AnyFunction:
        _decorated(plugin_id).function = function
        return function

    return decorate


def autotune(plugin_id: str) -> Callable[[AnyFunction], AnyFunction]:
    """Register the function that gives a plugin's `AutoTuneCombination`s; the first tactic of the first one is taken.

    Tensors keep the types that the network has them in, which have to be among the combinations.
    """

    def decorate(function: AnyFunction) -> AnyFunction:
        _decorated(plugin_id).tune = function
        return function

    return decorate


def aot_impl(plugin_id: str) -> Callable[[AnyFunction], AnyFunction]:
    """Not supported: plans hold no PTX of others. Raises `UnsupportedError`."""
    raise UnsupportedError(f"{plugin_id}: kernels that are compiled ahead of time are not supported; use plugin.impl")


class _Decorated:
    """The functions of one plugin."""

    def __init__(self, name: str, describing: Callable[..., Any]) -> None:
        self._name, self._describing = name, describing
        self.function: Callable[..., Any] | None = None
        self.tune: Callable[..., Sequence[AutoTuneCombination]] | None = None

    def describe(self, inputs: Sequence[TensorDesc], attributes: Mapping[str, Any]) -> Sequence[TensorDesc]:
        found = self._describing(*self._arguments(self._describing, inputs, attributes))
        outputs = cast("Sequence[Any]", found) if isinstance(found, tuple | list) else [found]
        if not outputs or not all(isinstance(one, TensorDesc) for one in outputs):
            raise PluginError(f"the function of register({self._name!r}) returns TensorDesc, or a tuple of them")
        return outputs

    def compute(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        attributes: Mapping[str, Any],
        stream: int,
        tactic: int,
    ) -> None:
        if self.function is None:
            raise PluginError(f"{self._name} has no function that computes it; use plugin.impl({self._name!r})")
        given = self._arguments(self.function, inputs, attributes, outputs, stream=stream, tactic=tactic)
        self.function(*given)

    def _arguments(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        outputs: Sequence[Any] = (),
        **more: Any,
    ) -> list[Any]:
        """Inputs come first, in their order; the others by name, as far as the function has them."""
        names = list(inspect.signature(function).parameters)
        known = {**attributes, "outputs": tuple(outputs), **more}
        for name in names[len(inputs) :]:
            if name not in known:
                raise PluginError(f"{function.__name__} has a parameter {name!r}, which {self._name} has no value for")
        return [*inputs, *(known[name] for name in names[len(inputs) :])]

    def choose(self, inputs: Sequence[TensorDesc], outputs: Sequence[TensorDesc], attributes: Mapping[str, Any]) -> int:
        """The tactic for tensors that are like this; raises `PluginError` where no combination has their types."""
        if self.tune is None:
            return 0
        types = [one.dtype for one in (*inputs, *outputs)]
        for one in self.tune(*self._arguments(self.tune, inputs, attributes, outputs)):
            if _fits(one, types):
                return next(iter(one.tactics), 0)
        wanted = ", ".join(one.name for one in types)
        raise PluginError(f"no combination of autotune({self._name!r}) has the types {wanted} of the network, LINEAR")


def _fits(combination: AutoTuneCombination, types: Sequence[DataType]) -> bool:
    allowed = [part.strip().split("|") for part in combination.io_types.split(",")] if combination.io_types else []
    layouts = [part.strip().split("|") for part in combination.layouts.split(",")] if combination.layouts else []
    fits = all(kind in {_TYPES.get(text.strip()) for text in some} for kind, some in zip(types, allowed, strict=False))
    return fits and len(allowed) in (0, len(types)) and all("LINEAR" in map(str.strip, some) for some in layouts)


_TYPES = {
    "FP32": DataType.FLOAT,
    "FP16": DataType.HALF,
    "BF16": DataType.BF16,
    "FP8": DataType.FP8,
    "INT8": DataType.INT8,
    "INT32": DataType.INT32,
    "INT64": DataType.INT64,
    "BOOL": DataType.BOOL,
    "UINT8": DataType.UINT8,
}


def _is_tensor(annotation: Any) -> bool:
    return annotation is TensorDesc or (isinstance(annotation, str) and annotation.endswith("TensorDesc"))


def _decorated(plugin_id: str) -> _Decorated:
    creator: FunctionCreator | None = function_op(*split_name(plugin_id))
    found = None if creator is None else getattr(creator.op.describe, "__self__", None)
    if not isinstance(found, _Decorated):
        raise InvalidInputError(f"{plugin_id!r} is not registered; decorate its description with plugin.register first")
    return found
