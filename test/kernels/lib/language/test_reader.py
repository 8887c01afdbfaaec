"""Kernel functions compute what Python computes: each runs as it is, and as the kernel that it is read into."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from read_kernels import INDEX, MEMORY, read, run, text_of

from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.words import parallel, static_range

SIZES = (0, 1, 5, 12)


@kernel
def arithmetic(y: Value, n: Value) -> None:
    for i in range(n):
        y[i] = y[i] * 2.0 - 1.0 / (y[i] + 3.0)
        place = (n - i - 1) // 2 + i % 3
        if place < n and (i > 2 or not i == 0):
            y[place] = -y[place]


@kernel
def carried(y: Value, n: Value) -> None:
    """Two names go round, one of them a number at first; `square` is forgotten after each iteration."""
    accumulators, last = y[0], 0
    for i in range(1, n):
        square = y[i] * y[i]
        accumulators = accumulators + square
        last = i
    y[last] = accumulators


@kernel
def swapped(y: Value, n: Value) -> None:
    a, b = y[0], y[1]
    for _ in range(n):
        a, b = b, a + b
    y[0] = b


@kernel
def countdown(y: Value, n: Value) -> None:
    number, steps = n, 0
    while number > 1:
        if number % 2 == 0:
            number = number // 2
        else:
            number = number * 3 + 1
        steps += 1
    y[0] = y[1]
    if steps > 3:
        y[0] += 10.0


@kernel
def branches(y: Value, n: Value) -> None:
    """`scale` has no value before; `shift` has one and changes on one side only."""
    shift = 1.0
    value = y[0]
    for i in range(n):
        if i % 3 == 0:
            scale, value = 2.0, value + y[i]
        elif i % 3 == 1:
            scale = 3.0
        else:
            scale = 4.0
        y[i] = y[i] * scale + shift if i > 1 else value


@kernel
def unrolled(y: Value, n: Value) -> None:
    taps = [0.25, 0.5, 0.25]
    for i in range(1, n - 1):
        total = 0.0
        for tap, weight in enumerate(taps):
            if weight != 0.25:
                total += 2.0 * y[i]
            total += weight * y[i + tap - 1]
        y[i] = max(min(total, 2.5), sum(y[i + d] for d in (0, 1)))


@kernel
def chained(y: Value, n: Value) -> None:
    for i in range(n):
        if 1 <= i < n - 1:
            y[i] = y[i + 1] if y[i] < y[i + 1] else y[i]


@dataclass(frozen=True)
class Ring:
    """A place in a ring of stages."""

    stage: Index
    phase: Index


@kernel
def objects(y: Value, n: Value) -> None:
    """A loop carries an object, and a function inside of the function gives the next one."""

    def following(ring: Ring, count: int = 3) -> Ring:
        wraps = ring.stage + 1 == count
        return Ring(0 if wraps else ring.stage + 1, 1 - ring.phase if wraps else ring.phase)

    ring = Ring(0, 0)
    for _ in range(n):
        y[ring.stage] += 1.0
        ring = following(ring)
    y[3 + ring.phase] = y[ring.stage]


FUNCTIONS: list[Any] = [arithmetic, carried, swapped, countdown, branches, unrolled, chained, objects]


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_kernel_computes_what_python_computes(function: Any, target: Any) -> None:
    made = read(function, MEMORY, INDEX, target=target)
    for n in SIZES:
        x = np.linspace(-2.5, 3.5, 14, dtype=np.float32)
        want = x.copy()
        plain: Callable[..., None] = function.function
        with np.errstate(all="ignore"):
            plain(want, n)
        run(made, x, n)
        np.testing.assert_allclose(x, want, rtol=1e-6)


def test_what_is_known_leaves_no_op() -> None:
    @kernel
    def known(y: Value, n: Value, width: int) -> None:
        size = width * 4 // 2
        if size > 3:
            y[n * 1 + (size - size)] = 1.0
        assert size == 2 * width, "a width"
        if width > 100:
            y[0] = 2.0

    lines = text_of(read(known, MEMORY, INDEX, width=3)).splitlines()
    (only,) = [line for line in lines if "arith.constant" not in line]
    assert only.startswith("kernel.store")
    assert "%y[%n]" in only


def test_a_loop_carries_only_what_is_read_later() -> None:
    @kernel
    def temporary(y: Value, n: Value) -> None:
        place, kept = n, n
        for i in range(n):
            place = i + 1
            kept = kept + place
        y[kept] = 1.0

    lines = text_of(read(temporary, MEMORY, INDEX)).splitlines()
    (loop,) = [line for line in lines if "scf.for" in line]
    assert loop.count(" = ") == 3, "the result, the index and one argument"
    assert "%kept" in loop
    assert "%place" not in loop


def test_names_are_those_of_the_function() -> None:
    lines = text_of(read(carried, MEMORY, INDEX)).splitlines()
    (loop,) = [line for line in lines if "scf.for" in line]
    assert re.match(r"%accumulators_\d, %last = scf.for %i = %\d to %n ", loop)


def test_ranges_of_words_are_unrolled_and_regions_are_not() -> None:
    @kernel
    def both(y: Value, n: Value) -> None:
        for i in parallel(n):
            for j in static_range(3):
                y[i * 3 + j] = 1.0

    text = text_of(read(both, MEMORY, INDEX))
    assert text.count("kernel.store") == 3
    assert text.count("kernel.parallel") == 1
    assert "scf.for" not in text


def test_reductions_have_no_order() -> None:
    @kernel
    def rows(y: Value, n: Value) -> None:
        largest = max(y[i] for i in range(n))
        y[0] = largest + sum(y[i] * 2.0 for i in range(n)) + min(y[i] for i in range(n))

    made = read(rows, MEMORY, INDEX)
    assert text_of(made).count("kernel.reduce") == 3
    x = np.array([3.0, -1.0, 5.0, 9.0], np.float32)
    run(made, x, 3)
    assert x[0] == 5.0 + 14.0 - 1.0


def test_methods_are_read_with_their_objects() -> None:
    class Scaled:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @kernel
        def write(self, y: Value, n: Value) -> None:
            for i in range(n):
                y[i] = self.scaled(y[i])

        @kernel
        def scaled(self, number: Value) -> Value:
            return number * self.factor

    x = np.ones(4, np.float32)
    run(read(Scaled(2.5).write, MEMORY, INDEX), x, 3)
    assert x.tolist() == [2.5, 2.5, 2.5, 1.0]
