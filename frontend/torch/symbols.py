"""Symbolic sizes of an exported program as dimensions of a network."""

# PyTorch and SymPy are not among the packages that are checked here: what comes from them has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlirt.dialects.symbolic import Dim, ceil_div, floor_div, maximum, minimum, modulo
from mlirt.errors import UnsupportedError
from mlirt.frontend.importing.dimension_names import DimensionNames

_OF_TWO: dict[str, Callable[[Dim, Dim], Dim]] = {
    "FloorDiv": floor_div,
    "CleanDiv": floor_div,
    "CeilDiv": ceil_div,
    "Mod": modulo,
    "PythonMod": modulo,
    "Max": maximum,
    "Min": minimum,
}

_ROUNDED: dict[str, Callable[[Dim, Dim], Dim]] = {
    "TruncToInt": floor_div,
    "FloorToInt": floor_div,
    "CeilToInt": ceil_div,
}
_EXACT_NUMERATORS = 1 << 21
"""Such a numerator times a length below 2^32 has 53 bits: the product of floats, such as 1.5 n, is not rounded."""


class Symbols:
    """One name for each symbol of a program."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        """`names` are those that the caller gave to dimensions, by the symbol that PyTorch has for them."""
        self._given = names or {}
        self._names = DimensionNames()
        self._bound: dict[str, Dim] = {}

    def dim(self, size: Any) -> Dim:
        """A size of a tensor."""
        if isinstance(size, int):
            return size
        return self.expression(size.node.expr)

    def bind(self, size: Any, dim: Dim) -> None:
        """Let a symbol of which only the run knows the value be the length that a layer has."""
        if not isinstance(size, int) and size.node.expr.is_symbol:
            self._bound.setdefault(str(size.node.expr), dim)

    def is_unknown(self, size: Any) -> bool:
        """Whether a size has symbols that depend on data and that no layer has made yet."""
        if isinstance(size, int):
            return False
        return any(str(one).startswith("u") and str(one) not in self._bound for one in size.node.expr.free_symbols)

    def expression(self, expression: Any) -> Dim:
        """A formula of symbols."""
        if expression.is_Integer:
            return int(expression)
        if expression.is_symbol:
            name = str(expression)
            return self._bound[name] if name in self._bound else self._names.symbol(self._given.get(name, name))
        kind = type(expression).__name__
        if kind == "Pow" and expression.args[1].is_Integer and int(expression.args[1]) > 0:
            base = self.expression(expression.args[0])
            result: Dim = 1
            for _ in range(int(expression.args[1])):
                result = result * base
            return result
        scaled = self._scaled(kind, expression.args)
        if scaled is not None:
            return scaled
        return self._combined(kind, [self.expression(part) for part in expression.args], expression)

    def _scaled(self, kind: str, parts: tuple[Any, ...]) -> Dim | None:
        """A length times a float, as a whole number; None where another rounding than the product's could tell."""
        divide = _ROUNDED.get(kind)
        if divide is None or type(parts[0]).__name__ != "Mul" or len(parts[0].args) != 2:
            return None
        factor, number = parts[0].args
        if not factor.is_Float or type(number).__name__ != "ToFloat" or not number.args[0].is_nonnegative:
            return None
        numerator, denominator = float(factor).as_integer_ratio()
        if not 0 < numerator < _EXACT_NUMERATORS:
            return None
        return divide(self.expression(number.args[0]) * numerator, denominator)

    def _combined(self, kind: str, parts: list[Dim], expression: Any) -> Dim:
        if kind in ("Add", "Mul"):
            total: Dim = 0 if kind == "Add" else 1
            for part in parts:
                total = total + part if kind == "Add" else total * part
            return total
        combine = _OF_TWO.get(kind)
        if combine is None:
            raise UnsupportedError(f"the size {expression} is not supported yet: there is no {kind} of lengths")
        first, *others = parts
        for part in others:
            first = combine(first, part)
        return first
