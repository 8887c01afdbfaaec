"""Graphs with conditions, built for a maker that carries them out as CUDA says they are."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mlirt.runtime import conditional_graphs
from mlirt.runtime.conditional_graphs import DeviceGraph, Queue
from mlirt.runtime.program import Branch, Loop, Place, Program, SizeCheck

FLAG, GO = Place(0, 0), Place(1, 0)


Node: TypeAlias = "Queue | tuple[int, int, bool]"


@dataclass
class Maker:
    """Nodes are queues, or (condition, body, is it a loop); a node only depends on the one before it."""

    graphs: list[list[Node]] = field(default_factory=list[list[Node]])
    conditions: list[bool] = field(default_factory=list[bool])
    destroyed: int = 0

    def new_graph(self) -> int:
        self.graphs.append([])
        return len(self.graphs) - 1

    def destroy(self, graph: int) -> None:
        self.destroyed += 1

    def instantiate(self, graph: int) -> int:
        return graph

    def capture(self, graph: int, after: Sequence[int], stream: int, queues: Sequence[Queue]) -> list[int]:
        nodes = self.graphs[graph]
        assert list(after) == ([len(nodes)] if nodes else [])
        nodes.extend(queues)
        return [len(nodes)]

    def new_condition(self, graph: int) -> int:
        self.conditions.append(False)
        return len(self.conditions) - 1

    def add_conditional(self, graph: int, after: Sequence[int], condition: int, *, loop: bool) -> tuple[int, int]:
        nodes, body = self.graphs[graph], self.new_graph()
        assert list(after) == ([len(nodes)] if nodes else [])
        nodes.append((condition, body, loop))
        return len(nodes), body

    def run(self, graph: int) -> None:
        for node in self.graphs[graph]:
            if callable(node):
                node(0)
                continue
            condition, body, loop = node
            while self.conditions[condition]:
                self.run(body)
                if not loop:
                    break


def run(program: Program, flag: bool, iterations: int) -> list[int]:
    """The launches of a run; launch 9 counts down the iterations that `GO` stands for."""
    done: list[int] = []
    bytes_ = {FLAG: flag, GO: iterations > 0}
    left = iterations
    maker = Maker()

    def queue(index: int) -> Queue | None:
        def launch(stream: int) -> None:
            nonlocal left
            done.append(index)
            if index == 9:
                left -= 1
                bytes_[GO] = left > 0

        return None if index == 7 else launch

    def setter(condition: int, place: Place, holds: bool) -> Queue:
        def put(stream: int) -> None:
            maker.conditions[condition] = bytes_[place] == holds

        return put

    graph = DeviceGraph(maker, 0, queue, setter).build(program)
    maker.run(graph)
    assert maker.destroyed == 1
    return done


def test_branches() -> None:
    program: Program = (0, Branch(FLAG, (1, 7), (2,)), 3, Branch(FLAG, (), (4,)))
    assert run(program, True, 0) == [0, 1, 3]
    assert run(program, False, 0) == [0, 2, 3, 4]


def test_loops() -> None:
    """tensorrt-features.md#7.20: what the original cannot capture is a node of a graph."""
    program: Program = (Loop(GO, (5,), (1, 9)), 2)
    assert run(program, True, 0) == [5, 2]
    assert run(program, True, 2) == [5, 1, 9, 5, 1, 9, 5, 2]


def test_a_branch_in_a_loop_in_a_branch() -> None:
    program: Program = (Branch(FLAG, (Loop(GO, (), (Branch(GO, (1,), ()), 9)),), (2,)),)
    assert run(program, True, 2) == [1, 9, 1, 9]
    assert run(program, False, 2) == [2]


def test_checks_need_the_host() -> None:
    check = SizeCheck("n", FLAG, 0)
    assert conditional_graphs.is_device_only(Loop(GO, (), (1, Branch(FLAG, (2,), ()))))
    assert not conditional_graphs.is_device_only(Loop(GO, (), (1, check)))


def test_the_record_of_a_node_has_the_size_that_the_driver_expects() -> None:
    record = getattr(conditional_graphs, "_NodeParams")
    assert ctypes.sizeof(record) == 256
