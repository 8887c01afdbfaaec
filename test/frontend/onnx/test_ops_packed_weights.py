"""Weights of few bits in blocks, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import Array, assert_agrees, imported_text, model_of, numbers, one_node, small_integers

from mlirt.errors import InvalidModelError, UnsupportedError

_MS = "com.microsoft"


def _bytes(*shape: int, seed: int) -> Array:
    return small_integers(*shape, high=256, seed=seed, dtype="uint8")


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("count", "depth", "block"), [(5, 32, 32), (7, 100, 16), (3, 130, 64)])
@pytest.mark.parametrize("zeros", ["none", "packed", "floats"])
def test_a_product_with_packed_weights(bits: int, count: int, depth: int, block: int, zeros: str) -> None:
    if zeros == "floats" and bits != 4:
        pytest.skip("onnxruntime has zero points that are floats for 4 bits alone")
    blocks = -(-depth // block)
    packed, scales = _bytes(count, blocks, block * bits // 8, seed=1), np.abs(numbers(count * blocks, seed=2)) + 0.1
    arrays: list[Array | None] = [numbers(2, 3, depth), packed, scales]
    if zeros == "packed":
        arrays.append(_bytes(count * -(-blocks * bits // 8), seed=3))
    elif zeros == "floats":
        arrays.append(numbers(count * blocks, seed=3) + 8)
    model, feeds = one_node(
        "MatMulNBits", arrays, domain=_MS, constants=[1, 2, 3], N=count, K=depth, bits=bits, block_size=block
    )
    assert_agrees(model, feeds, rtol=1e-4, atol=1e-3)


def test_a_bias_and_a_dynamic_batch() -> None:
    stored = {"w": _bytes(6, 2, 16, seed=1), "s": numbers(12, seed=2), "b": numbers(6, seed=3)}
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s", "", "", "b"], ["y"], domain=_MS, N=6, K=40, bits=4, block_size=32
    )
    model = model_of([node], {"x": ("float32", ("batch", 40))}, ["y"], stored, domains=[_MS])
    for rows in (1, 5):
        assert_agrees(model, {"x": numbers(rows, 40)}, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_rows_of_a_packed_table(bits: int, has_zeros: bool) -> None:
    arrays: list[Array | None] = [
        _bytes(9, 80 * bits // 8, seed=1),
        small_integers(2, 3, high=9),
        numbers(9, 3, seed=2),
    ]
    if has_zeros:
        arrays.append(_bytes(9, -(-3 * bits // 8), seed=3))
    model, feeds = one_node(
        "GatherBlockQuantized", arrays, domain=_MS, constants=[0, 2, 3], bits=bits, block_size=32, quantize_axis=1
    )
    assert_agrees(model, feeds)


def test_what_is_not_known_is_refused() -> None:
    arrays: list[Array | None] = [numbers(2, 32), _bytes(5, 1, 16, seed=1), numbers(5, seed=2)]
    sizes: dict[str, Any] = {"N": 5, "K": 32, "bits": 4}
    ordered, _ = one_node("MatMulNBits", [*arrays, None, np.zeros(32, np.int32)], domain=_MS, block_size=32, **sizes)
    with pytest.raises(UnsupportedError, match="g_idx"):
        imported_text(ordered)
    odd, _ = one_node("MatMulNBits", arrays, domain=_MS, block_size=24, **sizes)
    with pytest.raises(InvalidModelError, match="block_size"):
        imported_text(odd)


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("width", [64, 80])
def test_rows_of_a_table_of_int4(kind: int, has_zeros: bool, width: int) -> None:
    """The table is packed, whatever its elements are called."""
    low = -8 if kind == TensorProto.INT4 else 0
    shapes = {"data": (9, width), "zeros": (9, -(-width // 32))}
    stored = [
        helper.make_tensor(name, kind, shape, small_integers(*shape, low=low, high=low + 16, seed=k).reshape(-1))
        for k, (name, shape) in enumerate(shapes.items())
    ]
    names = ["data", "indices", "scales", "zeros"][: 3 + has_zeros]
    node = helper.make_node(
        "GatherBlockQuantized", names, ["y"], domain=_MS, block_size=32, gather_axis=0, quantize_axis=1
    )
    inputs = {"indices": ("int64", (2, 3)), "scales": ("float32", shapes["zeros"])}
    model = model_of([node], inputs, ["y"], opset=21, domains=[_MS])
    model.graph.initializer.extend(stored[: 1 + has_zeros])
    feeds = {"indices": small_integers(2, 3, high=9), "scales": numbers(*shapes["zeros"])}
    assert_agrees(model, feeds)
    assert f"tensor<9x{16 * -(-width // 32)}xui8>" in imported_text(model)
