"""Custom operators of PyTorch that a function registered with `mlirt.op` computes, by domain and name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from mlirt.frontend.functions.function_layers import function_results
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.tensorrt.plugins.functions.function_plugin import FunctionCreator, function_op

if TYPE_CHECKING:
    from mlirt.frontend.torch.handlers import Handler


def custom_handler(operator: str) -> Handler | None:
    """The handler of an operator such as `my_ops.swish.default`; None where no function has its domain and name."""
    domain, _, rest = operator.partition(".")
    creator = function_op(domain, rest.partition(".")[0])
    if creator is None:
        return None

    def call_function(net: Network, call: Call) -> Sequence[Value]:
        return _results(net, call, creator)

    return call_function


def _results(net: Network, call: Call, creator: FunctionCreator) -> Sequence[Value]:
    """Tensors among the arguments are inputs; the others are attributes, by the names that PyTorch has for them."""
    inputs: list[Value] = []
    attributes: dict[str, Any] = {}
    for name, value in call.arguments.items():
        parts = cast("list[Any]", value) if isinstance(value, list) else [value]
        if parts and all(isinstance(one, Value) for one in parts):
            inputs += parts
        elif value is not None:
            attributes[name] = value
    return function_results(net, call.name, creator, inputs, attributes)
