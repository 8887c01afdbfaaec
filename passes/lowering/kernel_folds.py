"""What an op of a kernel is known to give without running it: another value, a number, or nothing. No rewriting."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.fused.scalar_builder import integer_type
from mlirt.kernels.lib.builder.index_arithmetic import known

_BOOL, _INDEX_BITS, _MAX_BITS = 1, 32, 64


def folded(op: Operation) -> SSAValue | int | None:
    """The value that the one result of an op equals, or its number; None where neither is known.

    Numbers are integers, indices and conditions; sums of floats keep their zeros, which decide about signs.
    """
    if isinstance(op, arith.CmpiOp):
        return _comparison(op)
    if isinstance(op, arith.SelectOp):
        return _selection(op)
    if isinstance(op, arith.IndexCastOp | arith.BitcastOp | arith.TruncIOp | arith.ExtSIOp):
        return _cast(op)
    if isinstance(op, arith.AndIOp | arith.OrIOp) and _bits(op.result.type) == _BOOL:
        return _conjunction(op)
    if len(op.operands) == 2 and len(op.results) == 1 and _is_number(op.results[0].type):
        return _arithmetic(op, *op.operands)
    return None


def _is_number(type_: Attribute) -> bool:
    return _bits(type_) > _BOOL


def _bits(type_: Attribute) -> int:
    """The bits of a whole number, an index being one of 32 where a kernel says so; 0 for other types."""
    if isinstance(type_, IndexType):
        return _INDEX_BITS
    same = type_  # a narrowed type would have parameters that checkers do not know
    return integer_type(same).width.data if isinstance(type_, IntegerType) else 0


def _comparison(op: arith.CmpiOp) -> int | None:
    predicate = op.predicate.value.data
    left, right = known(op.lhs), known(op.rhs)
    if op.lhs is op.rhs:
        return int(predicate in _HOLDS_OF_EQUALS)
    if left is None or right is None or (predicate >= _FIRST_UNSIGNED and min(left, right) < 0):
        return None
    return int(_PREDICATES[predicate](left, right)) if _is_number(op.lhs.type) else None


_SIGNED: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
)
_PREDICATES = (*_SIGNED, *_SIGNED[2:])
_FIRST_UNSIGNED = 6
_HOLDS_OF_EQUALS = (0, 3, 5, 7, 9)


def _selection(op: arith.SelectOp) -> SSAValue | None:
    condition = known(op.cond)
    if op.lhs is op.rhs:
        return op.lhs
    return None if condition is None else op.lhs if condition else op.rhs


def _conjunction(op: arith.AndIOp | arith.OrIOp) -> SSAValue | int | None:
    """A conjunction or disjunction of conditions, one of which is known: it decides, or is the other one."""
    decides = isinstance(op, arith.OrIOp)
    for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        holds = condition_of(one)
        if holds is not None:
            return int(decides) if holds == decides else other
    return op.lhs if op.lhs is op.rhs else None


def _cast(op: Operation) -> SSAValue | int | None:
    """A cast that does nothing, there and back to as many bits, or of a number."""
    source, target = op.operands[0], op.results[0].type
    if source.type == target:
        return source
    inner = source.owner
    if isinstance(inner, Operation) and _loses_nothing(op, inner) and inner.operands[0].type == target:
        return inner.operands[0]
    number = known(source)
    fits = number is not None and 0 <= number < 2**31 and _is_number(source.type) and _is_number(target)
    return number if fits and not isinstance(op, arith.BitcastOp) and (number or 0) < _past(target) else None


def _loses_nothing(op: Operation, inner: Operation) -> bool:
    """Whether what a cast makes of the result of another one has the bits that went into that one."""
    if isinstance(op, arith.BitcastOp):
        return isinstance(inner, arith.BitcastOp)
    if isinstance(op, arith.TruncIOp):
        return isinstance(inner, arith.ExtSIOp | arith.ExtUIOp)
    wide = inner.results[0].type if isinstance(inner, arith.IndexCastOp) else None
    return isinstance(op, arith.IndexCastOp) and wide is not None and _bits(wide) >= _MAX_BITS


def _past(type_: Attribute) -> int:
    """The number behind the largest one of a type."""
    return 2 ** (_bits(type_) - 1)


def _arithmetic(op: Operation, a: SSAValue, b: SSAValue) -> SSAValue | int | None:
    left, right = known(a), known(b)
    if left is not None and right is not None:
        return _of_numbers(op, left, right)
    if (op.name, right) in _KEEPS_LEFT:
        return a
    if (op.name, left) in _KEEPS_RIGHT:
        return b
    return 0 if (op.name, right) in _GIVES_ZERO or (op.name == "arith.muli" and left == 0) else None


_KEEPS_LEFT = frozenset(
    (f"arith.{name}", number)
    for number, names in {
        0: ("addi", "subi", "ori", "xori", "shli", "shrsi", "shrui"),
        1: ("muli", "divsi", "divui", "floordivsi", "ceildivsi"),
    }.items()
    for name in names
)
_KEEPS_RIGHT = frozenset({("arith.addi", 0), ("arith.muli", 1), ("arith.ori", 0), ("arith.xori", 0)})
_GIVES_ZERO = frozenset({("arith.muli", 0), ("arith.remui", 1), ("arith.remsi", 1), ("arith.andi", 0)})


def _of_numbers(op: Operation, left: int, right: int) -> int | None:
    """The number of two numbers, where neither is negative and the result has room."""
    fold = _FOLDS.get(op.name)
    if fold is None or min(left, right) < 0 or (right == 0 and "div" in op.name) or (right == 0 and "rem" in op.name):
        return None
    number = fold(left, right)
    return number if 0 <= number < _past(op.results[0].type) else None


_FOLDS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: a // b,
    "arith.divsi": lambda a, b: a // b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.remui": lambda a, b: a % b,
    "arith.remsi": lambda a, b: a % b,
    "arith.maxsi": lambda a, b: max(a, b),
    "arith.maxui": lambda a, b: max(a, b),
    "arith.minsi": lambda a, b: min(a, b),
    "arith.minui": lambda a, b: min(a, b),
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
}


def condition_of(value: SSAValue) -> bool | None:
    """Whether a condition is known to hold; None where it is not known."""
    number = known(value)
    return None if number is None else bool(number)


def constant(number: int, type_: Attribute) -> arith.ConstantOp:
    """A number of a type as an op."""
    if isinstance(type_, IndexType):
        return arith.ConstantOp(IntegerAttr(number, type_))
    return arith.ConstantOp(IntegerAttr(number, integer_type(type_)))


__all__ = ["condition_of", "constant", "folded"]
