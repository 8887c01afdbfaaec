"""What a network needs to know of a plugin before it runs: the types it takes, the shapes it gives, its bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, StringAttr, TensorType
from xdsl.ir import Attribute

from mlirt.dialects.plugin_call import dimension_of, types_of
from mlirt.dialects.symbolic import Dim, evaluate, floor_div, maximum, minimum, substitute, sym, symbols
from mlirt.dialects.tensor_types import dims, element_name, element_of, element_type
from mlirt.errors import PluginError
from mlirt.tensorrt.data_types import DataType, data_type, numpy_name
from mlirt.tensorrt.dims import MAX_DIMS
from mlirt.tensorrt.plugins.calls import calling, cloned, serialized
from mlirt.tensorrt.plugins.plugin import IPluginV2DynamicExt
from mlirt.tensorrt.plugins.shape_expressions import DimsExprs, Formula, IDimensionExpr, IExprBuilder
from mlirt.tensorrt.plugins.tensor_descriptions import NO_SCALE, DynamicPluginTensorDesc, PluginTensorDesc

if TYPE_CHECKING:
    import numpy as np

Range = tuple[float, float]
Bounds = Mapping[str, tuple[int, int]]

_FLOATS = (DataType.FLOAT, DataType.HALF)
_NO_BOUNDS: Bounds = {}
_INT8_LIMIT = 127.0


@dataclass(frozen=True)
class PluginPlan:
    """What a layer with a plugin is made of."""

    inputs: tuple[Attribute, ...]
    """The element types in which the plugin takes its inputs."""
    declared: tuple[Attribute, ...]
    """Those in which the network has its outputs."""
    names: tuple[str, str, str]
    made: ArrayAttr[TensorType[Attribute]]
    state: bytes

    def properties(self) -> dict[str, object]:
        """The properties of `trt.plugin`."""
        keys = ("plugin", "version", "namespace")
        return {**dict(zip(keys, map(StringAttr, self.names), strict=True)), "made": self.made}

    def state_array(self) -> np.ndarray:
        """The bytes as the constant that they are in the network."""
        import numpy as np

        return np.frombuffer(self.state, np.uint8)


def plan_plugin(
    layer: str,
    plugin: IPluginV2DynamicExt,
    types: Sequence[Attribute],
    ranges: Sequence[Range | None] = (),
    bounds: Bounds = _NO_BOUNDS,
) -> PluginPlan:
    """Ask a plugin about inputs of these tensor types; `bounds` are the least and the greatest value of symbols.

    What is serialised is a clone that is configured for them. Raises `PluginError` where the plugin fails, or
    contradicts itself.
    """
    return _Question(layer, plugin, types, ranges, bounds).plan()


class _Question:
    def __init__(
        self,
        layer: str,
        plugin: IPluginV2DynamicExt,
        types: Sequence[Attribute],
        ranges: Sequence[Range | None],
        bounds: Bounds,
    ) -> None:
        self.layer, self.plugin, self.types, self.bounds = layer, plugin, types, bounds
        self.label = plugin.plugin_type or type(plugin).__name__
        self.scales = [_scale(one) for one in ranges] or [NO_SCALE] * len(types)

    def plan(self) -> PluginPlan:
        given = [data_type(element_name(element_of(of))) for of in self.types]
        declared = [self._output_type(index, given) for index in range(self.plugin.num_outputs)]
        formulas = [self._output_dims(index) for index in range(self.plugin.num_outputs)]
        lengths = [*map(dims, self.types), *map(self._inserted, formulas)]
        chosen = self._formats([*given, *declared], lengths)
        elements = [element_type(numpy_name(one)) for one in chosen]
        return PluginPlan(
            tuple(elements[: len(given)]),
            tuple(element_type(numpy_name(one)) for one in declared),
            (self.label, self.plugin.plugin_version, self.plugin.plugin_namespace),
            types_of(list(zip(elements[len(given) :], formulas, strict=True))),
            self._state(chosen, lengths),
        )

    def _output_type(self, index: int, given: Sequence[DataType]) -> DataType:
        with calling(self.layer, self.label, "get_output_datatype"):
            return DataType(self.plugin.get_output_datatype(index, list(given)))

    def _output_dims(self, index: int) -> list[Dim]:
        inputs = [
            DimsExprs(
                IDimensionExpr(length if isinstance(length, int) else str(dimension_of(operand, axis)))
                for axis, length in enumerate(dims(of))
            )
            for operand, of in enumerate(self.types)
        ]
        with calling(self.layer, self.label, "get_output_dimensions"):
            found = [_dim(one.formula) for one in self.plugin.get_output_dimensions(index, inputs, IExprBuilder())]
        if len(found) > MAX_DIMS or any(isinstance(one, int) and one < 0 for one in found):
            raise PluginError(f"{self.layer}: plugin {self.label}: output {index} has the shape {found}")
        return found

    def _inserted(self, formulas: Sequence[Dim]) -> tuple[Dim, ...]:
        """Formulas of an output for the lengths that the inputs have."""
        known = {
            str(dimension_of(operand, axis)): length
            for operand, of in enumerate(self.types)
            for axis, length in enumerate(dims(of))
        }
        return tuple(substitute(one, known) for one in formulas)

    def _formats(self, wanted: Sequence[DataType], lengths: Sequence[Sequence[Dim]]) -> list[DataType]:
        """The first types that the plugin supports, each tensor after those before it (tensorrt-features.md#19.6,
        19.11).

        All tensors are linear. Floating-point ones may have another type than in the network, and are converted.
        """
        described = self._described(wanted, lengths)
        choices = [_candidates(one) for one in wanted]
        if not self._choose(described, choices, 0):
            names = ", ".join(one.name for one in wanted)
            raise PluginError(
                f"{self.layer}: plugin {self.label}: could not find any supported formats consistent with input/output "
                f"data types ({names}, all LINEAR)"
            )
        return [one.type for one in described]

    def _choose(self, described: list[PluginTensorDesc], choices: list[list[DataType]], place: int) -> bool:
        if place == len(described):
            return True
        for kind in choices[place]:
            described[place].type = kind
            with calling(self.layer, self.label, "supports_format_combination"):
                fits = self.plugin.supports_format_combination(place, described, len(self.types))
            if fits and self._choose(described, choices, place + 1):
                return True
        return False

    def _described(self, kinds: Sequence[DataType], lengths: Sequence[Sequence[Dim]]) -> list[PluginTensorDesc]:
        scales = [*self.scales, *[NO_SCALE] * (len(kinds) - len(self.scales))]
        return [
            PluginTensorDesc([one if isinstance(one, int) else -1 for one in shape], kind, scale=scale)
            for kind, shape, scale in zip(kinds, lengths, scales, strict=True)
        ]

    def _state(self, chosen: Sequence[DataType], lengths: Sequence[Sequence[Dim]]) -> bytes:
        """The bytes of a clone that knows the tensors."""
        described = [
            DynamicPluginTensorDesc(
                desc, [self._bound(one, 0) for one in shape], [self._bound(one, 1) for one in shape]
            )
            for desc, shape in zip(self._described(chosen, lengths), lengths, strict=True)
        ]
        count = len(self.types)
        configured = cloned(self.layer, self.plugin)
        with calling(self.layer, self.label, "configure_plugin"):
            configured.configure_plugin(described[:count], described[count:])
        state = serialized(self.layer, configured)
        with calling(self.layer, self.label, "destroy"):
            configured.destroy()
        return state

    def _bound(self, length: Dim, end: int) -> int:
        """The length where all symbols have their least (0) or their greatest (1) value; -1 where that is not known."""
        if isinstance(length, int):
            return length
        if not symbols(length) <= set(self.bounds):
            return -1
        return evaluate(length, {name: self.bounds[name][end] for name in symbols(length)})


def _candidates(wanted: DataType) -> list[DataType]:
    return [wanted, *(one for one in _FLOATS if one is not wanted)] if wanted in _FLOATS else [wanted]


def _scale(limits: Range | None) -> float:
    """The step of int8 numbers that hold a range."""
    return NO_SCALE if limits is None else max(map(abs, limits)) / _INT8_LIMIT


def _dim(formula: Formula) -> Dim:
    if isinstance(formula, int):
        return formula
    if isinstance(formula, str):
        return sym(formula)
    operator, left, right = formula
    return _COMBINED[operator](_dim(left), _dim(right))


_COMBINED: dict[str, Callable[[Dim, Dim], Dim]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": floor_div,
    "max": maximum,
    "min": minimum,
}
