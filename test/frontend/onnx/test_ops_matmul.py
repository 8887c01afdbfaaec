"""Contractions against onnxruntime."""

from __future__ import annotations

from typing import Any

import pytest
from onnx_models import check_node, imported_text, numbers, one_node, small_integers

from mlirt.errors import InvalidModelError


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4), (4, 5)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 3, 4), (4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((4,), (2, 4, 3)),
    ],
)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check_node("MatMul", [numbers(*left), numbers(*right, seed=1)], opset=13)


def test_matmul_of_integers() -> None:
    check_node("MatMul", [small_integers(3, 4, dtype="int32"), small_integers(4, 2, dtype="int32", seed=1)], opset=13)


@pytest.mark.parametrize("c", [None, (5,), (3, 5), (3, 1), ()])
@pytest.mark.parametrize("attributes", [{}, {"transA": 1, "transB": 1}, {"alpha": 0.5, "beta": 2.0}])
def test_gemm(c: tuple[int, ...] | None, attributes: dict[str, Any]) -> None:
    swapped = "transA" in attributes
    arrays = [numbers(4, 3) if swapped else numbers(3, 4), numbers(5, 4) if swapped else numbers(4, 5)]
    check_node("Gemm", arrays if c is None else [*arrays, numbers(*c, seed=2)], opset=13, **attributes)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bjk", [(2, 3, 4), (2, 4, 5)]),
        ("...ij->...ji", [(2, 3, 4)]),
        ("i,i->", [(3,), (3,)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    check_node("Einsum", [numbers(*shape, seed=k) for k, shape in enumerate(shapes)], opset=12, equation=equation)


def test_a_malformed_equation_names_the_node() -> None:
    model, _ = one_node("Einsum", [numbers(2, 3)], opset=12, equation="ij,k->i")
    with pytest.raises(InvalidModelError, match=r"Einsum \(node 'node'\): .*ij,k->i"):
        imported_text(model)
