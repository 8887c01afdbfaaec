"""Let a decoder write: prefill, then word after word, for a batch of prompts; prints what it wrote and how fast.

The decoder is an ONNX model or a plan with the inputs and outputs of onnxruntime's model builder (`input_ids`,
`attention_mask`, perhaps `position_ids`, `past_key_values.*` and `present.*`, `logits`); without one,
`decoder_network.py` makes a small one of random weights. Prompts are numbers of words, as a tokenizer gives them:

    python examples/generate.py [model.onnx] [--prompt 5,17,3 --prompt 8,1] [--tokens 32] [--capacity 256]
        [--temperature 0.8 --top-k 40 --seed 1] [--bits 4] [--target cpu] [--precision fp32]

With `--capacity` the cache is as long as that from the first word on, so that no buffer changes its shape; otherwise it
grows by a word with each step. This needs a decoder whose cache may be longer than what it holds (GroupQueryAttention).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from decoder_network import Sizes, decoder

import mlirt
from mlirt.errors import MlirtError

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

_PAST, _PRESENT = "past_key_values.", "present."


class Engine(Protocol):
    """What generation needs of an engine."""

    @property
    def inputs(self) -> Sequence[Any]: ...

    @property
    def outputs(self) -> Sequence[Any]: ...

    def run(self, feeds: Any) -> dict[str, Array]: ...


@dataclass(frozen=True)
class Sampler:
    """Which word follows: the likeliest with a temperature of 0, else one drawn from the `top_k` likeliest (0: all)."""

    temperature: float = 0.0
    top_k: int = 0
    random: np.random.Generator = field(default_factory=np.random.default_rng)

    def choose(self, logits: Array) -> Array:
        """One word for each row of `[batch, vocabulary]`."""
        if self.temperature == 0:
            return logits.argmax(-1)
        scores = logits.astype(np.float64) / self.temperature
        if 0 < self.top_k < scores.shape[-1]:
            least = np.partition(scores, -self.top_k, axis=-1)[:, -self.top_k, None]
            scores = np.where(scores < least, -np.inf, scores)
        # The largest of logits with Gumbel noise is a draw from their softmax.
        return (scores + self.random.gumbel(size=scores.shape)).argmax(-1)


@dataclass(frozen=True)
class Written:
    """The new words of each prompt, and seconds: for the prompts, and for all steps after them."""

    words: list[list[int]]
    prefill_seconds: float
    decoding_seconds: float
    steps: int

    def tokens_per_second(self) -> float:
        """Words a second after the first one, of all prompts together."""
        return self.steps * len(self.words) / max(self.decoding_seconds, 1e-9)


class Decoder:
    """A decoder with the caches of one batch of prompts. `capacity` is how long a cache is, None for a growing one."""

    def __init__(self, engine: Engine, capacity: int | None = None) -> None:
        self.engine, self.capacity = engine, capacity
        self._caches = {one.name: one for one in engine.inputs if one.name.startswith(_PAST)}
        self._has_positions = any(one.name == "position_ids" for one in engine.inputs)
        missing = {"input_ids", "attention_mask"} - {one.name for one in engine.inputs}
        if missing or not self._caches or "logits" not in {one.name for one in engine.outputs}:
            found = ", ".join(one.name for one in (*engine.inputs, *engine.outputs))
            raise SystemExit(f"expected a decoder with input_ids, attention_mask, {_PAST}* and logits, found {found}")
        self._past: dict[str, Array] = {}
        self.lengths: Array = np.zeros(0, np.int64)

    def start(self, prompts: Sequence[Sequence[int]]) -> Array:
        """The logits `[batch, vocabulary]` behind each prompt. Shorter ones are filled up at their ends."""
        self.lengths = np.array([len(prompt) for prompt in prompts], np.int64)
        longest = int(self.lengths.max())
        self._check_room(longest)
        words = np.zeros((len(prompts), longest), np.int64)
        for row, prompt in zip(words, prompts, strict=True):
            row[: len(prompt)] = prompt
        self._past = {name: self._empty(one, len(prompts)) for name, one in self._caches.items()}
        positions = np.broadcast_to(np.arange(longest), words.shape)
        logits = self._run(words, positions)
        return logits[np.arange(len(prompts)), self.lengths - 1]

    def step(self, words: Array) -> Array:
        """The logits behind one more word of each prompt."""
        self.lengths = self.lengths + 1
        self._check_room(int(self.lengths.max()))
        return self._run(words[:, None].astype(np.int64), self.lengths[:, None] - 1)[:, 0]

    def _check_room(self, length: int) -> None:
        if self.capacity is not None and length > self.capacity:
            raise SystemExit(f"a cache of {self.capacity} words does not hold {length}; give a larger --capacity")

    def _empty(self, cache: Any, batch: int) -> Array:
        _, heads, _, width = cache.shape
        return np.zeros((batch, int(str(heads)), self.capacity or 0, int(str(width))), cache.dtype)

    def _run(self, words: Array, positions: Array) -> Array:
        total = int(self.lengths.max())
        mask = (np.arange(total) < self.lengths[:, None]).astype(np.int64)
        feeds = {"input_ids": words, "attention_mask": mask, **self._past}
        if self._has_positions:
            feeds["position_ids"] = np.ascontiguousarray(positions)
        found = self.engine.run(feeds)
        self._past = {name: found[_PRESENT + name.removeprefix(_PAST)] for name in self._past}
        return found["logits"]


def generate(model: Decoder, prompts: Sequence[Sequence[int]], tokens: int, sampler: Sampler) -> Written:
    """So many new words for each prompt."""
    started = time.perf_counter()
    words = sampler.choose(model.start(prompts))
    prefilled = time.perf_counter()
    written = [words]
    for _ in range(tokens - 1):
        words = sampler.choose(model.step(words))
        written.append(words)
    done = time.perf_counter()
    rows = np.stack(written, axis=1).tolist()
    return Written(rows, prefilled - started, done - prefilled, tokens - 1)


def _engine(given: argparse.Namespace) -> Engine:
    if given.model and Path(given.model).suffix == ".plan":
        return mlirt.load(given.model)
    model = given.model or decoder(Sizes(bits=given.bits))
    return mlirt.compile(model, target=given.target, precision=given.precision)


def prompt_of(text: str) -> list[int]:
    """A prompt of a command line."""
    return [int(word) for word in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", help="an ONNX model, or a plan (.plan)")
    parser.add_argument(
        "--prompt", action="append", type=prompt_of, help="numbers of words, separated by commas; one flag a prompt"
    )
    parser.add_argument("--tokens", type=int, default=32, help="new words for each prompt")
    parser.add_argument("--capacity", type=int, help="words that the cache holds; without it the cache grows")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 takes the likeliest word")
    parser.add_argument("--top-k", type=int, default=0, help="draw from so many words; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bits", type=int, choices=(4, 8, 32), default=4, help="of the weights that are made")
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", default="fp32")
    given = parser.parse_args()
    if given.tokens < 1 or given.temperature < 0:
        parser.error("--tokens is at least 1, and --temperature not below 0")
    prompts = given.prompt or [[1, 2, 3]]
    sampler = Sampler(given.temperature, given.top_k, np.random.default_rng(given.seed))
    model = Decoder(_engine(given), given.capacity)
    generate(model, prompts, min(given.tokens, 2), sampler)  # prepares for the shapes of both phases
    sampler = Sampler(given.temperature, given.top_k, np.random.default_rng(given.seed))
    written = generate(model, prompts, given.tokens, sampler)
    for prompt, words in zip(prompts, written.words, strict=True):
        print(f"{','.join(map(str, prompt))} -> {','.join(map(str, words))}")
    count = sum(len(prompt) for prompt in prompts)
    print(f"prefill: {count} words in {written.prefill_seconds * 1e3:.1f} ms")
    print(f"decoding: {written.tokens_per_second():.1f} tokens/s ({len(prompts)} at a time)")


if __name__ == "__main__":
    try:
        main()
    except MlirtError as error:
        raise SystemExit(str(error)) from None
