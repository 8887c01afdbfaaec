"""Each combine: its identity changes nothing, its op and NumPy's function agree, and its words are in the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import IndexType, IntegerType, Signedness, f32, i1, i8, i64

from mlirt.codegen.numba_cpu.vocabulary import VOCABULARY
from mlirt.dialects.combine import COMBINES, ReduceKind, identity
from mlirt.dialects.scalar_ops import SCALAR_OPS
from mlirt.errors import CompileError

UI8 = IntegerType(8, Signedness.UNSIGNED)
BITWISE = (ReduceKind.AND, ReduceKind.OR)
SOME: dict[str, list[Any]] = {
    "bool": [False, True],
    "int8": [-128, -1, 0, 5, 127],
    "uint8": [0, 1, 128, 255],
    "int64": [-(2**63), 0, 2**63 - 1],
    "float16": [-np.inf, -1.5, 0, 65504, np.inf],
    "float32": [-np.inf, -1.5, 0, np.inf],
}
OPERANDS = {"bool": i1, "int8": i8, "uint8": UI8, "int64": i64, "float32": f32}


def test_every_kind_has_one() -> None:
    assert set(COMBINES) == set(ReduceKind)


@pytest.mark.parametrize("dtype", SOME)
@pytest.mark.parametrize("kind", ReduceKind)
def test_identities_change_nothing(kind: ReduceKind, dtype: str) -> None:
    if kind in BITWISE and "float" in dtype:
        return
    values = np.array(SOME[dtype], dtype)
    start = np.asarray(identity(kind, dtype)).astype(dtype)
    found = COMBINES[kind].ufunc()(start, values).astype(dtype)
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("dtype", OPERANDS)
@pytest.mark.parametrize("kind", ReduceKind)
def test_ops_mean_what_numpy_does(kind: ReduceKind, dtype: str) -> None:
    combine, type_ = COMBINES[kind], OPERANDS[dtype]
    if kind in BITWISE and type_ == f32:
        with pytest.raises(CompileError, match="has no meaning"):
            combine.op(type_)
        return
    signless = IntegerType(8) if type_ == UI8 else type_
    a, b = test.TestOp(result_types=[signless, signless]).results
    op = combine.op(type_)(a, b)
    left, right = (one.ravel() for one in np.meshgrid(*[np.array(SOME[dtype], dtype)] * 2))
    stored = (left, right) if type_ != UI8 else (left.view(np.int8), right.view(np.int8))
    with np.errstate(all="ignore"):
        found = np.asarray(SCALAR_OPS[op.name].meaning(*stored))
        want = combine.ufunc()(left, right).astype(dtype)
    np.testing.assert_array_equal(found.astype(stored[0].dtype).view(dtype), want)


def test_places_are_compared_with_a_sign() -> None:
    assert COMBINES[ReduceKind.MAX].op(IndexType()) is COMBINES[ReduceKind.MAX].op(i64)


@pytest.mark.parametrize("kind", ReduceKind)
def test_words_of_lanes_are_in_the_library(kind: ReduceKind) -> None:
    combine = COMBINES[kind]
    called = combine.across if combine.is_infix else combine.text.partition("(")[0]
    assert {combine.across, combine.fold, called} <= VOCABULARY
