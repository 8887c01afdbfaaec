"""Low-rank updates are added to the weights that they name, and engines refitted with them. Demand 20."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.numpy_helper import from_array

import mlirt
from mlirt.errors import InvalidInputError

DRAW = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return DRAW.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("weight", "first", "last", "product"),
    [
        ((6, 5), (2, 5), (6, 2), "or,ri->oi"),
        ((6, 5, 3, 3), (2, 5, 3, 3), (6, 2, 1, 1), "orab,rikl->oikl"),
    ],
    ids=["product", "convolution"],
)
def test_an_update_is_added(weight: Any, first: Any, last: Any, product: str) -> None:
    w, a, b = drawn(*weight), drawn(*first), drawn(*last)
    adapter = {"base_model.model.net.0.lora_A.default.weight": a, "base_model.model.net.0.lora_B.default.weight": b}
    found = mlirt.lora_merged({"net.0.weight": w, "net.0.bias": drawn(6)}, adapter, 0.5)
    assert list(found) == ["net.0.weight"]
    np.testing.assert_allclose(found["net.0.weight"], w + 0.5 * np.einsum(product, b, a), rtol=1e-5, atol=1e-6)


def test_embeddings_and_transposed_weights() -> None:
    w, a, b = drawn(9, 4), drawn(2, 9), drawn(4, 2)
    found = mlirt.lora_merged({"e.weight": w}, {"e.lora_embedding_A": a, "e.lora_embedding_B": b}, {"e": 2.0})
    np.testing.assert_allclose(found["e.weight"], w + 2 * (b @ a).T, rtol=1e-5, atol=1e-6)
    found = mlirt.lora_merged({"e.weight": w}, {"e.lora_A.weight": a, "e.lora_B.weight": b}, transposed=True)
    np.testing.assert_allclose(found["e.weight"], w + (b @ a).T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("adapter", "text"),
    [
        ({"n.lora_A.weight": drawn(2, 5)}, "n: the adapter has the factor A alone"),
        ({"m.lora_A.weight": drawn(2, 5), "m.lora_B.weight": drawn(6, 2)}, "there is no weight 'm.weight'"),
        ({"n.lora_A.weight": drawn(2, 4), "n.lora_B.weight": drawn(6, 2)}, r"shape \[6, 4\], its weight of \[6, 5\]"),
        ({"n.lora_A.weight": drawn(3, 5), "n.lora_B.weight": drawn(6, 2)}, "have no rank"),
        ({"n.weight": drawn(6, 5)}, "'n.weight' is no factor"),
    ],
)
def test_what_does_not_fit_is_named(adapter: dict[str, np.ndarray], text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        mlirt.lora_merged({"n.weight": drawn(6, 5)}, adapter)


def test_an_engine_for_each_adapter() -> None:
    w, a, b, x = drawn(6, 5), drawn(2, 5), drawn(6, 2), drawn(3, 5)
    node = helper.make_node("Gemm", ["x", "n.weight"], ["y"], "n", transB=1)
    ends = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", [3, 5]), ("y", [3, 6]))]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [from_array(w, "n.weight")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    engine: Any = mlirt.compile(model, "cpu", refittable=True)
    adapter = {"n.lora_A.weight": a, "n.lora_B.weight": b}
    other = mlirt.refit(engine, mlirt.lora_merged(mlirt.refittable_weights(engine), adapter, 0.25))
    np.testing.assert_allclose(other.run({"x": x})["y"], x @ (w + 0.25 * b @ a).T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(engine.run({"x": x})["y"], x @ w.T, rtol=1e-4, atol=1e-5)
