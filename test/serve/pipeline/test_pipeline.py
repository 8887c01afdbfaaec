"""A network in stages computes what it computes as a whole: names, states, errors, several runs at once."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from staged_decoder import WORDS, empty_states, staged_decoder, states

import mlirt
from mlirt.errors import InvalidInputError, UnavailableError
from mlirt.runtime.engine import Engine
from mlirt.serve.pipeline.pipeline import Pipeline
from mlirt.serve.pipeline.stage import Results


@pytest.fixture(scope="module")
def whole() -> Engine:
    engine = mlirt.compile(staged_decoder(), "cpu")
    assert isinstance(engine, Engine)
    return engine


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("stages")
    engines = mlirt.compile_stages(staged_decoder(), 3, "cpu", state=states())
    paths = [folder / f"{number}.plan" for number in range(len(engines))]
    for engine, path in zip(engines, paths, strict=True):
        assert isinstance(engine, Engine)
        engine.save(path)
    return paths


def ids(seed: int, length: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, WORDS, (1, length))


def written(engine: Engine, lengths: list[int], seed: int = 0) -> list[np.ndarray]:
    """The logits of a sequence of runs of the whole network."""
    past, found = empty_states(), list[np.ndarray]()
    for number, length in enumerate(lengths):
        outputs = engine.run({"ids": ids(seed + number, length), **past})
        past = {name: outputs[made] for name, made in states().items()}
        found.append(outputs["logits"])
    return found


def check(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal but for the rounding of float32, which grows with the largest of the numbers that were summed."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def test_states_stay_in_their_stages(whole: Engine, plans: list[Path]) -> None:
    lengths = [5, 1, 1, 3]
    with Pipeline(plans, state=states()) as pipeline:
        assert pipeline.outputs == ("logits",)
        for number, expected in enumerate(written(whole, lengths)):
            given = empty_states() if number == 0 else {}
            found = pipeline.run({"ids": ids(number, lengths[number]), **given})
            assert list(found) == ["logits"]
            check(found["logits"], expected)


def test_sequences_are_in_the_stages_at_once(whole: Engine, plans: list[Path]) -> None:
    lengths = [4, 1, 2]
    with Pipeline(plans, state=states()) as pipeline:

        def asked(seed: int, number: int) -> Future[Results]:
            given = {} if number else empty_states()
            return pipeline.submit({"ids": ids(10 * seed + number, lengths[number]), **given}, sequence=seed)

        runs = [[asked(seed, number) for number in range(len(lengths))] for seed in range(4)]
        for seed, futures in enumerate(runs):
            for future, expected in zip(futures, written(whole, lengths, 10 * seed), strict=True):
                check(future.result(60)["logits"], expected)


def test_a_sequence_that_is_forgotten_begins_anew(plans: list[Path]) -> None:
    with Pipeline(plans, state=states()) as pipeline:
        first = pipeline.run({"ids": ids(1, 3), **empty_states()}, sequence="a")["logits"]
        pipeline.forget("a")
        with pytest.raises(InvalidInputError, match="input 'past0' is missing: expected float32 of shape"):
            pipeline.run({"ids": ids(1, 3)}, sequence="a")
        again = pipeline.run({"ids": ids(1, 3), **empty_states()}, sequence="a")["logits"]
        np.testing.assert_array_equal(again, first)


def test_a_run_that_fails_in_a_stage_stops_no_other(whole: Engine, plans: list[Path]) -> None:
    with Pipeline(plans, state=states()) as pipeline:
        wrong = empty_states()
        wrong["past3"] = np.zeros((1, 0, 7), np.float32)  # of the second stage
        failed = pipeline.submit({"ids": ids(0, 2), **wrong}, sequence="wrong")
        right = pipeline.submit({"ids": ids(0, 2), **empty_states()}, sequence="right")
        with pytest.raises(InvalidInputError, match="past3"):
            failed.result(60)
        check(right.result(60)["logits"], written(whole, [2])[0])


def test_a_sequence_whose_stages_have_gone_apart_is_refused(whole: Engine, plans: list[Path]) -> None:
    """The first stage has the words of a run that failed in the second one: what follows would be wrong in silence."""
    with Pipeline(plans, state=states()) as pipeline:
        pipeline.run({"ids": ids(0, 2), **empty_states()})
        with pytest.raises(InvalidInputError, match="past3"):
            pipeline.run({"ids": ids(1, 1), "past3": np.zeros((1, 0, 7), np.float32)})
        for _ in range(2):
            with pytest.raises(UnavailableError, match="an earlier run of the sequence None failed"):
                pipeline.run({"ids": ids(1, 1)})
        found = pipeline.run({"ids": ids(0, 2), **empty_states()})["logits"]
        check(found, written(whole, [2])[0])


def test_a_run_that_fails_in_the_first_stage_leaves_its_sequence(whole: Engine, plans: list[Path]) -> None:
    with Pipeline(plans, state=states()) as pipeline:
        pipeline.run({"ids": ids(0, 2), **empty_states()})
        with pytest.raises(InvalidInputError, match="ids"):
            pipeline.run({"ids": ids(1, 1).astype(np.float32)})
        found = pipeline.run({"ids": ids(1, 1)})["logits"]
        check(found, written(whole, [2, 1])[1])


def test_outputs_may_be_named(whole: Engine, plans: list[Path]) -> None:
    feeds = {"ids": ids(0, 2), **empty_states()}
    with Pipeline(plans, outputs=["logits", "present0"]) as pipeline:
        found, expected = pipeline.run(feeds), whole.run(feeds)
    for name in ("logits", "present0"):
        check(found[name], expected[name])


def test_names_that_are_not_there(plans: list[Path]) -> None:
    with pytest.raises(InvalidInputError, match="no output 'nothing'; they have"):
        Pipeline(plans, outputs=["nothing"])
    with pytest.raises(InvalidInputError, match="'nothing': 'present0': no stage has this input"):
        Pipeline(plans, state={"nothing": "present0"})
    with pytest.raises(InvalidInputError, match="give compile_stages the same state"):
        Pipeline(plans, state={"past0": "present5"})
    with Pipeline(plans, state=states()) as pipeline, pytest.raises(InvalidInputError, match="no input 'idz'; it has"):
        pipeline.run({"idz": ids(0, 1)})


def test_after_its_end_nothing_is_taken(plans: list[Path]) -> None:
    pipeline = Pipeline(plans, state=states())
    pipeline.close()
    with pytest.raises(UnavailableError, match="the pipeline is closed"):
        pipeline.run({"ids": ids(0, 1), **empty_states()})
    pipeline.close()
