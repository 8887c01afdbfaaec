"""Numbers that follow from lengths which only a run knows, such as n or 1 / sqrt(n), as values of the network."""

# PyTorch and SymPy are not among the packages that are checked here: what comes from them has no type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from mlirt.dialects.symbolic import Dim
from mlirt.errors import UnsupportedError
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.symbols import Symbols

_KINDS = {
    "Add": "sum",
    "Mul": "prod",
    "Pow": "pow",
    "FloatPow": "pow",
    "PowByNatural": "pow",
    "IntTrueDiv": "div",
    "FloatTrueDiv": "div",
}


def size_value(net: Network, dim: Dim) -> Value:
    """A size as a 0-D int64 value: the length of a tensor made for it where it is symbolic."""
    if isinstance(dim, int):
        return net.constant(np.array(dim, np.int64))
    zero = net.constant(np.array(0, np.int64))
    line = net.emit("fill", [None, zero, zero], kind="linspace", output_dims=[dim])
    return layers.length_of(net, line, 0)


def number_value(net: Network, symbols: Symbols, expression: Any) -> Value:
    """The value of a formula as a 0-D float64 value; raises `UnsupportedError` for other than sums to powers."""
    kind = type(expression).__name__
    if expression.is_number:
        return net.constant(np.array(float(expression)))
    if kind == "ToFloat" or expression.is_integer:
        size = expression.args[0] if kind == "ToFloat" else expression
        return layers.cast(net, size_value(net, symbols.expression(size)), "float64")
    parts = [number_value(net, symbols, part) for part in expression.args]
    if kind == "OpaqueUnaryFn_sqrt":
        return layers.unary(net, "sqrt", parts[0])
    if kind not in _KINDS:
        raise UnsupportedError(f"the number {expression} is not supported yet: there is no {kind} of lengths")
    return reduce(lambda one, other: layers.binary(net, _KINDS[kind], one, other), parts)
