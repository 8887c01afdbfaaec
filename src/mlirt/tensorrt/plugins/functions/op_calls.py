"""Calls of registered ops for a network: `op.domain.Name(x, attribute=..)`, which `network.add_plugin` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlirt.tensorrt.plugins.functions.function_plugin import FunctionCreator, function_op
from mlirt.tensorrt.plugins.registry import get_plugin_registry


@dataclass(frozen=True)
class OpCall:
    """An op, the tensors of a network that it reads, and its attributes."""

    creator: FunctionCreator
    inputs: Sequence[Any]
    attributes: Mapping[str, Any]


class _Domain:
    """The ops of one domain."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        creator = function_op(self._name, name)
        if creator is None:
            raise AttributeError(f"no op {self._name}::{name} is registered; use mlirt.op or mlirt.plugin.register")
        count = len(creator.op.inputs)

        def call(*given: Any, **attributes: Any) -> OpCall:
            inputs, rest = (given, ()) if creator.op.takes_more else (given[:count], given[count:])
            named = dict(zip(creator.op.attributes, rest, strict=False))
            return OpCall(creator, inputs, {**named, **attributes})

        return call


class _Ops:
    """All ops that functions compute, by domain and name."""

    def __getattr__(self, domain: str) -> _Domain:
        creators = get_plugin_registry().all_creators
        if not any(isinstance(one, FunctionCreator) and one.op.domain == domain for one in creators):
            raise AttributeError(f"no op of the domain {domain!r} is registered; use mlirt.op or mlirt.plugin.register")
        return _Domain(domain)


op = _Ops()
