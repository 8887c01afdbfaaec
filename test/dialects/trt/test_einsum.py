"""Einsum (tensorrt-features.md#1.9a, 1.9b): the reference against NumPy's, the equation by itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from trt_layers import layer, random, run
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.einsum_equation import parse_equation
from mlirt.dialects.trt.einsum import EinsumOp


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("i,j->ij", [(2,), (3,)]),
        ("i,i->", [(3,), (3,)]),
        (" i j -> j i ", [(2, 3)]),
        ("ba", [(2, 3)]),
        ("ijk->", [(2, 3, 4)]),
        (",", [(), ()]),
        ("...ij,...jk->...ik", [(5, 1, 2, 3), (6, 3, 4)]),
        ("...ij,jk", [(5, 2, 3), (3, 4)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("bhwc,hkc->bhwk", [(2, 3, 4, 5), (3, 6, 5)]),
        ("Ab,bA->A", [(2, 3), (3, 2)]),
    ],
)
def test_as_numpy_1_9a(equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [random(shape, seed) for seed, shape in enumerate(shapes)]
    (y,) = run(EinsumOp, arrays, equation=equation)
    assert_allclose(y, np.einsum(equation, *arrays), rtol=1e-4, atol=1e-5)


def test_symbols() -> None:
    run(EinsumOp, [random((2, 3, 4)), random((4, 5), 1)], {0: "n,m,4", 1: "4,k"}, equation="nmi,ik->nmk")


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk->il", [(2, 3), (3, 4)], "C2"),
        ("ij->ii", [(2, 3)], "C2"),
        ("i.j", [(2, 3)], "C2"),
        ("i->j->k", [(2,)], "C2"),
        ("ij", [(2, 3, 4)], "C3: number of subscripts for input operand 0"),
        ("i,i", [(2,), (3,)], "C4"),
        ("ii", [(2, 3)], "C4"),
        ("i,i", [(1,), (3,)], "C4"),
    ],
)
def test_errors_1_9b(equation: str, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        layer(EinsumOp, [random(shape) for shape in shapes], equation=equation)


def test_summed_labels_come_in_order_of_appearance() -> None:
    assert parse_equation("cab,bd->d", [3, 2]).summed == ("c", "a", "b")
