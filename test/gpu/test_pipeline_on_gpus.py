"""A decoder in two stages on two GPUs, whose tensors pass on through NCCL: the answers of the CPU, and both at once."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from staged_decoder import WORDS, empty_states, staged_decoder, states

import mlirt
from mlirt.errors import InvalidInputError
from mlirt.runtime.engine import Engine
from mlirt.runtime.visible_devices import visible_devices
from mlirt.serve.pipeline.pipeline import Pipeline

pytestmark = pytest.mark.gpu
LAYERS, WIDTH = 8, 256


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    if len(visible_devices()) < 2:
        pytest.skip("needs two CUDA devices, and this machine has one")
    folder = tmp_path_factory.mktemp("stages")
    engines = mlirt.compile_stages(staged_decoder(LAYERS, WIDTH), 2, "cuda", state=states(LAYERS))
    paths = [folder / f"{number}.plan" for number in range(2)]
    for engine, path in zip(engines, paths, strict=True):
        assert isinstance(engine, Engine)
        engine.save(path)
    return paths


def ids(seed: int, length: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, WORDS, (1, length))


def test_a_decoder_writes_what_it_writes_on_the_cpu(plans: list[Path]) -> None:
    whole = mlirt.compile(staged_decoder(LAYERS, WIDTH), "cpu")
    past = empty_states(LAYERS, WIDTH)
    with Pipeline(plans, state=states(LAYERS)) as pipeline:
        for number, length in enumerate([7, 1, 1, 40, 1]):
            expected = whole.run({"ids": ids(number, length), **past})
            past = {name: expected[made] for name, made in states(LAYERS).items()}
            given = {} if number else empty_states(LAYERS, WIDTH)
            found = pipeline.run({"ids": ids(number, length), **given})["logits"]
            np.testing.assert_allclose(found, expected["logits"], rtol=1e-3, atol=1e-3)


def test_sequences_share_the_gpus_and_errors_stop_none(plans: list[Path]) -> None:
    first = {"ids": ids(1, 600), **empty_states(LAYERS, WIDTH)}
    with Pipeline(plans, state=states(LAYERS)) as pipeline:
        alone = pipeline.run(first, sequence=0)["logits"]
        wrong = pipeline.submit({**first, "past7": np.zeros((1, 0, 3), np.float32)}, sequence="wrong")
        futures = [pipeline.submit(first, sequence=number) for number in range(1, 9)]
        with pytest.raises(InvalidInputError, match="past7"):
            wrong.result(60)
        for future in futures:
            np.testing.assert_array_equal(future.result(60)["logits"], alone)
        begun = time.perf_counter()
        for number in range(20):
            pipeline.run(first, sequence=("one", number))
        in_turn = time.perf_counter() - begun
        begun = time.perf_counter()
        for future in [pipeline.submit(first, sequence=("many", number)) for number in range(20)]:
            future.result(60)
        print(f"20 runs one by one {in_turn * 1e3:.1f} ms, at once {(time.perf_counter() - begun) * 1e3:.1f} ms")
