"""Loops in branches, branches in loops, against Python (tensorrt-features.md#7.3 to 7.10, 7.13, 7.14, 8.4, 8.6, 8.8,
8.9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_networks import constant, evaluate, new_network

import mlirt as trt
from mlirt.errors import InvalidModelError

SUM = trt.ElementWiseOperation.SUM


@dataclass(frozen=True)
class Leaf:
    """A value that is in sight: an input of the network, or what a loop carries."""

    place: int


@dataclass(frozen=True)
class Minus:
    """The negative of a value."""

    of: Program


@dataclass(frozen=True)
class Plus:
    """The sum of two values."""

    left: Program
    right: Program


@dataclass(frozen=True)
class Choice:
    """One of two values; of what is in sight the first `entering` come in through inputs of the conditional."""

    condition: bool
    entering: int
    then: Program
    otherwise: Program


@dataclass(frozen=True)
class Repeat:
    """A value that goes through the body some times; the body sees it as the last one in sight."""

    iterations: int
    initial: Program
    body: Program


@dataclass(frozen=True)
class Rows:
    """The weighted sum of a body for each of the first items, from either end, collected in either order."""

    iterations: int
    backward: bool
    last_first: bool
    body: Program


@dataclass(frozen=True)
class Until:
    """A value that grows with the body until it has reached a limit, at most five times."""

    initial: Program
    limit: float
    body: Program


Program: TypeAlias = "Leaf | Minus | Plus | Choice | Repeat | Rows | Until"
PLACES = st.integers(0, 3)
ITEMS = np.array([3, -1, 4, 2], np.float32)
MAX_ITERATIONS = 5


def larger(parts: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    return st.one_of(
        st.builds(Minus, parts),
        st.builds(Plus, parts, parts),
        st.builds(Choice, st.booleans(), PLACES, parts, parts),
        st.builds(Repeat, st.integers(0, 3), parts, parts),
        st.builds(Rows, st.integers(0, len(ITEMS)), st.booleans(), st.booleans(), parts),
        st.builds(Until, parts, st.sampled_from([-50.0, 0.0, 5.0, 40.0]), parts),
    )


PROGRAMS: st.SearchStrategy[Program] = st.recursive(st.builds(Leaf, PLACES), larger, max_leaves=8)


def value(program: Program, sight: Sequence[float]) -> float:
    """What a program gives."""
    if isinstance(program, Leaf):
        return sight[program.place % len(sight)]
    if isinstance(program, Minus):
        return -value(program.of, sight)
    if isinstance(program, Plus):
        return value(program.left, sight) + value(program.right, sight)
    if isinstance(program, Choice):
        return value(program.then if program.condition else program.otherwise, sight)
    if isinstance(program, Rows):
        items = (ITEMS[::-1] if program.backward else ITEMS)[: program.iterations].tolist()
        made = [value(program.body, [*sight, item]) for item in items]
        weights = range(len(made), 0, -1) if program.last_first else range(1, len(made) + 1)
        return float(sum(weight * one for weight, one in zip(weights, made, strict=True)))
    carried = value(program.initial, sight)
    for _ in range(program.iterations if isinstance(program, Repeat) else MAX_ITERATIONS):
        if isinstance(program, Until):
            if carried >= program.limit:
                break
            carried += 1 + abs(value(program.body, [*sight, carried]))
        else:
            carried = value(program.body, [*sight, carried])
    return carried


class Writer:
    """Makes the layers of a program; conditions and trip counts are inputs of the network."""

    def __init__(self, network: trt.INetworkDefinition) -> None:
        self.network = network
        self.feeds: dict[str, np.ndarray] = {}

    def write(self, program: Program, sight: Sequence[trt.ITensor]) -> trt.ITensor:
        if isinstance(program, Leaf):
            return sight[program.place % len(sight)]
        if isinstance(program, Minus):
            return self.network.add_unary(self.write(program.of, sight), trt.UnaryOperation.NEG).get_output(0)
        if isinstance(program, Plus):
            left, right = self.write(program.left, sight), self.write(program.right, sight)
            return self.network.add_elementwise(left, right, SUM).get_output(0)
        if isinstance(program, Choice):
            return self._choice(program, sight)
        if isinstance(program, Rows):
            return self._rows(program, sight)
        return self._repeat(program, sight) if isinstance(program, Repeat) else self._until(program, sight)

    def _choice(self, program: Choice, sight: Sequence[trt.ITensor]) -> trt.ITensor:
        choice = self.network.add_if_conditional()
        choice.set_condition(self._input(np.array(program.condition), trt.bool))
        inside = [choice.add_input(one).get_output(0) for one in sight[: program.entering]]
        inside += sight[program.entering :]
        return choice.add_output(self.write(program.then, inside), self.write(program.otherwise, inside)).get_output(0)

    def _rows(self, program: Rows, sight: Sequence[trt.ITensor]) -> trt.ITensor:
        loop = self.network.add_loop()
        loop.add_trip_limit(self._input(np.array(program.iterations, np.int32), trt.int32), trt.TripLimit.COUNT)
        item = loop.add_iterator(constant(self.network, ITEMS), 0, program.backward).get_output(0)
        order = trt.LoopOutput.REVERSE if program.last_first else trt.LoopOutput.CONCATENATE
        rows = loop.add_loop_output(self.write(program.body, [*sight, item]), order)
        rows.set_input(1, constant(self.network, np.array(program.iterations, np.int32)))
        weights = constant(self.network, np.arange(1, program.iterations + 1, dtype=np.float32))
        product = self.network.add_elementwise(rows.get_output(0), weights, trt.ElementWiseOperation.PROD)
        return self.network.add_reduce(product.get_output(0), trt.ReduceOperation.SUM, 1, False).get_output(0)

    def _until(self, program: Until, sight: Sequence[trt.ITensor]) -> trt.ITensor:
        loop = self.network.add_loop()
        carried = loop.add_recurrence(self.write(program.initial, sight))
        before = carried.get_output(0)
        limit, one = (constant(self.network, np.array(number, np.float32)) for number in (program.limit, 1))
        below = self.network.add_elementwise(before, limit, trt.ElementWiseOperation.LESS)
        loop.add_trip_limit(below.get_output(0), trt.TripLimit.WHILE)
        loop.add_trip_limit(constant(self.network, np.array(MAX_ITERATIONS, np.int32)), trt.TripLimit.COUNT)
        size = self.network.add_unary(self.write(program.body, [*sight, before]), trt.UnaryOperation.ABS)
        step = self.network.add_elementwise(size.get_output(0), one, SUM)
        carried.set_input(1, self.network.add_elementwise(before, step.get_output(0), SUM).get_output(0))
        return loop.add_loop_output(before, trt.LoopOutput.LAST_VALUE).get_output(0)

    def _repeat(self, program: Repeat, sight: Sequence[trt.ITensor]) -> trt.ITensor:
        loop = self.network.add_loop()
        loop.add_trip_limit(self._input(np.array(program.iterations, np.int32), trt.int32), trt.TripLimit.COUNT)
        carried = loop.add_recurrence(self.write(program.initial, sight))
        carried.set_input(1, self.write(program.body, [*sight, carried.get_output(0)]))
        return loop.add_loop_output(carried.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)

    def _input(self, array: np.ndarray, dtype: trt.DataType) -> trt.ITensor:
        name = f"decides{len(self.feeds)}"
        self.feeds[name] = array
        return self.network.add_input(name, dtype, ())


@settings(max_examples=80, derandomize=True)  # large numbers may cancel in float32
@given(PROGRAMS)
def test_any_nesting(program: Program) -> None:
    network = new_network()
    sight = [1.0, 10.0]
    inputs = [network.add_input(f"x{k}", trt.float32, ()) for k in range(2)]
    writer = Writer(network)
    result = network.add_identity(writer.write(program, inputs)).get_output(0)
    network.mark_output(result)
    feeds = {f"x{k}": np.array(number, np.float32) for k, number in enumerate(sight)}
    (found,) = evaluate(network, feeds | writer.feeds)
    np.testing.assert_allclose(found, value(program, sight), rtol=1e-5)


def test_insides_are_no_outputs() -> None:
    """tensorrt-features.md#8.9: what is inside of a loop or branch leaves it through an output."""
    network = new_network()
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, np.array(2, np.int32)), trt.TripLimit.COUNT)
    row = loop.add_iterator(network.add_input("x", trt.float32, (3, 2))).get_output(0)
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    entered = choice.add_input(row).get_output(0)
    output = choice.add_output(entered, row)
    output.name = "inner choice"
    network.mark_output(output.get_output(0))
    with pytest.raises(InvalidModelError, match="layer inner choice is inside of @loop_1 and cannot be an output"):
        evaluate(network, {"x": np.zeros((3, 2), np.float32), "c": np.array(True)})
