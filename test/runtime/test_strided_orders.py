"""Weights that are others in another order: the order is found, walked, and refused where it leaves the array."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlirt.kernels.convolution.cpu.packing import pack
from mlirt.runtime.strided_orders import Order, order_of, ordered, signature, walk_of

Packing = tuple[int, int]
WIDE = (2, 16)


def packed(kernel: np.ndarray, packing: Packing, word: int = 1) -> np.ndarray:
    columns, lanes = packing
    return np.ascontiguousarray(pack(kernel, 1, columns, lanes, lanes, word))


@pytest.mark.parametrize("packing", [(2, 8), (4, 8), (1, 8), (4, 4), (2, 4), (1, 4)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_packings_for_other_vectors_are_orders(packing: Packing, dtype: str) -> None:
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(64, 48, 3, 3)) if dtype != "int8" else rng.integers(-127, 128, (64, 48, 3, 3))
    word = 4 if dtype == "int8" else 1
    stored, wanted = (packed(kernel.astype(dtype), one, word) for one in (WIDE, packing))
    assert signature(stored) == signature(wanted)
    order = order_of(wanted, stored)
    assert order is not None
    made = ordered(stored, order, wanted.dtype, wanted.shape)
    assert (made.dtype, made.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(made, wanted)
    assert made.ctypes.data % 64 == 0
    assert walk_of(order.as_json()) == order


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(2, 7), min_size=1, max_size=5), st.randoms(use_true_random=False), st.integers(0, 9))
def test_any_transposition_is_found(lengths: list[int], random: Random, seed: int) -> None:
    stored = np.random.default_rng(seed).permutation(int(np.prod(lengths))).astype(np.float32).reshape(lengths)
    axes = list(range(len(lengths)))
    random.shuffle(axes)
    wanted = np.ascontiguousarray(stored.transpose(axes))
    order = order_of(wanted, stored)
    assert order is not None
    np.testing.assert_array_equal(ordered(stored, order, wanted.dtype, wanted.shape), wanted)


def test_a_part_of_padded_numbers_is_an_order_and_other_numbers_are_none() -> None:
    rng = np.random.default_rng(1)
    stored = np.zeros((8, 16), np.float32)
    stored[:, :12] = rng.normal(size=(8, 12))
    wanted = np.ascontiguousarray(stored[:, :12])
    order = order_of(wanted, stored)
    assert order is not None
    np.testing.assert_array_equal(ordered(stored, order, wanted.dtype, wanted.shape), wanted)
    changed = wanted.copy()
    changed[5, 7] += 1
    assert order_of(changed, stored) is None
    assert order_of(rng.permutation(wanted.reshape(-1)), stored) is None
    assert order_of(np.zeros(64, np.float32), stored) is None
    assert order_of(wanted.astype(np.float64), stored) is None


@pytest.mark.parametrize(
    ("order", "fits"),
    [
        (Order(4, 0, (4, 4), (4, 1)), True),
        (Order(4, 1, (4, 4), (4, 1)), False),
        (Order(4, 12, (4, 4), (-4, 1)), True),
        (Order(4, 11, (4, 4), (-4, 1)), False),
        (Order(4, 0, (2, 8), (0, 1)), True),
        (Order(4, 0, (2, 16), (0, 1)), False),  # a small file is no large array
    ],
)
def test_a_walk_stays_within_its_array(order: Order, fits: bool) -> None:
    assert order.fits(16) is fits


@pytest.mark.parametrize(
    "record",
    [None, [], [4, 0, [1]], [3, 0, [1], [1]], [4, -1, [1], [1]], [4, 0, [0], [1]], [4, 0, [2], [1, 2]],
     [4, 0, ["2"], [1]], [4, 0, [1 << 50], [1]], [4, 0, [True], [1]]],
)  # fmt: skip
def test_what_is_no_order_is_none(record: object) -> None:
    assert walk_of(record) is None
