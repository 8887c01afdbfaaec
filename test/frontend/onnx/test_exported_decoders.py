"""A whole decoder as onnxruntime's model builder writes it: prefill and decoding, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from decoder_network import Sizes, decoder
from onnx_models import Array, run_reference, small_integers
from onnxruntime_session import cpu_session

import mlirt
from mlirt.dialects.context import RtContext
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import pipeline_for
from mlirt.passes.pipeline import run_passes


def _feeds(sizes: Sizes, words: Array, mask: Array, past: list[Array]) -> dict[str, Array]:
    names = [f"past_key_values.{layer}.{part}" for layer in range(sizes.layers) for part in ("key", "value")]
    return {"input_ids": words, "attention_mask": mask, **dict(zip(names, past, strict=True))}


def _empty(sizes: Sizes, batch: int) -> list[Array]:
    return [np.zeros((batch, sizes.key_heads, 0, sizes.head_width), np.float32)] * (2 * sizes.layers)


@pytest.mark.parametrize("bits", [32, 4, 8])
def test_prefill_and_decoding_on_the_cpu(bits: int) -> None:
    """Two samples of one engine and one, at lengths that grow; each side goes on with its own cache."""
    sizes = Sizes(bits=bits)
    model = decoder(sizes)
    engine, session = mlirt.compile(model, target="cpu"), cpu_session(model)
    for batch, words in ((2, 7), (1, 1)):
        fresh = small_integers(batch, words, high=sizes.vocabulary)
        caches: list[list[Array]] = [_empty(sizes, batch), _empty(sizes, batch)]
        for step in range(4):
            mask = np.ones((batch, words + step), np.int64)
            wanted: list[Any] = session.run(None, _feeds(sizes, fresh, mask, caches[0]))
            got = list(engine.run(_feeds(sizes, fresh, mask, caches[1])).values())
            for mine, theirs in zip(got, wanted, strict=True):
                assert mine.shape == theirs.shape
                np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=2e-5)
            caches = [list(wanted[1:]), got[1:]]
            fresh = np.argmax(wanted[0][:, -1:], -1)


def test_the_reference_and_samples_of_two_lengths() -> None:
    """The second sample has two words less, filled up at its end; the words that are there agree."""
    sizes = Sizes()
    model = decoder(sizes)
    mask = (np.arange(6)[None] < [[6], [4]]).astype(np.int64)
    feeds = _feeds(sizes, small_integers(2, 6, high=sizes.vocabulary), mask, _empty(sizes, 2))
    wanted: list[Any] = cpu_session(model).run(None, feeds)
    got = run_reference(model, feeds)
    for sample, count in enumerate((6, 4)):
        np.testing.assert_allclose(got[0][sample, :count], wanted[0][sample, :count], rtol=1e-4, atol=2e-5)


def test_every_layer_has_a_kernel_for_a_gpu() -> None:
    """All passes for a GPU, without one and without machine code."""
    context = RtContext()
    module = import_model(decoder(Sizes(layers=1, bits=4)), context)
    for _, specs in pipeline_for("cuda"):
        run_passes(module, context, ",".join(specs))
    assert any(isinstance(op, LaunchOp) for op in module.walk())


def test_queries_meet_the_words_in_use_alone_and_caches_are_not_transposed() -> None:
    """However long a cache is; it keeps its layout [batch, heads, words, width] from input to output."""
    sizes = Sizes(layers=1)
    ops = list(import_model(decoder(sizes), RtContext()).walk())
    products = [op for op in ops if op.name == "trt.matrix_multiply" and '"total"' in str(op.operands[1].type)]
    assert len(products) == 2
    assert all('["batch", "2", "1", "total", "32"]' in str(op.operands[1].type) for op in products)
    transposed = [op for op in ops if op.name == "trt.shuffle" and "max" in str(op.operands[0].type)]
    assert transposed == []


@pytest.mark.parametrize("capacity", [7, 40])
def test_what_stands_behind_the_words_in_use_changes_nothing(capacity: int) -> None:
    sizes = Sizes(layers=1)
    engine = mlirt.compile(decoder(sizes), target="cpu")
    rng, shape = np.random.default_rng(0), (1, sizes.key_heads, capacity, sizes.head_width)
    caches = [rng.standard_normal(shape, np.float32) for _ in range(2)]
    feeds = _feeds(sizes, np.array([[3]]), np.ones((1, 6), np.int64), caches)
    found = engine.run(feeds)
    for cache in caches:
        cache[:, :, 6:] = np.nan
    np.testing.assert_array_equal(engine.run(feeds)["logits"], found["logits"])
    for part, cache in zip(("key", "value"), caches, strict=True):
        present = found[f"present.0.{part}"]
        assert present.shape == shape
        np.testing.assert_array_equal(present[:, :, :5], cache[:, :, :5])
