"""Operators on booleans whose layers take numbers: they are carried out on integers, of which all but 0 are true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mlirt.dialects.tensor_types import is_bool
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call, ResultType
from mlirt.frontend.torch.truth_values import as_bool

_ALWAYS = frozenset(
    f"aten.{name}"
    for name in (
        "clamp.Tensor clamp.default clamp_min.Tensor clamp_max.Tensor fmax.default fmin.default sign.default "
        "prod.default prod.dim_int index_add.default scatter.reduce scatter.value_reduce scatter_add.default "
        "scatter_reduce.two"
    ).split()
)
_ACCUMULATING = frozenset({"aten.index_put.default", "aten._unsafe_index_put.default", "aten.put.default"})
_INTEGER = "int32"


def is_on_booleans(call: Call) -> bool:
    """Whether a call gives a boolean that layers only compute of numbers."""
    if call.results[0].element != "bool":
        return False
    return call.operator in _ALWAYS or (call.operator in _ACCUMULATING and call.flag("accumulate"))


def on_integers(net: Network, call: Call, handler: Callable[[Network, Call], Value | Sequence[Value]]) -> list[Value]:
    """The results, booleans again."""

    def promoted(names: Sequence[str]) -> str:
        del names
        return _INTEGER

    def widened(given: Any) -> Any:
        return layers.cast(net, given, _INTEGER) if isinstance(given, Value) and is_bool(given.element) else given

    arguments = {name: widened(given) for name, given in call.arguments.items()}
    results = [ResultType(_INTEGER if one.element == "bool" else one.element, one.dims) for one in call.results]
    found = handler(net, replace(call, arguments=arguments, results=results, promoted=promoted))
    return [as_bool(net, one) for one in ([found] if isinstance(found, Value) else found)]
