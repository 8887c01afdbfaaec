"""Answers are as close as they are: a box that moved, a class or a score that changed, a number that is off."""

from __future__ import annotations

import numpy as np
import pytest
from mlperf.closeness import of_boxes, of_numbers

BOXES = np.array(
    [[10, 10, 50, 50, 0.9, 3], [60, 10, 90, 50, 0.8, 1], [0, 0, 20, 20, 0.5, 3], [0, 0, 0, 0, 0, 0]], np.float32
)


def test_numbers_are_off_by_their_difference() -> None:
    right = {"y": np.array([3.0, -4.0], np.float32), "z": np.array([1, 1], np.int64)}
    assert of_numbers(right, right) == 0
    assert of_numbers({**right, "y": right["y"] * np.float32(1.01)}, right) == pytest.approx(0.01, rel=1e-3)
    assert of_numbers({**right, "z": np.array([1, 2])}, right) == pytest.approx(0.5**0.5)
    assert of_numbers({**right, "y": np.zeros(3, np.float32)}, right) == float("inf")


def test_what_is_no_number_is_within_no_bound() -> None:
    right = {"y": np.ones(2, np.float32)}
    assert not of_numbers({"y": np.array([1, np.nan], np.float32)}, right) <= 1e9
    broken = BOXES.copy()
    broken[0, 0] = np.nan
    assert not of_boxes({"d": broken}, {"d": BOXES}) <= 1e9


def test_the_order_of_boxes_does_not_matter() -> None:
    assert of_boxes({"d": BOXES[[2, 0, 1, 3]]}, {"d": BOXES}) == 0


@pytest.mark.parametrize(("column", "by"), [(0, -20.0), (4, -0.2), (5, 1.0)])
def test_a_changed_box_is_another_one(column: int, by: float) -> None:
    changed = BOXES.copy()
    changed[1, column] += by
    assert of_boxes({"d": changed}, {"d": BOXES}) == pytest.approx(1 / 3)


def test_small_moves_are_none() -> None:
    changed = BOXES.copy()
    changed[:3, :4] += 0.2
    changed[:3, 4] -= 0.01
    assert of_boxes({"d": changed}, {"d": BOXES}) == 0


@pytest.mark.parametrize(
    ("found", "right", "error"), [(BOXES[:0], BOXES, 1), (BOXES, BOXES[3:], 1), (BOXES[3:], BOXES[3:], 0)]
)
def test_no_boxes(found: np.ndarray, right: np.ndarray, error: float) -> None:
    assert of_boxes({"d": found}, {"d": right}) == error


def test_boxes_too_many_count_as_those_too_few() -> None:
    more = np.concatenate([BOXES[:3], BOXES[:1] + np.array([200, 200, 200, 200, 0, 0], np.float32)])
    assert of_boxes({"d": more}, {"d": BOXES}) == pytest.approx(0.25)
    assert of_boxes({"d": BOXES[:2]}, {"d": BOXES}) == pytest.approx(1 / 3)
