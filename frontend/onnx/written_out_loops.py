"""Loops that carry sequences or optionals: what these hold differs from trip to trip, so each trip is read alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mlirt.frontend.onnx.loops import Trip
from mlirt.frontend.onnx.network import Network, Value
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.sequences import stacked

LARGEST_TRIP_COUNT = 4096


def written_out(
    net: Network,
    node: Node,
    limit: Value | None,
    start: Value | None,
    states: Sequence[Value],
    body: Callable[[Value, list[Value]], Trip],
) -> list[Value]:
    """The states after the last trip, and the collected rows; how many trips there are must be known."""
    most = _number(net, node, limit, "the number of trips, as the loop carries a sequence or an optional,")
    more = _number(net, node, start, "whether there is a first trip, as the loop carries a sequence or an optional,")
    carried, rows = list(states), list[list[Value]]()
    while more != 0 and (most is None or len(rows) < most):
        if len(rows) == LARGEST_TRIP_COUNT:
            raise node.unsupported(f"it carries a sequence for more than {LARGEST_TRIP_COUNT} trips")
        trip = body(net.constant(np.array(len(rows), np.int64)), carried)
        carried = trip.carried
        rows.append(trip.collected)
        more = _number(net, node, trip.more, "whether there is another trip, as the loop carries a sequence,")
    if not rows and len(node.outputs) > len(states):
        raise node.unsupported("it has no trips, so that the shape of what it collects is not known")
    return [*carried, *(stacked(net, column) for column in zip(*rows, strict=True))]


def _number(net: Network, node: Node, value: Value | None, what: str) -> int | None:
    """A number or truth value that is known now; None where there is none."""
    if value is None:
        return None
    if value.array is None:
        raise net.needed(value, f"{node.label}: {what}")
    return int(value.array.reshape(-1)[0])
