"""Combines of tuples in kernels: in their order, without an op for what no element comes to."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from read_kernels import INDEX, MEMORY, read, run, text_of
from xdsl.dialects.builtin import f32

from mlirt.dialects.combine import COMBINES, ReduceKind
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.combine_words import combiner_of, first_largest
from mlirt.kernels.lib.language.words import place

KINDS = [ReduceKind.ADD, ReduceKind.MUL, ReduceKind.MAX, ReduceKind.MIN]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_combined_from_the_left(kind: ReduceKind) -> None:
    @kernel
    def combined(x: Value, y: Value) -> None:
        combiner = combiner_of(kind, f32)
        y[0] = combiner.of(*combiner.neutral, x[0], x[1], *combiner.neutral, x[2])

    made = read(combined, MEMORY, MEMORY)
    x, y = np.array([0.1, -7.3, 2.6], np.float32), np.zeros(1, np.float32)
    run(made, x, y)
    assert y[0] == reduce(COMBINES[kind].ufunc(), x)
    assert text_of(made).count(COMBINES[kind].op(f32).name) == 2  # pyright: ignore[reportFunctionMemberAccess]


def test_of_equal_keys_the_first_one_wins() -> None:
    @kernel
    def extreme(x: Value, y: Value, n: Value) -> None:
        combiner = first_largest([place(0), place(0), x[0]])
        best = combiner.neutral
        for i in range(n):
            best = combiner.tuples(best, [place(i * (n - 1 - i)), place(i), x[i]])  # 0, 3, 4, 3, 0 of five
        y[0] = best[2]

    made = read(extreme, MEMORY, MEMORY, INDEX)
    x, y = np.arange(1, 9, dtype=np.float32), np.zeros(1, np.float32)
    for n, want in ((1, 0), (4, 1), (5, 2), (6, 2), (7, 3)):
        run(made, x, y, n)
        assert y[0] == x[want]


def test_threads_of_a_warp_all_have_what_they_come_to() -> None:
    @kernel
    def over_warp(x: Value, y: Value, thread: Value) -> None:
        combiner = combiner_of(ReduceKind.ADD, f32)
        y[thread] = combiner.over_lanes(x[thread], (1, 2))

    text = text_of(read(over_warp, MEMORY, MEMORY, INDEX, target="cuda"))
    assert text.count("kernel.shuffle") == text.count("arith.addf") == 2
