"""Rotary positions and attention with caches, as onnxruntime's model builders write them, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import Array, assert_agrees, imported_text, numbers, one_node, run_onnxruntime, run_reference

from mlirt.errors import UnsupportedError

_MS = "com.microsoft"
_WIDE = np.cos(numbers(24, 8, seed=8)), np.sin(numbers(24, 8, seed=8))
_COS, _SIN = np.cos(numbers(24, 4, seed=8)), np.sin(numbers(24, 4, seed=8))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", [np.array([3], np.int64), np.array([[0, 1, 2], [7, 8, 9]])])
@pytest.mark.parametrize("shape", [(2, 3, 16), (2, 2, 3, 8)])
def test_rotary_positions(interleaved: int, positions: Array, shape: tuple[int, ...]) -> None:
    model, feeds = one_node(
        "RotaryEmbedding", [numbers(*shape), positions, _COS, _SIN], domain=_MS, interleaved=interleaved
    )
    assert_agrees(model, feeds)


def test_heads_that_turn_in_part() -> None:
    arrays = [numbers(2, 3, 24), np.array([3], np.int64), _COS, _SIN]
    model, feeds = one_node("RotaryEmbedding", arrays, domain=_MS, num_heads=2, rotary_embedding_dim=8)
    assert_agrees(model, feeds)


def _grouped(
    steps: int,
    past: int,
    capacity: int,
    *,
    packed: bool = False,
    extra: tuple[Array | None, ...] = (),
    **attributes: Any,
) -> tuple[Any, dict[str, Array]]:
    """4 heads of 16 over 2 of keys, for two samples of which the second has a word less in its cache.

    One sample where several words meet a cache: onnxruntime has no more.
    """
    batch = 1 if past and steps > 1 else 2
    widths = (64, 32, 32)
    parts = [numbers(batch, steps, width, seed=k) for k, width in enumerate(widths)]
    query: list[Array | None] = [np.concatenate(parts, 2), None, None] if packed else [*parts]
    caches = [numbers(batch, 2, capacity, 16, seed=k + 4) for k in range(2)]
    last = np.array([past + steps - 1, past + steps - 1 - bool(past)], np.int32)[:batch]
    total = np.array([past + steps], np.int32)
    arrays = [*query, *caches, last, total, _WIDE[0], _WIDE[1], *extra]
    return one_node(
        "GroupQueryAttention",
        arrays,
        domain=_MS,
        constants=[7, 8],
        outputs=3,
        num_heads=4,
        kv_num_heads=2,
        **attributes,
    )


def _assert_valid_parts_agree(model: Any, feeds: dict[str, Array], past: int, steps: int) -> None:
    got, want = run_reference(model, feeds), run_onnxruntime(model, feeds)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-3, atol=1e-5)
    for mine, theirs in zip(got[1:], want[1:], strict=True):
        assert mine.shape == theirs.shape
        for sample in range(len(mine)):
            end = past + steps - (sample if past else 0)
            np.testing.assert_allclose(mine[sample, :, :end], theirs[sample, :, :end], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("steps", "past", "capacity"), [(5, 0, 0), (1, 6, 6), (1, 6, 16), (3, 5, 5), (5, 0, 16)])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"do_rotary": 1},
        {"do_rotary": 1, "rotary_interleaved": 1, "scale": 0.3},
        {"local_window_size": 3, "do_rotary": 1},
        {"softcap": 2.0},
        {"smooth_softmax": 1},
    ],
)
def test_grouped_queries(steps: int, past: int, capacity: int, packed: bool, attributes: dict[str, Any]) -> None:
    model, feeds = _grouped(steps, past, capacity, packed=packed, **attributes)
    _assert_valid_parts_agree(model, feeds, past, steps)


def test_sinks_and_biases_of_the_scores() -> None:
    bias = numbers(1, 4, 3, 8, seed=20)
    model, feeds = _grouped(3, 5, 5, extra=(None, bias, numbers(4, seed=21)))
    _assert_valid_parts_agree(model, feeds, 5, 3)


def test_a_quantised_cache_is_refused() -> None:
    model, _ = _grouped(1, 6, 6, k_quant_type="PER_TENSOR")
    with pytest.raises(UnsupportedError, match="quantised cache"):
        imported_text(model)


def _heads(length: int, seed: int) -> Array:
    return numbers(2, length, 16, seed=seed)


_PADDING = (np.arange(4)[None] < [[4], [3]]).astype(np.int32)


@pytest.mark.parametrize(
    ("arrays", "attributes"),
    [
        ([_heads(3, 0), _heads(4, 1), _heads(4, 2), numbers(48, seed=3)], {}),
        ([_heads(4, 0), _heads(4, 1), _heads(4, 2)], {"unidirectional": 1, "scale": 0.2}),
        ([_heads(3, 0), _heads(4, 1), _heads(4, 2), None, _PADDING], {}),
        ([_heads(3, 0), _heads(4, 1), _heads(4, 2), None, None, numbers(1, 2, 3, 4, seed=4)], {}),
        ([_heads(3, 0), numbers(2, 2, 4, 8, seed=1), numbers(2, 2, 4, 8, seed=2)], {}),
    ],
)
def test_heads_that_were_projected_before(arrays: list[Array | None], attributes: dict[str, Any]) -> None:
    model, feeds = one_node("MultiHeadAttention", arrays, domain=_MS, num_heads=2, **attributes)
    assert_agrees(model, feeds, rtol=1e-3)


@pytest.mark.parametrize("attributes", [{}, {"unidirectional": 1}])
def test_heads_with_keys_and_values_of_earlier_runs(attributes: dict[str, Any]) -> None:
    past = [numbers(2, 2, 5, 8, seed=k) for k in (6, 7)]
    arrays = [_heads(3, 0), _heads(3, 1), _heads(3, 2), None, None, None, *past]
    model, feeds = one_node("MultiHeadAttention", arrays, domain=_MS, outputs=3, num_heads=2, **attributes)
    assert_agrees(model, feeds, rtol=1e-3)


def test_heads_in_one_tensor_and_in_two() -> None:
    """onnxruntime has these forms on GPUs alone: they give what three tensors give."""
    query, key, value = (numbers(2, 4, 2, 8, seed=k) for k in range(3))
    apart, feeds = one_node(
        "MultiHeadAttention", [x.reshape(2, 4, 16) for x in (query, key, value)], domain=_MS, num_heads=2
    )
    (wanted,) = run_onnxruntime(apart, feeds)
    for given in ([np.stack([query, key, value], 3)], [query.reshape(2, 4, 16), np.stack([key, value], 3)]):
        model, packed = one_node("MultiHeadAttention", given, domain=_MS, num_heads=2)
        np.testing.assert_allclose(run_reference(model, packed)[0], wanted, rtol=1e-4, atol=1e-5)
