"""Scalar arithmetic, each op defined once: its meaning in NumPy, and its text for each target.

From a row follow what the op means to references and interpreters (`scalar_semantics.py`), the expression that
generated source has for it (`codegen/python_expressions.py`), and the words that a target's library must have for it.
Ops whose meaning or text depends on more than the operands (constants, comparisons, conversions) are written by hand
there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

Meaning: TypeAlias = "Callable[..., Array]"


@dataclass(frozen=True)
class ScalarText:
    """`word(a, b)` of a function, or `a word b` and `word a` of an operator of Python.

    `wraps`: integers that it gives are cut to the width of their type. `unsigned`: it reads the bits of integers as
    unsigned numbers. `associative`: `a + (b + c)` needs no parentheses.
    """

    word: str
    wraps: bool = False
    unsigned: bool = False
    associative: bool = False

    @property
    def is_operator(self) -> bool:
        return not self.word.isidentifier()


@dataclass(frozen=True)
class ScalarOp:
    """An op whose result follows from its operands alone, in the same way for all types.

    `meaning` takes and gives NumPy arrays of one shape, in the element types of the operands and of the result.
    """

    name: str
    meaning: Meaning
    text: ScalarText
    cpu: ScalarText | None = None
    """What source for CPUs says instead."""
    cuda: ScalarText | None = None

    def text_for(self, target: str) -> ScalarText:
        """The text for `cpu` or `cuda`."""
        return {"cpu": self.cpu, "cuda": self.cuda}[target] or self.text


def scalar_words(target: str) -> frozenset[str]:
    """The functions that the texts of all scalar ops call."""
    texts = [op.text_for(target) for op in SCALAR_OPS.values()]
    return frozenset(text.word for text in texts if not text.is_operator)


# Meanings.


def _numpy(name: str) -> Meaning:
    """A function of NumPy, which is imported when it is called."""

    def meaning(*operands: Array) -> Array:
        import numpy as np

        return getattr(np, name)(*operands)

    return meaning


def _in_double(name: str) -> Meaning:
    """A function of one number, rounded once from double precision."""

    def meaning(x: Array) -> Array:
        import numpy as np

        return getattr(np, name)(x.astype(np.float64)).astype(x.dtype)

    return meaning


def _rsqrt(x: Array) -> Array:
    import numpy as np

    return (1 / np.sqrt(x.astype(np.float64))).astype(x.dtype)


def _erf(x: Array) -> Array:
    import numpy as np

    from mlirt.dialects.special_functions import erf

    return erf(x.astype(np.float64)).astype(x.dtype)


def _round(x: Array) -> Array:
    import numpy as np

    return np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)


def _fma(a: Array, b: Array, c: Array) -> Array:
    import numpy as np

    return (a.astype(np.float64) * b + c).astype(a.dtype)


def _wide(name: str) -> Meaning:
    """A function of `wide_arithmetic`."""

    def meaning(*operands: Array) -> Array:
        from mlirt.dialects import wide_arithmetic

        return getattr(wide_arithmetic, name)(*operands)

    return meaning


def _power_of_integer(a: Array, b: Array) -> Array:
    import numpy as np

    return np.power(a, b).astype(a.dtype)


def _bits(x: Array) -> Array:
    """Integers read as unsigned ones."""
    import numpy as np

    return x.view(np.dtype(f"u{x.dtype.itemsize}")) if x.dtype.kind == "i" else x


def _divisor(x: Array) -> Array:
    """One in place of zero: integer division by zero gives some number and never traps."""
    import numpy as np

    return np.where(x == 0, x.dtype.type(1), x)


def _ceil_quotient(a: Array, b: Array) -> Array:
    return -((-a) // _divisor(b))


def _by_divisor(function: Meaning) -> Meaning:
    def meaning(a: Array, b: Array) -> Array:
        return function(a, _divisor(b))

    return meaning


def _of_bits(function: Meaning) -> Meaning:
    """What unsigned numbers give, in the type of the operands."""
    def meaning(a: Array, b: Array) -> Array:
        return function(_bits(a), _bits(b)).astype(a.dtype)

    return meaning


# Texts.


def _text(word: str) -> ScalarText:
    return ScalarText(word)


def _wrapped(word: str, *, associative: bool = False) -> ScalarText:
    return ScalarText(word, wraps=True, associative=associative)


def _unsigned(word: str) -> ScalarText:
    return ScalarText(word, unsigned=True)


def _function(name: str, numpy_name: str) -> ScalarOp:
    """A function of one floating-point number, which is called as MLIR calls it."""
    return ScalarOp(f"math.{name}", _in_double(numpy_name), _text(name))


_truncated_quotient = _by_divisor(_wide("truncated_quotient"))
_FLOAT = (
    ScalarOp("arith.addf", _numpy("add"), _text("+")),
    ScalarOp("arith.subf", _numpy("subtract"), _text("-")),
    ScalarOp("arith.mulf", _numpy("multiply"), _text("*")),
    ScalarOp("arith.divf", _numpy("divide"), _text("/"), cuda=_text("divide")),
    ScalarOp("arith.negf", _numpy("negative"), _text("-")),
    ScalarOp("arith.maximumf", _numpy("maximum"), _text("maximum")),
    ScalarOp("arith.minimumf", _numpy("minimum"), _text("minimum")),
    ScalarOp("arith.maxnumf", _numpy("fmax"), _text("maxnum")),
    ScalarOp("arith.minnumf", _numpy("fmin"), _text("minnum")),
    ScalarOp("kernel.remf", _numpy("fmod"), _text("remainder")),
    ScalarOp("math.absf", _numpy("abs"), _text("absolute")),
    ScalarOp("math.fma", _fma, _text("fma")),
    ScalarOp("math.powf", _wide("power"), _text("power")),
    ScalarOp("math.fpowi", _power_of_integer, _text("power_of_integer")),
    ScalarOp("math.copysign", _numpy("copysign"), _text("copysign")),
    ScalarOp("math.atan2", _numpy("arctan2"), _text("atan2")),
    ScalarOp("math.ceil", _numpy("ceil"), _text("ceil")),
    ScalarOp("math.floor", _numpy("floor"), _text("floor")),
    ScalarOp("math.trunc", _numpy("trunc"), _text("trunc")),
    ScalarOp("math.round", _round, _text("round")),
    ScalarOp("math.roundeven", _numpy("rint"), _text("roundeven")),
    ScalarOp("math.rsqrt", _rsqrt, _text("rsqrt")),
    ScalarOp("math.erf", _erf, _text("erf")),
    *(
        _function(name, name)
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt"),
            *("sin", "cos", "tan", "sinh", "cosh", "tanh"),
        )
    ),
    *(_function(f"a{name}", f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")),
)
_INTEGER = (
    ScalarOp("arith.addi", _numpy("add"), _wrapped("+", associative=True)),
    ScalarOp("arith.subi", _numpy("subtract"), _wrapped("-")),
    ScalarOp("arith.muli", _numpy("multiply"), _wrapped("*", associative=True)),
    ScalarOp("arith.divsi", _truncated_quotient, _wrapped("truncated_div")),
    ScalarOp("arith.remsi", _by_divisor(_numpy("fmod")), _wrapped("truncated_rem")),
    ScalarOp(
        "arith.divui",
        _of_bits(_by_divisor(_numpy("floor_divide"))),
        _unsigned("truncated_div"),
        cpu=_wrapped("unsigned_div"),
    ),
    ScalarOp(
        "arith.remui",
        _of_bits(_by_divisor(_numpy("remainder"))),
        _unsigned("truncated_rem"),
        cpu=_wrapped("unsigned_rem"),
    ),
    ScalarOp("arith.ceildivsi", _ceil_quotient, _wrapped("ceil_div")),
    ScalarOp("arith.floordivsi", _by_divisor(_numpy("floor_divide")), _wrapped("floor_div"), cuda=_text("floor_div")),
    ScalarOp("arith.minsi", _numpy("minimum"), _text("minimum")),
    ScalarOp("arith.maxsi", _numpy("maximum"), _text("maximum")),
    ScalarOp("arith.minui", _of_bits(_numpy("minimum")), _unsigned("minimum")),
    ScalarOp("arith.maxui", _of_bits(_numpy("maximum")), _unsigned("maximum")),
    ScalarOp("arith.andi", _numpy("bitwise_and"), _wrapped("&")),
    ScalarOp("arith.ori", _numpy("bitwise_or"), _wrapped("|")),
    ScalarOp("arith.xori", _numpy("bitwise_xor"), _wrapped("^")),
    ScalarOp("arith.shli", _numpy("left_shift"), _wrapped("<<")),
    ScalarOp("arith.shrsi", _numpy("right_shift"), _wrapped(">>")),
    ScalarOp("arith.shrui", _of_bits(_numpy("right_shift")), _unsigned(">>")),
    ScalarOp("math.absi", _numpy("abs"), _wrapped("absolute")),
    ScalarOp("math.ipowi", _wide("integer_power"), _wrapped("integer_power")),
)
SCALAR_OPS: Mapping[str, ScalarOp] = {
    op.name: op for op in (*_FLOAT, *_INTEGER, ScalarOp("arith.select", _numpy("where"), _text("select")))
}
"""By name."""
