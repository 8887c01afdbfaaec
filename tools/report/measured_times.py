"""Runs a plan launch by launch on random inputs, for the times of a page."""

from __future__ import annotations

from mlirt.runtime.engine import Engine
from mlirt.runtime.expressions import evaluate
from mlirt.runtime.random_inputs import random_input
from mlirt.runtime.shape_binding import ShapeBinding
from mlirt.tools.layer_report import profile_json
from mlirt.tools.report.launch_times import LaunchTime, times_in


def measured_times(engine: Engine, binding: ShapeBinding, runs: int) -> list[LaunchTime]:
    """The times of each launch in so many runs; the first run launch by launch, which is slower, does not count."""
    feeds = {
        tensor.name: random_input(
            tensor.dtype, [evaluate(dim, binding.values) for dim in tensor.known_shape], seed=number
        )
        for number, tensor in enumerate(engine.plan.manifest.given_inputs)
    }
    engine.profile(feeds)
    return times_in(profile_json([engine.profile(feeds) for _ in range(runs)]))
