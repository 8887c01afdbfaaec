"""The handlers of ATen operators; a file `ops_<family>.py` in this folder registers its own by being here.

    @aten_op("relu.default")
    def relu(net: Network, call: Call) -> Result: ...

A handler reads the arguments of a call by the names that the operator's schema gives them.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TypeAlias, TypeVar

from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call

Result: TypeAlias = "Value | Sequence[Value]"
Handler: TypeAlias = "Callable[[Network, Call], Result]"
AnyHandler = TypeVar("AnyHandler", bound=Callable[[Network, Call], "Value | Sequence[Value]"])

_HANDLERS: dict[str, Handler] = {}


def aten_op(*names: str) -> Callable[[AnyHandler], AnyHandler]:
    """Register a handler for overloads such as `add.Tensor`."""

    return torch_op(*(f"aten.{name}" for name in names))


def torch_op(*names: str) -> Callable[[AnyHandler], AnyHandler]:
    """Register a handler for overloads of any library of operators, such as `torchao.quantize_affine.default`."""

    def register(handler: AnyHandler) -> AnyHandler:
        for name in names:
            _HANDLERS[name] = handler
        return handler

    return register


def handler_for(operator: str) -> Handler | None:
    """The handler of an operator such as `aten.add.Tensor`; `None` where there is none."""
    _load_families()
    return _HANDLERS.get(operator)


def without_copy(operator: str) -> str:
    """`aten.permute.default` for `aten.permute_copy.default`: here no result shares memory with an argument."""
    _load_families()
    plain = operator.replace("_copy.", ".", 1)
    return plain if operator not in _HANDLERS and plain in _HANDLERS else operator


def supported_operators() -> list[str]:
    """Every operator that has a handler, sorted."""
    _load_families()
    return sorted(_HANDLERS)


def families() -> dict[str, str]:
    """The file of each operator's handler."""
    _load_families()
    return {name: handler.__module__.rpartition(".")[2] + ".py" for name, handler in sorted(_HANDLERS.items())}


@cache
def _load_families() -> None:
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name.startswith("ops_"):
            import_module(f"mlirt.frontend.torch.{module.name}")
