"""Queries become batches, and rows of outputs the answers of their samples."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from mlperf.driver import GatheredByLength, GatheredQueries, QueriesByLength, Rows, WholeQueries, answers, rows_to_take
from mlperf.samples import SampleLibrary
from mlperf_doubling import FAILING, Doubling, sample


class Answered:
    """What was answered, by the ids of the samples."""

    def __init__(self, count: int) -> None:
        self.found: dict[int, list[float]] = {}
        self.twice: list[int] = []
        self._count, self._lock = count, threading.Lock()
        self._all = threading.Event()

    def __call__(self, ids: Sequence[int], rows: Rows) -> None:
        with self._lock:
            for number, row in zip(ids, rows, strict=True):
                self.twice += [number] if number in self.found else []
                self.found[number] = row.view(np.float32).tolist()
            if len(self.found) == self._count:
                self._all.set()

    def wait(self) -> dict[int, list[float]]:
        assert self._all.wait(10)
        assert not self.twice
        return self.found


def library(system: Doubling, count: int) -> SampleLibrary:
    found = SampleLibrary(sample, count, system.host_array)
    found.load(range(count))
    return found


class DoublingLengths(Doubling):
    """A system that also keeps the shapes of its batches."""

    def __init__(self) -> None:
        super().__init__(1)
        self.shapes: list[tuple[int, ...]] = []

    def run(self, feeds: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        self.shapes.append(feeds["x"].shape)
        return {"y": 2 * feeds["x"]}


def test_samples_of_one_batch_have_lengths_alike() -> None:
    lengths = [5, 40, 17, 33, 8, 50]
    system, answered = DoublingLengths(), Answered(6)
    samples = SampleLibrary(lambda k: {"x": np.full(lengths[k], k + 1, np.float32)}, 6, system.host_array)
    samples.load(range(6))
    driver = QueriesByLength(samples, system, answered, 4, 50)
    driver.issue(range(100, 106), range(6))
    assert answered.wait() == {100 + k: [2.0 * (k + 1)] * length for k, length in enumerate(lengths)}
    driver.close()
    assert system.shapes == [(4, 50), (4, 16)]


def test_a_system_that_joins_arrays_gets_samples_as_they_lie() -> None:
    system, answered = Doubling(), Answered(6)
    system.joins_arrays = True
    samples = library(system, 6)
    driver = WholeQueries(samples, system, answered, 4, is_fixed=True)
    driver.issue(range(6), range(6))
    assert answered.wait() == {k: [2.0 * k] * 3 for k in range(6)}
    driver.close()
    assert system.sizes == [4, 4]


@pytest.mark.parametrize(("is_fixed", "sizes"), [(True, [4, 4, 4]), (False, [2, 4, 4])])
@pytest.mark.parametrize("runs_at_once", [1, 3])
def test_a_query_is_cut_into_batches(is_fixed: bool, sizes: list[int], runs_at_once: int) -> None:
    system, answered = Doubling(runs_at_once), Answered(10)
    driver = WholeQueries(library(system, 5), system, answered, 4, is_fixed)
    indices = [3, 1, 4, 1, 0, 2, 2, 4, 3, 0]
    driver.issue(range(100, 110), indices)
    assert answered.wait() == {100 + k: [2.0 * index] * 3 for k, index in enumerate(indices)}
    driver.close()
    assert sorted(system.sizes) == sizes


def test_a_small_query_is_run_by_who_asks() -> None:
    system, answered = Doubling(), Answered(1)
    driver = WholeQueries(library(system, 3), system, answered, 1, True)
    driver.issue([7], [2])
    assert answered.found == {7: [4.0] * 3}
    driver.close()


@pytest.mark.parametrize("runs_at_once", [1, 2])
def test_queries_are_gathered_into_batches(runs_at_once: int) -> None:
    system, answered = Doubling(runs_at_once), Answered(64)
    driver = GatheredQueries(library(system, 8), system, answered, range(1, 9), 0.05)
    for number in range(64):
        driver.issue([number], [number % 8])
    assert answered.wait() == {number: [2.0 * (number % 8)] * 3 for number in range(64)}
    driver.close()
    assert sum(system.sizes) == 64
    assert max(system.sizes) <= 8
    assert len(system.sizes) < 64


def test_gathered_samples_have_lengths_of_few_steps() -> None:
    lengths = [5, 60, 70, 33]
    system, answered = DoublingLengths(), Answered(4)
    samples = SampleLibrary(lambda k: {"x": np.full(lengths[k], k + 1, np.float32)}, 4, system.host_array)
    samples.load(range(4))
    driver = GatheredByLength(samples, system, answered, [1, 4], 0.05, 200)
    for number in range(4):
        driver.issue([number], [number])
    driver.close()
    assert answered.found == {k: [2.0 * (k + 1)] * lengths[k] for k in range(4)}
    assert sorted(system.shapes) == [(1, 128), (4, 64)]


def test_a_batch_waits_no_longer_than_the_delay() -> None:
    system, answered = Doubling(), Answered(1)
    driver = GatheredQueries(library(system, 1), system, answered, range(1, 9), 0.01)
    driver.issue([5], [0])
    assert answered.wait() == {5: [0.0] * 3}
    driver.close()


@pytest.mark.parametrize("gathers", [False, True])
def test_a_batch_that_fails_is_answered_with_nothing_and_told(gathers: bool) -> None:
    system, answered = Doubling(failing=2.0), Answered(3)
    samples = library(system, 3)
    driver = (
        GatheredQueries(samples, system, answered, [1], 0.0)
        if gathers
        else WholeQueries(samples, system, answered, 1, True)
    )
    for number in range(3):
        driver.issue([number], [number])
    assert answered.wait() == {0: [0.0] * 3, 1: [2.0] * 3, 2: []}
    driver.close()
    assert str(driver.failure) == "2 is refused"
    assert FAILING != 2.0


def test_outputs_lie_one_behind_the_other() -> None:
    outputs = {"a": np.arange(4, dtype=np.int16).reshape(2, 2), "b": np.array([[1.5], [2.5]], np.float32)}
    rows = answers(outputs, 2)
    assert [row.tobytes() for row in rows] == [
        np.array([0, 1], np.int16).tobytes() + np.float32(1.5).tobytes(),
        np.array([2, 3], np.int16).tobytes() + np.float32(2.5).tobytes(),
    ]
    assert len(answers(outputs, 1)) == 1


@pytest.mark.parametrize(
    ("waiting", "taken"), [(1, 1), (2, 2), (3, 3), (5, 4), (6, 6), (9, 8), (11, 8), (12, 12), (16, 16), (40, 16)]
)
def test_a_batch_takes_what_fits_with_little_padding(waiting: int, taken: int) -> None:
    assert rows_to_take(waiting, [1, 2, 4, 8, 16]) == taken


def test_fewer_queries_than_the_least_batch_are_padded() -> None:
    assert rows_to_take(3, [8, 16]) == 3


def test_what_a_batch_leaves_is_run_next() -> None:
    system, answered = Doubling(), Answered(9)
    driver = GatheredQueries(library(system, 3), system, answered, [1, 2, 4, 8, 16], 0.05)
    driver.issue(range(9), [k % 3 for k in range(9)])
    driver.close()
    assert answered.found == {k: [2.0 * (k % 3)] * 3 for k in range(9)}
    assert system.sizes == [8, 1]
