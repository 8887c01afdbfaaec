"""The words for all targets: each is on the page about kernels, and computes what Python or NumPy do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from read_kernels import INDEX, MEMORY, read, run, text_of
from xdsl.dialects.builtin import IntegerType, Signedness, f32, i8, i32, i64

from mlirt.kernels.lib.language import Value, kernel, words
from mlirt.kernels.lib.language.tile_words import lane_loop, tasks
from mlirt.kernels.lib.language.words import (
    Box,
    cast,
    ceil,
    clamp,
    constant,
    extent,
    floor,
    floor_div,
    index_of,
    integer_of,
    parallel,
    place,
    prod,
    round_even,
    split,
    static_range,
)

PAGE = Path(__file__).parents[4] / "docs/write-a-kernel.md"
UI8 = IntegerType(8, Signedness.UNSIGNED)


@pytest.mark.parametrize("word", words.__all__)
def test_words_are_on_the_page(word: str) -> None:
    text = PAGE.read_text()
    assert any(f"`{word}{behind}" in text for behind in "`(")


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_conditions_of_a_list(target: Any) -> None:
    @kernel
    def inner(y: Value, n: Value, width: int) -> None:
        for i in range(n):
            is_inner = all([i > 0, i < n - 1, width > 2])
            is_edge = any([i == 0, i == n - 1, width > 100])
            y[i] = 1.0 if is_inner else 2.0 if is_edge else 3.0

    made = read(inner, MEMORY, INDEX, target=target, width=4)
    for n in (0, 1, 2, 5):
        y = np.zeros(6, np.float32)
        run(made, y, n)
        assert y[:n].tolist() == [1.0 if 0 < i < n - 1 else 2.0 for i in range(n)]


def test_conditions_that_are_known_leave_no_op() -> None:
    @kernel
    def known(y: Value, n: Value) -> None:
        if all([]) and not any([]) and all([True, n < 3, False]) is False and any([n < 3, True]) is True:
            y[0] = 1.0

    assert "scf.if" not in text_of(read(known, MEMORY, INDEX))


def test_bits_and_magnitudes() -> None:
    @kernel
    def bits(y: Value, n: Value) -> None:
        number = n - 3
        y[0] = abs(y[0])
        y[1] = y[1] if (number > 0) ^ (n > 5) else 7.0
        y[2] = y[2] if (number > 0) & (n > 5) else 8.0
        y[3] = y[3] if (number > 0) | (n > 5) else 9.0

    made = read(bits, MEMORY, INDEX)
    for n in (2, 4, 6):
        y = np.array([-1.5, 1.0, 1.0, 1.0], np.float32)
        run(made, y, n)
        one, other = n > 3, n > 5
        assert y.tolist() == [
            1.5,
            1.0 if one ^ other else 7.0,
            1.0 if one and other else 8.0,
            1.0 if one or other else 9.0,
        ]


def test_roundings_and_places() -> None:
    @kernel
    def rounded(y: Value, n: Value) -> None:
        y[0] = floor(y[0])
        y[1] = ceil(y[1])
        y[2 + clamp(n, 3)] = 4.0
        y[5 + floor_div(n - 8, 4) + 2] = 5.0

    made = read(rounded, MEMORY, INDEX)
    for n in (0, 1, 7):
        y = np.array([-1.5, -1.5, 0, 0, 0, 0, 0], np.float32)
        run(made, y, n)
        want = [-2.0, -1.0, 0, 0, 0, 0, 0]
        want[2 + min(n, 2)] = 4.0
        want[7 + (n - 8) // 4] = 5.0
        assert y.tolist() == want


def test_halves_go_to_even_numbers() -> None:
    @kernel
    def rounded(y: Value, n: Value) -> None:
        for i in range(n):
            y[i] = round_even(y[i])

    y = np.array([0.5, 1.5, 2.5, -1.5, 2.4], np.float32)
    run(read(rounded, MEMORY, INDEX), y, 5)
    assert y.tolist() == [0.0, 2.0, 2.0, -2.0, 2.0]


def test_places_are_integers_and_back() -> None:
    @kernel
    def moved(y: Value, n: Value) -> None:
        for type_ in (i32, i64):
            y[index_of(integer_of(n, type_) - integer_of(2, type_))] += 1.0
        assert integer_of(n, UI8).type == UI8
        assert index_of(integer_of(n, i64)).type == INDEX

    made = read(moved, MEMORY, INDEX)
    for n in (2, 5):
        y = np.zeros(4, np.float32)
        run(made, y, n)
        assert y.tolist() == [2.0 if at == n - 2 else 0.0 for at in range(4)]


def test_integers_are_shifted() -> None:
    @kernel
    def shifted(y: Value, n: Value) -> None:
        number = integer_of(n, i32)
        up, down = number << 3, number >> 1
        y[0] = cast(up, i32, f32)
        y[1] = cast(down, i32, f32)

    y = np.zeros(2, np.float32)
    run(read(shifted, MEMORY, INDEX), y, -5)
    assert y.tolist() == [-40.0, -3.0]


def test_a_product_of_numbers_sizes_and_values() -> None:
    @kernel
    def product(y: Value, n: Value) -> None:
        y[prod([n, 2]) + prod([]) * prod([2, 3])] = prod([y[0], y[0], y[0]])

    y = np.array([2.0] + [0.0] * 13, np.float32)
    run(read(product, MEMORY, INDEX), y, 3)
    assert y[12] == 8.0


def test_constants_of_unsigned_elements() -> None:
    @kernel
    def numbers(y: Value) -> None:
        assert constant(200, UI8).type == UI8
        assert constant(-3, i8).type == i8
        assert place(3).type == INDEX

    read(numbers, MEMORY)


def test_tasks_of_workers_and_lanes() -> None:
    @kernel
    def rows(y: Value, n: Value) -> None:
        for row, half in tasks(n, 2):
            for lane in lane_loop(4, 4):
                y[(row * 2 + half) * 4 + lane] = 1.0
        for row in parallel(Box(n).extents()):
            for lane in static_range(8):
                y[row[0] * 8 + lane] += 1.0

    made = read(rows, MEMORY, INDEX)
    text = text_of(made)
    assert text.count("workers") == 1
    assert text.count("lanes") == 1
    y = np.zeros(24, np.float32)
    run(made, y, 2, 2)  # on a CPU the extent 2 is an argument
    assert y.tolist() == [2.0] * 16 + [0.0] * 8


def test_sizes_of_the_host_program_are_arguments_on_a_cpu_and_numbers_on_a_gpu() -> None:
    @kernel
    def sizes(y: Value) -> None:
        for i in range(extent(3)):
            y[i] = 1.0

    assert "to %" in text_of(read(sizes, MEMORY))
    assert "arith.constant 3" in text_of(read(sizes, MEMORY, target="cuda"))


def test_lists_of_values_of_the_run_are_joined_as_python_does() -> None:
    @kernel
    def joined(y: Any, n: Any) -> None:
        first, second, last = [n, n + 1], [n + 2], (n, 0)
        places = first + second
        for number, one in enumerate((*places, *places, *last)):
            y[one] = y[one] + float(number + 1)

    y = np.zeros(6, np.float32)
    run(read(joined, MEMORY, INDEX), y, 3)
    assert y.tolist() == [8.0, 0.0, 0.0, 12.0, 7.0, 9.0]


@pytest.mark.parametrize("sizes", [(7,), (3, 4), (2, 1, 5)])
def test_indices_of_a_number_in_a_box(sizes: tuple[int, ...]) -> None:
    @kernel
    def indices(y: Value, number: Value) -> None:
        for axis, index in enumerate(split(number, sizes)):
            y[index] = 1.0 + axis

    made = read(indices, MEMORY, INDEX, target="cuda")
    for number in range(int(np.prod(sizes))):
        y, want = np.zeros(8, np.float32), np.zeros(8, np.float32)
        run(made, y, number)
        for axis, index in enumerate(np.unravel_index(number, sizes)):
            want[index] = 1.0 + axis
        assert np.array_equal(y, want)
