"""Scalar ops are rows of one table: which of arith and math have none, and what each row's text and meaning give."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.arith import Arith
from xdsl.dialects.math import Math

from mlirt.builder import numba_cpu_intrinsics, numba_cuda_intrinsics
from mlirt.codegen.python_expressions import expressions_for
from mlirt.dialects.scalar_ops import SCALAR_OPS, ScalarOp, scalar_words

LIBRARIES = {"cpu": numba_cpu_intrinsics.WORDS, "cuda": numba_cuda_intrinsics.WORDS}
# Ops of which no network and no kernel consists.
WITHOUT_TEXT = {
    *("arith.addui_extended", "arith.mulsi_extended", "arith.mului_extended", "arith.ceildivui"),
    *("math.ctlz", "math.ctpop", "math.cttz"),
}
_python: Any = operator
_PYTHON: dict[str, Any] = {
    "+": _python.add, "*": _python.mul, "/": _python.truediv, "&": _python.and_, "|": _python.or_,
    "^": _python.xor, "<<": _python.lshift, ">>": _python.rshift,
}  # fmt: skip


@pytest.mark.parametrize("target", LIBRARIES)
def test_every_scalar_op_has_a_row_or_a_rule_by_hand(target: str) -> None:
    known = {op.name for dialect in (Arith, Math) for op in dialect.operations} | {"kernel.remf"}
    assert expressions_for(target).keys() == known - WITHOUT_TEXT
    assert known >= SCALAR_OPS.keys()


@pytest.mark.parametrize("target", LIBRARIES)
def test_the_library_of_a_target_has_the_words_of_all_rows(target: str) -> None:
    assert scalar_words(target) <= set(LIBRARIES[target])


@pytest.mark.parametrize("op", SCALAR_OPS.values(), ids=lambda op: op.name)
def test_a_meaning_keeps_the_type_of_its_operands(op: ScalarOp) -> None:
    is_integer = op.name.endswith("i") or op.name in ("arith.shrui", "arith.ceildivsi", "arith.floordivsi")
    numbers = np.array([0.25, 0.5, 0.75], np.float32) if not is_integer else np.array([1, 2, 3], np.int8)
    if op.name == "math.fpowi":
        operands = [np.array([0.25, 0.5], np.float32), np.array([2, 3], np.int32)]
    elif op.name == "arith.select":
        operands = [np.array([True, False, True]), numbers, numbers]
    else:
        operands = [numbers] * _arity(op)
    found = op.meaning(*operands)
    assert found.dtype == operands[-1 if op.name == "arith.select" else 0].dtype
    assert found.shape == operands[0].shape


@pytest.mark.parametrize("op", [op for op in SCALAR_OPS.values() if op.text.word in _PYTHON], ids=lambda op: op.name)
def test_an_operator_of_the_text_means_what_the_meaning_gives(op: ScalarOp) -> None:
    is_float = op.name.endswith("f")
    a, b = (np.array(one, np.float32 if is_float else np.int32) for one in ([6, 5, -3, 40], [2, 3, 4, 1]))
    if op.text.unsigned:
        a, b = a.view(np.uint32), b.view(np.uint32)
    np.testing.assert_array_equal(op.meaning(a, b), _PYTHON[op.text.word](a, b))


@pytest.mark.parametrize(
    "op", [op for op in SCALAR_OPS.values() if op.name == f"math.{op.text.word}"], ids=lambda op: op.name
)
def test_a_function_is_the_one_of_its_name(op: ScalarOp) -> None:
    """Against Python's, where it has one of this name."""
    exact: Any = getattr(math, op.text.word, None)
    if exact is None or op.text.word == "fma":  # that of Python is new
        assert op.text.word in ("rsqrt", "round", "roundeven", "fma")
        return
    x = np.array([1.25, 2.5, 3.75] if op.text.word == "acosh" else [0.25, 0.5, 0.75], np.float64)
    operands = [x] * _arity(op)
    expected = [exact(*(float(one[i]) for one in operands)) for i in range(len(x))]
    np.testing.assert_allclose(op.meaning(*operands), expected, rtol=1e-14)


def _arity(op: ScalarOp) -> int:
    if op.name in ("math.fma", "arith.select"):
        return 3
    two = op.name.startswith("arith.") and op.name != "arith.negf"
    return 2 if two or op.name in ("kernel.remf", "math.powf", "math.ipowi", "math.copysign", "math.atan2") else 1
