"""What each scalar `arith` and `math` op means, lane-parallel on NumPy arrays.

Used wherever scalar regions are executed without a device: by the fused ops' `reference` and by the SIMT interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue

from mlirt.errors import CompileError

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
    UnaryRule: TypeAlias = Callable[[Array], Array]
    BinaryRule: TypeAlias = Callable[[Array, Array], Array]
    TernaryRule: TypeAlias = Callable[[Array, Array, Array], Array]


def scalar_dtype(type_: Attribute) -> np.dtype[Any]:
    """The NumPy dtype of a scalar type; `index` is int64."""
    import numpy as np

    from mlirt.dialects.tensor_types import numpy_dtype

    return np.dtype(np.int64) if isinstance(type_, IndexType) else numpy_dtype(type_)


def _as_unsigned(x: Array) -> Array:
    import numpy as np

    return x.view(np.dtype(f"u{x.dtype.itemsize}")) if x.dtype.kind == "i" else x


def _divisor(x: Array) -> Array:
    """One in place of zero: integer division by zero gives some number and never traps."""
    import numpy as np

    return np.where(x == 0, x.dtype.type(1), x)


def _in_double(function: UnaryRule) -> UnaryRule:
    import numpy as np

    def rule(x: Array) -> Array:
        return function(x.astype(np.float64)).astype(x.dtype)

    return rule


@cache
def _unary_rules() -> dict[str, UnaryRule]:
    import numpy as np

    from mlirt.dialects.special_functions import erf

    in_double: dict[str, UnaryRule] = {
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "erf": erf,
        "sqrt": np.sqrt,
        "exp": np.exp,
        "exp2": np.exp2,
        "expm1": np.expm1,
        "log": np.log,
        "log2": np.log2,
        "log10": np.log10,
        "log1p": np.log1p,
        "cbrt": np.cbrt,
        "sin": np.sin,
        "cos": np.cos,
        "tan": np.tan,
        "asin": np.arcsin,
        "acos": np.arccos,
        "atan": np.arctan,
        "sinh": np.sinh,
        "cosh": np.cosh,
        "tanh": np.tanh,
        "asinh": np.arcsinh,
        "acosh": np.arccosh,
        "atanh": np.arctanh,
    }
    exact: dict[str, UnaryRule] = {
        "arith.negf": np.negative,
        "math.absf": np.abs,
        "math.absi": np.abs,
        "math.ceil": np.ceil,
        "math.floor": np.floor,
        "math.trunc": np.trunc,
        "math.roundeven": np.rint,
        "math.round": lambda x: np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x),
    }
    return exact | {f"math.{name}": _in_double(function) for name, function in in_double.items()}


@cache
def _binary_rules() -> dict[str, BinaryRule]:
    import numpy as np

    from mlirt.dialects.wide_arithmetic import integer_power, power, truncated_quotient

    rules: dict[str, BinaryRule] = {
        "arith.addf": np.add,
        "arith.subf": np.subtract,
        "arith.mulf": np.multiply,
        "arith.divf": np.divide,
        "arith.maximumf": np.maximum,
        "arith.minimumf": np.minimum,
        "arith.maxnumf": np.fmax,
        "arith.minnumf": np.fmin,
        "arith.addi": np.add,
        "arith.subi": np.subtract,
        "arith.muli": np.multiply,
        "arith.divsi": lambda a, b: truncated_quotient(a, _divisor(b)),
        "arith.divui": lambda a, b: (_as_unsigned(a) // _divisor(_as_unsigned(b))).astype(a.dtype),
        "arith.floordivsi": lambda a, b: a // _divisor(b),
        "arith.ceildivsi": lambda a, b: -((-a) // _divisor(b)),
        "arith.remsi": lambda a, b: np.fmod(a, _divisor(b)),
        "arith.remui": lambda a, b: (_as_unsigned(a) % _divisor(_as_unsigned(b))).astype(a.dtype),
        "arith.minsi": np.minimum,
        "arith.maxsi": np.maximum,
        "arith.minui": lambda a, b: np.where(_as_unsigned(a) < _as_unsigned(b), a, b),
        "arith.maxui": lambda a, b: np.where(_as_unsigned(a) > _as_unsigned(b), a, b),
        "arith.andi": np.bitwise_and,
        "arith.ori": np.bitwise_or,
        "arith.xori": np.bitwise_xor,
        "arith.shli": np.left_shift,
        "arith.shrsi": np.right_shift,
        "arith.shrui": lambda a, b: (_as_unsigned(a) >> _as_unsigned(b)).astype(a.dtype),
        "math.copysign": np.copysign,
        "math.powf": power,
        "kernel.remf": np.fmod,
        "math.ipowi": integer_power,
        "math.fpowi": lambda a, b: np.power(a, b).astype(a.dtype),
        "math.atan2": np.arctan2,
    }
    return rules


@cache
def _ternary_rules() -> dict[str, TernaryRule]:
    import numpy as np

    rules: dict[str, TernaryRule] = {
        "arith.select": np.where,
        "math.fma": lambda a, b, c: (a.astype(np.float64) * b + c).astype(a.dtype),
    }
    return rules


def _apply(name: str, operands: Sequence[Array]) -> Array | None:
    """The result of an op whose meaning depends on its operands alone; None where there is no rule for it."""
    if len(operands) == 1 and name in _unary_rules():
        return _unary_rules()[name](operands[0])
    if len(operands) == 2 and name in _binary_rules():
        return _binary_rules()[name](operands[0], operands[1])
    if len(operands) == 3 and name in _ternary_rules():
        return _ternary_rules()[name](operands[0], operands[1], operands[2])
    return None


# The order of `arith.cmpi` and `arith.cmpf` predicates as MLIR numbers them.
_CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_CMPF = (
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
)
_CONVERSIONS = frozenset(
    f"arith.{name}" for name in ("fptosi", "sitofp", "extf", "truncf", "trunci", "extsi", "index_cast")
)


def evaluate(op: Operation, operands: Sequence[Array]) -> Array:
    """The result of one scalar op on arrays of lanes; raises `CompileError` for an op without a meaning here."""
    import numpy as np

    with np.errstate(all="ignore"):
        if op.name == "arith.constant":
            return np.asarray(_constant(op), scalar_dtype(op.results[0].type))
        if op.name == "arith.cmpi":
            return _compare_integers(_CMPI[_predicate(op)], *operands)
        if op.name == "arith.cmpf":
            return _compare_floats(_CMPF[_predicate(op)], *operands)
        if op.name in _CONVERSIONS:
            return _convert(operands[0], scalar_dtype(op.results[0].type))
        if op.name == "arith.fptoui":
            signless = scalar_dtype(op.results[0].type)
            return _convert(operands[0], np.dtype(f"u{signless.itemsize}")).view(signless)
        if op.name in ("arith.extui", "arith.uitofp"):
            x = operands[0]
            unsigned = x.view(np.dtype(f"u{x.dtype.itemsize}")) if x.dtype.kind == "i" else x
            return unsigned.astype(scalar_dtype(op.results[0].type))
        if op.name == "arith.bitcast":
            bits = np.ascontiguousarray(operands[0]).reshape(operands[0].shape)  # it gives a scalar an axis
            return bits.view(scalar_dtype(op.results[0].type))
        result = _apply(op.name, operands)
        if result is None:
            raise CompileError(f"scalar op {op.name} has no meaning in NumPy; add it to dialects/scalar_semantics.py")
        return np.asarray(result)


def evaluate_region(
    region: Region,
    arguments: Sequence[Array],
    special: Mapping[str, Callable[[Operation], Array]] | None = None,
    outer: Mapping[SSAValue, Array] | None = None,
) -> list[Array]:
    """The yielded arrays of a scalar region; `special` gives the meaning of ops such as `fused.index` by name."""
    values: dict[SSAValue, Array] = dict(outer or {})
    values.update(zip(region.block.args, arguments, strict=True))
    for op in region.block.ops:
        if op is region.block.last_op:
            return [values[operand] for operand in op.operands]
        if special and op.name in special:
            values[op.results[0]] = special[op.name](op)
        else:
            values[op.results[0]] = evaluate(op, [values[operand] for operand in op.operands])
    raise CompileError("a scalar region has no terminator")


def _constant(op: Operation) -> int | float:
    value = op.properties["value"]
    assert isinstance(value, IntegerAttr | FloatAttr)
    return value.value.data


def _predicate(op: Operation) -> int:
    attr = op.properties["predicate"]
    assert isinstance(attr, IntegerAttr)
    return attr.value.data


def _convert(x: Array, dtype: np.dtype[Any]) -> Array:
    from mlirt.dialects.wide_arithmetic import saturated

    if x.dtype.kind == "f" and dtype.kind in "iu":
        return saturated(x, dtype)
    if x.dtype.kind == "b" and dtype.kind == "i":
        return -x.astype(dtype)
    return x.astype(dtype)


def _compare_integers(predicate: str, a: Array, b: Array) -> Array:
    import numpy as np

    if predicate.startswith("u"):
        unsigned = np.dtype(f"u{a.dtype.itemsize}")
        a, b = a.astype(unsigned), b.astype(unsigned)
    name = predicate[-2:]
    table = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    return table[name](a, b)


def _compare_floats(predicate: str, a: Array, b: Array) -> Array:
    import numpy as np

    unordered = np.isnan(a) | np.isnan(b)
    if predicate in ("false", "true"):
        return np.full(unordered.shape, predicate == "true")
    if predicate in ("ord", "uno"):
        return unordered if predicate == "uno" else ~unordered
    table = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    result = table[predicate[1:]](a, b)
    return result | unordered if predicate[0] == "u" else result & ~unordered
