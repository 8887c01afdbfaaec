"""Layers of transformers as onnxruntime's optimisers write them, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import assert_agrees, check_node, imported_text, numbers, one_node, small_integers

from mlirt.errors import UnsupportedError

_MS = "com.microsoft"


def test_norms_without_a_mean() -> None:
    check_node("SimplifiedLayerNormalization", [numbers(2, 3, 8), numbers(8)], epsilon=1e-3, axis=-1)
    for bias in ([], [numbers(8, seed=3)]):
        arrays = [numbers(2, 3, 8), numbers(2, 3, 8, seed=1), numbers(8, seed=2), *bias]
        check_node("SkipSimplifiedLayerNormalization", arrays, domain=_MS, epsilon=1e-3)


@pytest.mark.parametrize("has_mask", [False, True])
def test_embeddings(has_mask: bool) -> None:
    words, segments = small_integers(2, 5, dtype="int32"), small_integers(2, 5, high=2, dtype="int32")
    tables = [numbers(10, 8), numbers(6, 8, seed=1), numbers(2, 8, seed=2), numbers(8, seed=3), numbers(8, seed=4)]
    mask = [(np.arange(5)[None] < [[5], [3]]).astype(np.int32)] if has_mask else []
    check_node("EmbedLayerNormalization", [words, segments, *tables, *mask], domain=_MS, outputs=2)
    places = small_integers(2, 5, high=6, dtype="int32")
    given = [words, None, *tables[:2], None, *tables[3:], *(mask or [None]), places]
    check_node("EmbedLayerNormalization", given, domain=_MS, outputs=2)


_MASKS: list[Any] = [None, np.array([4, 2], np.int32), (np.arange(4)[None] < [[4], [3]]).astype(np.int32)]
_MASKS.append(np.tril(np.ones((2, 4, 4), np.int32)))


@pytest.mark.parametrize("mask", _MASKS)
@pytest.mark.parametrize("attributes", [{}, {"unidirectional": 1, "scale": 0.3}])
def test_attention(mask: Any, attributes: dict[str, Any]) -> None:
    arrays = [numbers(2, 4, 8), numbers(8, 24, seed=1), numbers(24, seed=2), mask]
    model, feeds = one_node("Attention", arrays, domain=_MS, constants=[1, 2], num_heads=2, **attributes)
    assert_agrees(model, feeds, rtol=1e-3)


def test_attention_with_a_bias_of_the_scores_and_values_of_another_width() -> None:
    arrays = [numbers(2, 4, 8), numbers(8, 20, seed=1), numbers(20, seed=2), None, None, numbers(2, 2, 4, 4, seed=3)]
    model, feeds = one_node("Attention", arrays, domain=_MS, constants=[1, 2], num_heads=2, qkv_hidden_sizes=[8, 8, 4])
    assert_agrees(model, feeds, rtol=1e-3)


@pytest.mark.parametrize("mask", [None, (np.arange(7)[None] < [[7], [5]]).astype(np.int32)])
def test_attention_to_earlier_runs(mask: Any) -> None:
    arrays = [numbers(2, 4, 8), numbers(8, 24, seed=1), numbers(24, seed=2), mask, numbers(2, 2, 2, 3, 4, seed=3)]
    model, feeds = one_node("Attention", arrays, domain=_MS, constants=[1, 2], outputs=2, num_heads=2, unidirectional=1)
    assert_agrees(model, feeds, rtol=1e-3)


def test_attention_with_rotary_positions_is_refused() -> None:
    arrays = [numbers(2, 4, 8), numbers(8, 24), numbers(24)]
    model, _ = one_node("Attention", arrays, domain=_MS, num_heads=2, do_rotary=1)
    with pytest.raises(UnsupportedError, match="rotary positions"):
        imported_text(model)
