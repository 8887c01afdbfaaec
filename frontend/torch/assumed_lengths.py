"""What PyTorch took for granted of lengths when it traced a module, as requirements that each run checks.

Code that asks for a length, such as `if x.shape[0] > 4`, is traced one way: the program is right only for lengths that
go the same way. PyTorch keeps what decided as guards and as ranges of its symbols.
"""

# PyTorch and SymPy are not among the packages that are checked here: what comes from them has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from mlirt.dialects.length_requirements import LengthRequirement, Relation
from mlirt.dialects.symbolic import Dim, minimum, sym
from mlirt.dialects.symbolic import symbols as symbols_of
from mlirt.dialects.trt.require_lengths import RequireLengthsOp
from mlirt.errors import UnsupportedError
from mlirt.frontend.importing.network import Network
from mlirt.frontend.torch.symbols import Symbols

_MIN_EXPORTED = 2
"""PyTorch assumes that dynamic lengths are no less, and takes smaller ones nevertheless."""

_COMPARISONS = frozenset(("Equality", "Unequality", "GreaterThan", "StrictGreaterThan", "LessThan", "StrictLessThan"))


def require_assumed_lengths(net: Network, program: Any, symbols: Symbols) -> None:
    """Let runs with lengths for which the program was not traced end with an error.

    Raises `UnsupportedError` for a condition that has no formula.
    """
    environment = _environment(program)
    if environment is None:
        return
    own = {str(symbol) for symbol in environment.backed_var_to_val}
    for requirement in (*_of_ranges(program, own, symbols), *_of_guards(environment, own, symbols)):
        if requirement.holds() is not True:
            net.append_at(RequireLengthsOp(requirement))


def _environment(program: Any) -> Any:
    """What PyTorch knows of the symbols; None where all lengths are fixed."""
    for node in program.graph.nodes:
        found = node.meta.get("val")
        for size in found.shape if isinstance(found, torch.Tensor) else ():
            if isinstance(size, torch.SymInt):
                return size.node.shape_env
    return None


def _of_ranges(program: Any, own: set[str], symbols: Symbols) -> Iterator[LengthRequirement]:
    for symbol, limits in program.range_constraints.items():
        if not symbol.is_symbol or str(symbol) not in own:
            continue
        length = symbols.expression(symbol)
        fault = f"{length} is {{left}}, but the module was exported for no less than {{right}}"
        if limits.lower.is_Integer and int(limits.lower) > _MIN_EXPORTED:
            yield LengthRequirement(Relation.AT_LEAST, length, int(limits.lower), fault)
        fault = f"{length} is {{right}}, but the module was exported for no more than {{left}}"
        if limits.upper.is_Integer:
            yield LengthRequirement(Relation.AT_LEAST, int(limits.upper), length, fault)


def _of_guards(environment: Any, own: set[str], symbols: Symbols) -> Iterator[LengthRequirement]:
    for guard in environment.guards:
        expression = environment.simplify(guard.expr)
        if expression.free_symbols and all(str(one) in own for one in expression.free_symbols):
            yield from _of_guard(expression, symbols)


def _of_guard(expression: Any, symbols: Symbols) -> Iterator[LengthRequirement]:
    """A comparison of two lengths, or several of which all hold."""
    kind = type(expression).__name__
    if kind == "And":
        for part in expression.args:
            yield from _of_guard(part, symbols)
        return
    if kind not in _COMPARISONS:
        raise UnsupportedError(f"the module was traced for lengths with {expression}, which no run can check")
    left, right = (symbols.expression(part) for part in expression.args)
    if not _is_assumed_of_all(kind, left, right):
        yield _comparison(kind, left, right, f"the module was exported for lengths with {expression}")


def _is_assumed_of_all(kind: str, left: Dim, right: Dim) -> bool:
    """Whether a formula that is just a length is to be what PyTorch assumes of every length: neither 0 nor 1."""
    names = symbols_of(left)
    if not isinstance(right, int) or len(names) != 1 or left != sym(*names):
        return False
    return (kind == "Unequality" and right < _MIN_EXPORTED) or (kind == "GreaterThan" and right <= _MIN_EXPORTED)


def _unequal(left: Dim, right: Dim, fault: str) -> LengthRequirement:
    """Something that never holds, wherever the two are equal."""
    distance = left - right
    return LengthRequirement(Relation.EQUAL, 0, 1, fault, where=1 - minimum(distance * distance, 1))


def _at_least(left: Dim, right: Dim, fault: str) -> LengthRequirement:
    return LengthRequirement(Relation.AT_LEAST, left, right, fault)


def _comparison(kind: str, left: Dim, right: Dim, fault: str) -> LengthRequirement:
    """One of `_COMPARISONS`, which are sympy's names."""
    match kind:
        case "Equality":
            return LengthRequirement(Relation.EQUAL, left, right, fault)
        case "Unequality":
            return _unequal(left, right, fault)
        case "GreaterThan":
            return _at_least(left, right, fault)
        case "StrictGreaterThan":
            return _at_least(left, right + 1, fault)
        case "LessThan":
            return _at_least(right, left, fault)
        case _:
            return _at_least(right, left + 1, fault)
