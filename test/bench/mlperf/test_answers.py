"""What is expected of answers: right in float32, and in int8 nearly as close as onnxruntime is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mlperf.answers import BOUNDS, Check, Expected, checked, expected_answers
from mlperf.closeness import of_numbers
from mlperf.workloads import WORKLOADS
from mlperf_doubling import DOUBLING

RIGHT = {
    0: Expected({"y": np.array([1, 2], np.float32)}, 1e-3),
    1: Expected({"y": np.array([3, 4], np.float32)}, 0.5),
}
Answers = list[tuple[int, list[float]]]
ZERO: Answers = [(0, [1.0, 2.0])]
ONE: Answers = [(1, [3.0, 4.0])]


def found(answers: Answers, asked: int = 2) -> Check:
    return checked(asked, [(index, np.array(one, np.float32).tobytes()) for index, one in answers], RIGHT, of_numbers)


@pytest.mark.parametrize(
    ("answers", "asked", "lost", "wrong"),
    [
        (ZERO + ONE, 2, 0, 0),
        ([*ZERO, (1, [3.0, 5.0])], 2, 0, 0),
        ([(0, [1.0, 3.0]), *ONE], 2, 0, 1),
        ([(0, [1.0, float("nan")]), *ONE], 2, 0, 1),
        ([(0, [1.0]), (1, list[float]())], 2, 0, 2),
        (ONE, 2, 1, 0),
        (ZERO + ZERO, 2, 1, 0),  # one twice, the other never
        (ZERO + ONE + ONE, 2, 1, 0),
        (ZERO + ONE + ONE, 3, 0, 0),  # the last query of MultiStream is filled
    ],
)
def test_what_is_lost_and_what_is_wrong(answers: Answers, asked: int, lost: int, wrong: int) -> None:
    check = found(answers, asked)
    assert (check.lost, check.wrong) == (lost, wrong)


def test_answers_are_kept_for_the_samples_that_are_asked_for(tmp_path: Path) -> None:
    for samples in (2, 5):
        expected = expected_answers(DOUBLING, "fp32", samples, tmp_path)
        assert {index: one.right["y"].tolist() for index, one in expected.items()} == {
            k: [2.0 * k] * 3 for k in range(samples)
        }
        assert {one.allowed for one in expected.values()} == {BOUNDS["fp32"]}


def test_in_int8_an_answer_may_be_as_far_off_as_onnxruntimes(tmp_path: Path) -> None:
    expected = expected_answers(WORKLOADS["tiny_bert"], "int8", 3, tmp_path)
    assert all(0.005 < one.allowed < 0.3 for one in expected.values())
    exact = expected_answers(WORKLOADS["tiny_bert"], "fp32", 3, tmp_path, bound=0.01)
    assert all((exact[k].right["logits"] == one.right["logits"]).all() for k, one in expected.items())
    assert exact[0].allowed == 0.01
