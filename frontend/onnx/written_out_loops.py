"""Loops whose iterations differ, as what they carry has other shapes, or as it is sequences: each iteration is read
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.branches import branch
from mlirt.frontend.onnx.loops import Iteration
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.sequences import is_tensor_value, stacked

MAX_TRIP_COUNT = 4096
Body = Callable[[Value, "list[Value]"], Iteration]


def written_out(
    net: Network, node: Node, limit: Value | None, start: Value | None, states: Sequence[Value], body: Body, why: str
) -> list[Value]:
    """The states after the last iteration, and the collected rows; how many iterations there may be must be known.

    `why` says why the iterations differ. Where only the run tells whether there is another iteration, each is a branch,
    whose
    other side keeps everything as it is; what is carried are then tensors.
    """
    most = _number(net, node, limit, f"the trip count, as {why},")
    more = _number(net, node, start, f"whether there is a first iteration, as {why},")
    carried, rows = list(states), list[list[Value]]()
    while more != 0 and (most is None or len(rows) < most):
        if len(rows) == MAX_TRIP_COUNT:
            raise node.unsupported(f"{why}, for more than {MAX_TRIP_COUNT} iterations")
        iteration = body(net.constant(np.array(len(rows), np.int64)), carried)
        carried = iteration.carried
        rows.append(iteration.collected)
        if iteration.more is not None and iteration.more.array is None and all(map(is_tensor_value, carried)):
            if most is None:
                raise node.unsupported(f"{why}, and it has no trip count (input 0)")
            totals = [stacked(net, column) for column in zip(*rows, strict=True)]
            return _while_it_lasts(
                net, node, range(len(rows), most), iteration.more, [*carried, *totals], body, len(states)
            )
        more = _number(net, node, iteration.more, f"whether there is another iteration, as {why},")
    if not rows and len(node.outputs) > len(states):
        raise node.unsupported("it has no iterations, so that the shape of what it collects is not known")
    return [*carried, *(stacked(net, column) for column in zip(*rows, strict=True))]


def _while_it_lasts(
    net: Network, node: Node, numbers: range, more: Value, values: list[Value], body: Body, states: int
) -> list[Value]:
    """What is carried and collected after the iterations of these numbers, of which one that has no reason ends the
    loop.
    """
    if len(numbers) > MAX_TRIP_COUNT:
        raise node.unsupported(f"it has more than {MAX_TRIP_COUNT} iterations whose shapes differ")
    for number in numbers:

        def again(number: int = number, values: list[Value] = values) -> list[Value]:
            iteration = body(net.constant(np.array(number, np.int64)), values[:states])
            following = (
                net.constant(np.array(True)) if iteration.more is None else layers.reshape(net, iteration.more, [])
            )
            rows = [layers.unsqueeze(net, row, [0]) for row in iteration.collected]
            totals = [
                layers.concatenate(net, [total, row], 0) for total, row in zip(values[states:], rows, strict=True)
            ]
            return [following, *iteration.carried, *totals]

        def enough(values: list[Value] = values) -> list[Value]:
            return [net.constant(np.array(False)), *values]

        more, *values = branch(net, node, more, [again, enough])
    return values


def _number(net: Network, node: Node, value: Value | None, what: str) -> int | None:
    """A number or truth value that is known now; None where there is none."""
    if value is None:
        return None
    if value.array is None:
        raise net.needed(value, f"{node.label}: {what}")
    return int(value.array.reshape(-1)[0])
