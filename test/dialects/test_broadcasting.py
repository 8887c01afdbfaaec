"""The broadcasting rule against NumPy's, and on symbols."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.broadcasting import broadcast
from mlirt.dialects.symbolic import Dim, broadcast_length, minimum, sym


@given(st.integers(0, 4).flatmap(lambda rank: st.lists(st.tuples(*[st.integers(0, 3)] * rank), min_size=1, max_size=3)))
def test_as_numpy(shapes: list[tuple[int, ...]]) -> None:
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(VerifyException, match="C5: lengths"):
            broadcast(shapes)
    else:
        assert broadcast(shapes) == expected


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([sym("n"), 1], sym("n")),
        ([sym("n"), 4], 4),
        ([1, sym("n"), sym("n")], sym("n")),
        ([sym("n"), sym("m")], broadcast_length(sym("m"), sym("n"))),
        ([sym("n"), 1, sym("m"), sym("n")], broadcast_length(sym("n"), sym("m"))),
        ([broadcast_length(sym("n"), sym("m")), sym("m")], broadcast_length(sym("n"), sym("m"))),
        ([sym("n"), sym("m"), 4], 4),
        ([sym("n"), minimum(sym("n"), 512)], sym("n")),
        ([2 * (sym("n") // 2), sym("n")], 2 * (sym("n") // 2)),
        ([sym("n"), 2 * ((sym("n") + 1) // 2)], 2 * ((sym("n") + 1) // 2)),
        ([sym("n"), sym("m") + 2], sym("m") + 2),
        ([sym("n"), 0], 0),
        ([sym("?0"), sym("n")], sym("n")),
        ([sym("?0"), 3], 3),
        ([sym("?0"), 1], sym("?0")),
        ([minimum(sym("n"), 1), sym("m")], sym("m")),
        ([minimum(sym("n"), 1), 4], 4),
        ([minimum(sym("n"), 1), 1], minimum(sym("n"), 1)),
    ],
)
def test_symbols(lengths: list[Dim], expected: Dim) -> None:
    assert broadcast([[length] for length in lengths]) == (expected,)


def test_the_caller_names_the_constraint() -> None:
    with pytest.raises(VerifyException, match=r"C9: lengths \['2', '3'\] of dimension 1 do not broadcast"):
        broadcast([[1, 2], [1, 3]], "C9")
