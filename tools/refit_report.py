"""What rt-exec says about engines that can be given other weights."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    from mlirt.builder.refit import KeptNetwork
    from mlirt.runtime.engine_interface import EngineLike

_MAX_LISTED_WEIGHTS = 10


def refit_lines(engine: EngineLike) -> list[str]:
    """A line for the weights of each layer, by what they are to it, else by their name; how many numbers there are."""
    network = _network(engine)
    roles = [(f"{layer}: {role}", op) for (layer, role), op in network.of_layers.items()]
    listed = {op for _, op in roles}
    names = [(name, op) for name, (op, *_) in network.named.items() if op not in listed]
    return ["Refittable weights:", *(f"{label} ({network.array_of(op).size})" for label, op in (*roles, *names))]


def refit_time_line(engine: EngineLike, times: int) -> str:
    """How long it takes to build the engine again with its weights, the median of at most 10 times."""
    from mlirt.runtime.engine import Engine

    taken: list[float] = []
    for _ in range(max(1, min(times, _MAX_LISTED_WEIGHTS))):
        start = time.perf_counter()
        Engine(_network(engine).plan(), waits=True)
        taken.append((time.perf_counter() - start) * 1e3)
    return f"Engine refitted {len(taken)} times: median = {statistics.median(taken):g} ms"


def _network(engine: EngineLike) -> KeptNetwork:
    from mlirt.builder.refit import KeptNetwork
    from mlirt.runtime.engine import Engine

    if not isinstance(engine, Engine):
        raise InvalidInputError("--target=reference has no plan to refit; choose cpu or cuda")
    return KeptNetwork(engine.plan)
