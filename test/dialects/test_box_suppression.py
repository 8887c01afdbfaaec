"""Greedy choice among boxes."""

from __future__ import annotations

import numpy as np

from mlirt.dialects.box_suppression import kept_boxes

BOXES = np.array([[[0, 0, 2, 2], [0, 0, 2, 1.9], [0, 0, 2, 1], [5, 5, 6, 6], [5, 5, 5, 6]]], np.float32)
ALL = np.ones((1, 5), np.bool_)


def test_boxes_like_an_earlier_one_go() -> None:
    assert kept_boxes(BOXES, ALL, 9, 0.6).tolist() == [[True, False, True, True, True]]
    assert kept_boxes(BOXES, ALL, 9, 0.4).tolist() == [[True, False, False, True, True]]


def test_an_overlap_of_exactly_the_threshold_is_allowed() -> None:
    assert kept_boxes(BOXES, ALL, 9, 0.5).tolist() == [[True, False, True, True, True]]


def test_what_is_not_allowed_hides_nothing() -> None:
    allowed = np.array([[False, True, True, True, False]])
    assert kept_boxes(BOXES, allowed, 9, 0.4).tolist() == [[False, True, False, True, False]]


def test_the_limit_counts_boxes_that_stay() -> None:
    assert kept_boxes(BOXES, ALL, 2, 0.6).tolist() == [[True, False, True, False, False]]
    assert not kept_boxes(BOXES, ALL, 0, 0.6).any()


def test_without_boxes() -> None:
    assert kept_boxes(np.zeros((2, 0, 4), np.float32), np.zeros((2, 0), np.bool_), 3, 0.5).shape == (2, 0)
