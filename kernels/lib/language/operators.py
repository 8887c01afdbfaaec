"""What operators do: at once on values of Python, and by ops where one side is known at run time only."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import reduce as fold
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, MemRefType, i1
from xdsl.ir import Attribute, Block, Region, SSAValue

from mlirt.dialects.kernel.core import LoadOp, ReduceKind, ReduceOp, StoreOp, YieldOp, element_of_buffer
from mlirt.dialects.tensor_types import is_float
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language.context import builder
from mlirt.kernels.lib.language.loops import Box, Range
from mlirt.kernels.lib.language.values import is_run_time, type_of_number, types_of

_INDEX = IndexType()
_python: Any = operator
# What an operator is on values of Python, on places and lengths, and on numbers (a method of `Scalars`).
_ARITHMETIC: dict[str, tuple[Callable[[Any, Any], Any], Callable[..., SSAValue] | None, str | None]] = {
    "Add": (_python.add, KernelBuilder.add, "add"),
    "Sub": (_python.sub, KernelBuilder.sub, "sub"),
    "Mult": (_python.mul, KernelBuilder.mul, "mul"),
    "Div": (_python.truediv, None, "div"),
    "FloorDiv": (_python.floordiv, KernelBuilder.div, None),
    "Mod": (operator.mod, KernelBuilder.rem, None),
    "Min": (min, KernelBuilder.min, "min"),
    "Max": (max, KernelBuilder.max, "max"),
}
_COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "Eq": (operator.eq, "eq"),
    "NotEq": (operator.ne, "ne"),
    "Lt": (operator.lt, "lt"),
    "LtE": (operator.le, "le"),
    "Gt": (operator.gt, "gt"),
    "GtE": (operator.ge, "ge"),
}
_BITS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "BitAnd": (_python.and_, arith.AndIOp),
    "BitOr": (_python.or_, arith.OrIOp),
    "BitXor": (_python.xor, arith.XOrIOp),
    "LShift": (_python.lshift, arith.ShLIOp),
    "RShift": (_python.rshift, arith.ShRSIOp),
}
_UNARY = {"USub": operator.neg, "UAdd": operator.pos, "Not": operator.not_, "Invert": operator.invert}
_SIGNS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "MatMult": "@",
    "Min": "min", "Max": "max", "Invert": "~", "UAdd": "+",
}  # fmt: skip


def operate(name: str, a: Any, b: Any) -> Any:
    """`a + b` and its like, and comparisons. Lists are Python's, also those of values of the run."""
    type_ = _type_of(a, b) if is_run_time(a) or is_run_time(b) else None
    if name in _COMPARISONS and type_ is None and types_of((a, b)):
        raise TypeError("expected numbers on both sides of a comparison, not lists of values of the run")
    if name in _COMPARISONS:
        compute, word = _COMPARISONS[name]
        return compute(a, b) if type_ is None else _compare(word, a, b, type_)
    if name in _BITS:
        compute, made = _BITS[name]
        return compute(a, b) if type_ is None else builder().value(made(*as_type(type_, a, b)))
    if name not in _ARITHMETIC:
        if type_ is None:
            return getattr(operator, {"Pow": "pow", "MatMult": "matmul"}.get(name, name.lower()))(a, b)
        raise TypeError(f"expected + - * / // % or a comparison of values of the run, not {_SIGNS.get(name, name)}")
    compute, on_places, on_numbers = _ARITHMETIC[name]
    if type_ is None:
        return compute(a, b)
    if isinstance(type_, IndexType):
        if on_places is None:
            raise TypeError("expected numbers on both sides of /; // divides places and lengths")
        as_type(type_, a, b)
        return 0 if name == "Mult" and 0 in (known(a), known(b)) else on_places(builder(), a, b)
    if on_numbers is None:
        raise TypeError(f"expected places or lengths (index) on both sides of {_SIGNS[name]}, not {type_}")
    return getattr(builder().scalars(type_), on_numbers)(*as_type(type_, a, b))


def _type_of(*values: Any) -> Attribute | None:
    """The type in which values of the run are computed; None where there is none among them."""
    found: Attribute | None = None
    for value in values:
        for type_ in (value.type,) if is_run_time(value) else types_of(value):
            if found is not None and type_ != found:
                raise TypeError(f"expected both sides to have one type, not {found} and {type_}")
            found = type_
    return found


def as_type(type_: Attribute, *values: Any) -> list[SSAValue]:
    """Numbers of Python as constants of a type."""
    made: list[SSAValue] = []
    for value in values:
        if is_run_time(value):
            made.append(value)
        elif isinstance(value, int) or (isinstance(value, float) and is_float(type_)):
            made.append(builder().constant(value, type_))
        else:
            raise TypeError(f"expected a number that can be {type_}, not {value!r}")
    return made


def _compare(word: str, a: Any, b: Any, type_: Attribute) -> SSAValue:
    k, (left, right) = builder(), as_type(type_, a, b)
    if isinstance(type_, IndexType):
        return k.compare(word if word in ("eq", "ne") else f"s{word}", left, right)
    return k.scalars(type_).compare(word, left, right)


