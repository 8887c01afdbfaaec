"""examples/generate.py writes what onnxruntime would, however its cache grows and whoever is in the batch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoder_network import Sizes, decoder
from generate import Decoder, Sampler, generate
from onnxruntime_session import cpu_session

import mlirt

_SIZES = Sizes(bits=4)
_PROMPTS = [[1, 2, 3, 4, 5], [7, 9], [11]]
_EXAMPLE = Path(__file__).parents[2] / "examples" / "generate.py"


def _by_onnxruntime(model: Any, prompt: Sequence[int], tokens: int) -> list[int]:
    """The likeliest words, one prompt at a time, with a cache that grows."""
    session = cpu_session(model)
    names = [f"past_key_values.{layer}.{part}" for layer in range(_SIZES.layers) for part in ("key", "value")]
    past = [np.zeros((1, _SIZES.key_heads, 0, _SIZES.head_width), np.float32)] * len(names)
    fresh, written, length = np.array([prompt]), list[int](), len(prompt)
    for _ in range(tokens):
        feeds = {"input_ids": fresh, "attention_mask": np.ones((1, length), np.int64)}
        logits, *past = session.run(None, feeds | dict(zip(names, past, strict=True)))
        written.append(int(logits[0, -1].argmax()))
        fresh, length = np.array([written[-1:]]), length + 1
    return written


@pytest.fixture(scope="module")
def model() -> Any:
    return decoder(_SIZES)


@pytest.fixture(scope="module")
def engine(model: Any) -> Any:
    return mlirt.compile(model, target="cpu")


@pytest.mark.parametrize("capacity", [None, 20])
def test_a_batch_of_prompts_is_written_as_each_alone(model: Any, engine: Any, capacity: int | None) -> None:
    written = generate(Decoder(engine, capacity), _PROMPTS, 9, Sampler())
    assert written.words == [_by_onnxruntime(model, prompt, 9) for prompt in _PROMPTS]
    assert written.steps == 8
    assert written.tokens_per_second() > 0


def test_drawn_words(engine: Any) -> None:
    """The likeliest of one word is no draw; a seed gives the same words again, another one others."""
    likeliest = generate(Decoder(engine), _PROMPTS, 6, Sampler()).words
    assert generate(Decoder(engine), _PROMPTS, 6, Sampler(0.7, top_k=1)).words == likeliest
    drawn = [
        generate(Decoder(engine), _PROMPTS, 6, Sampler(2.0, 50, np.random.default_rng(k))).words for k in (3, 3, 4)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_words_are_drawn_as_often_as_they_are_likely() -> None:
    logits = np.log(np.array([[0.5, 0.3, 0.15, 0.05]]))
    for top_k, expected in ((0, [0.5, 0.3, 0.15, 0.05]), (2, [0.625, 0.375, 0, 0])):
        words = Sampler(1.0, top_k, np.random.default_rng(0)).choose(np.repeat(logits, 20000, 0))
        np.testing.assert_allclose(np.bincount(words, minlength=4) / 20000, expected, atol=0.02)


def test_a_full_cache_is_said(engine: Any) -> None:
    with pytest.raises(SystemExit, match="a cache of 6 words does not hold 7"):
        generate(Decoder(engine, 6), [[1, 2, 3]], 9, Sampler())


def test_the_command_line(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "decoder.onnx"
    path.write_bytes(model.SerializeToString())
    command = [sys.executable, str(_EXAMPLE), str(path), "--prompt=1,2,3", "--prompt=4", "--tokens=3", "--capacity=8"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line.partition(" -> ")[0] for line in lines[:2]] == ["1,2,3", "4"]
    assert lines[0].partition(" -> ")[2] == ",".join(map(str, _by_onnxruntime(model, [1, 2, 3], 3)))
    assert lines[2].startswith("prefill: 4 words in ")
    assert lines[3].startswith("decoding: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.onnx"], "missing.onnx: expected a readable ONNX model"),
        (["--prompt", "1,two"], "argument --prompt: invalid prompt_of value: '1,two'"),
        (["--tokens", "0"], "--tokens is at least 1"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: Sequence[str], message: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(_EXAMPLE), *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0
    assert message in done.stderr.splitlines()[-1]
