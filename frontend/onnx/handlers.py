"""The handlers of ONNX ops; a file `ops_<family>.py` in this folder registers its own by being here.

    @onnx_op("Conv")
    def convolution(net: Network, node: Node) -> Results: ...

`since` says from which opset on a handler is right; the newest one that is not newer than the model's opset is taken.
Those of a plugin's file count while the plugin does, in front of these.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from mlirt.dialects.pass_plugins import active, register_handler
from mlirt.frontend.importing.network import Network, Value

if TYPE_CHECKING:
    from mlirt.frontend.onnx.node import Node

Results: TypeAlias = "Value | Sequence[Value]"
Handler: TypeAlias = "Callable[[Network, Node], Results]"

_HANDLERS: dict[tuple[str, str], dict[int, Handler]] = {}


AnyHandler = TypeVar("AnyHandler", bound=Callable[..., "Value | Sequence[Value]"])


def onnx_op(*names: str, since: int = 1, domain: str = "") -> Callable[[AnyHandler], AnyHandler]:
    """Register a handler for op types."""

    def register(handler: AnyHandler) -> AnyHandler:
        for name in names:
            if not register_handler(handler.__module__, domain, name, since, handler):
                _HANDLERS.setdefault((domain, name), {})[since] = handler
        return handler

    return register


def handler_for(domain: str, op_type: str, opset: int) -> Handler | None:
    """The handler of a node; `None` where there is none for this op."""
    _load_families()
    brought = [plugin.handlers.get((domain, op_type), {}) for plugin in reversed(active())]
    for versions in (*brought, _HANDLERS.get((domain, op_type), {})):
        fitting = [version for version in versions if version <= opset]
        if fitting:
            return versions[max(fitting)]
    return None


def supported_ops() -> list[tuple[str, str]]:
    """Domain and name of every op that has a handler, sorted."""
    _load_families()
    return sorted(_HANDLERS)


@cache
def _load_families() -> None:
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name.startswith("ops_"):
            import_module(f"mlirt.frontend.onnx.{module.name}")