def unary(name: str, value: Any) -> Any:
    """`-a` and `not a`."""
    if not is_run_time(value):
        return _UNARY[name](value)
    if name == "Not":
        return builder().value(arith.XOrIOp(value, builder().constant(1, _condition(value).type)))
    if name != "USub":
        raise TypeError(f"expected - or `not` before a value of the run, not {_SIGNS[name]}")
    return builder().sub(0, value) if isinstance(value.type, IndexType) else builder().scalars(value.type).neg(value)


def _condition(value: SSAValue) -> SSAValue:
    if value.type != i1:
        raise TypeError(f"expected a condition (i1), not {value.type}")
    return value


def decided(value: Any) -> bool | SSAValue:
    """A condition that is known when the kernel is read, as such."""
    if not is_run_time(value):
        return bool(value)
    holds = known(_condition(value))
    return value if holds is None else bool(holds)


def logic(name: str, a: Any, rest: Callable[[], Any]) -> Any:
    """`and` and `or`: decided by a side that is known, else of both sides, which are both computed."""
    if not is_run_time(a):
        return rest() if bool(a) == (name == "And") else a
    left = decided(a)
    if isinstance(left, bool):
        return rest() if left == (name == "And") else a
    b = rest()
    right = decided(b)
    if isinstance(right, bool):
        return a if right == (name == "And") else b
    return builder().value((arith.AndIOp if name == "And" else arith.OrIOp)(left, right))


def choose(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """`a if c else b`: decided, or a selection of two values that are both computed."""
    holds = decided(condition)
    if isinstance(holds, bool):
        return then() if holds else otherwise()
    a, b = then(), otherwise()
    return builder().value(arith.SelectOp(holds, *as_type(_type_of(a, b) or type_of_number(a), a, b)))


def item(base: Any, index: Any) -> Any:
    """`base[index]`: an element of memory, or of a list of Python."""
    if is_run_time(base):
        return builder().value(LoadOp(_memory(base), [builder().index(index)], [1]))
    if type(base) in (list, tuple, dict, str) and is_run_time(index):
        raise TypeError("expected an index that is known when the kernel is read: lists are not in memory")
    return base[index]


def set_item(base: Any, index: Any, value: Any) -> None:
    """`base[index] = value`."""
    if is_run_time(base):
        (stored,) = as_type(element_of_buffer(_memory(base)), value)
        builder().insert(StoreOp(stored, base, [builder().index(index)], [1]))
        return
    base[index] = value


def _memory(base: SSAValue) -> SSAValue:
    if not isinstance(base.type, MemRefType):
        raise TypeError(f"expected memory before [..], not {base.type}")
    return base


def _given(values: tuple[Any, ...]) -> list[Any]:
    """The arguments, or the list that is the only one."""
    return list(values if len(values) > 1 else next(iter(values)))


def _smallest(*values: Any) -> Any:
    """`min(a, b, ..)`."""
    given = _given(values)
    return fold(lambda a, b: operate("Min", a, b), given)


def _largest(*values: Any) -> Any:
    """`max(a, b, ..)`."""
    given = _given(values)
    return fold(lambda a, b: operate("Max", a, b), given)


def absolute(value: Any) -> Any:
    """`abs(a)`."""
    return builder().scalars(value.type).abs(value) if is_run_time(value) else abs(value)


def total(values: Iterable[Any], start: Any = 0) -> Any:
    """`sum(..)` of a list of Python; nothing is added to a start of zero."""
    given = list(values)
    if start == 0 and not is_run_time(start) and given:
        start, *given = given
    return fold(lambda a, b: operate("Add", a, b), given, start)


def _all(conditions: Iterable[Any]) -> Any:
    """`all(..)` of a list of conditions: their `and`."""
    return fold(lambda a, b: logic("And", a, lambda: b), conditions, True)


def _any(conditions: Iterable[Any]) -> Any:
    """`any(..)` of a list of conditions: their `or`."""
    return fold(lambda a, b: logic("Or", a, lambda: b), conditions, False)


_REDUCTIONS: dict[str, tuple[ReduceKind, Callable[..., Any], float]] = {
    "sum": (ReduceKind.ADD, total, 0.0),
    "max": (ReduceKind.MAX, _largest, float("-inf")),
    "min": (ReduceKind.MIN, _smallest, float("inf")),
}


def reduce(name: str, values: Any, body: Callable[[list[Any]], list[Any]]) -> Any:
    """`sum(f(i) for i in range(n))`: a reduction at run time, in no order that anyone may rely on; or Python's own."""
    kind, on_lists, start = _REDUCTIONS[name]
    if not isinstance(values, Box | Range):
        return on_lists(body(list(values)))
    k, extents = builder(), [builder().extent(one) for one in values.extents()]
    block = Block(arg_types=[_INDEX] * len(extents))
    with k.inside(block):
        (value,) = body([values.given(block.args)])
        k.insert(YieldOp(operands=[[value]]))
    if not is_float(value.type):
        raise TypeError(f"expected floating-point numbers, not {value.type}: the word `reduction` takes others")
    return k.value(ReduceOp(kind, extents, k.constant(start, value.type), Region(block)))


_OPERATORS = {f"__{one.__name__}__": one for one in (operate, unary, logic, choose, item, reduce)}
WORDS: dict[str, Any] = {
    "abs": absolute, "all": _all, "any": _any, "max": _largest, "min": _smallest, "sum": total, "range": Range,
    **_OPERATORS,
}  # fmt: skip
