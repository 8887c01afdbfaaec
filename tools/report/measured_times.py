"""Runs plans launch by launch on random inputs, for the times of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlirt.runtime.engine import Engine
from mlirt.runtime.expressions import evaluate
from mlirt.runtime.random_inputs import random_input
from mlirt.runtime.shape_binding import ShapeBinding
from mlirt.tools.layer_report import profile_json
from mlirt.tools.report.launch_times import LaunchTime, times_in

if TYPE_CHECKING:
    import numpy as np

    Feeds = Mapping[str, np.ndarray[Any, np.dtype[Any]]]


def measured_times(engines: Sequence[tuple[Engine, ShapeBinding]], runs: int) -> list[list[LaunchTime]]:
    """For each engine the times of its launches in so many runs.

    The engines take turns, so that what else the machine does slows all of them; the first run launch by launch, which
    is slower, does not count.
    """
    given = [(engine, _feeds(engine, binding)) for engine, binding in engines]
    profiles: list[list[Sequence[tuple[str, float]]]] = [[] for _ in engines]
    for number in range(runs + 1):
        for (engine, feeds), found in zip(given, profiles, strict=True):
            profile = engine.profile(feeds)
            if number:
                found.append(profile)
    return [times_in(profile_json(found)) for found in profiles]


def _feeds(engine: Engine, binding: ShapeBinding) -> Feeds:
    return {
        tensor.name: random_input(tensor.dtype, [evaluate(dim, binding.values) for dim in tensor.known_shape], number)
        for number, tensor in enumerate(engine.plan.manifest.given_inputs)
    }
