"""A profiler is told of a loop as of one layer, however many launches its iterations are (tensorrt-features.md#17.8).
"""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import CollectingLogger, new_network
from network_engines import built, cpu_config, run

import mlirt as trt
from mlirt.runtime.loop_times import times_of_layers
from mlirt.runtime.plan_file import read_plan


class Recorder(trt.IProfiler):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, float]] = []

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        self.told.append((layer_name, ms))


def looping(logger: CollectingLogger, *, nested: bool) -> tuple[trt.INetworkDefinition, trt.IBuilderConfig]:
    """exp, then as many doublings and softmaxes as the input n says, then neg; `nested`: each iteration is a loop
    again.
    """
    network = new_network(logger)
    x, count = network.add_input("x", trt.float32, (4,)), network.add_input("n", trt.int32, ())
    first = network.add_unary(x, trt.UnaryOperation.EXP)
    first.name = "exp"

    def repeated(start: trt.ITensor, depth: int) -> trt.ITensor:
        loop = network.add_loop()
        loop.add_trip_limit(count, trt.TripLimit.COUNT)
        state = loop.add_recurrence(start)
        inner = state.get_output(0)
        if depth:
            inner = repeated(inner, depth - 1)
        double = network.add_elementwise(inner, inner, trt.ElementWiseOperation.SUM)
        double.name = f"double{depth}"
        soft = network.add_softmax(double.get_output(0))
        state.set_input(1, soft.get_output(0))
        output = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE)
        output.name = f"loop{depth}"
        return output.get_output(0)

    last = network.add_unary(repeated(first.get_output(0), int(nested)), trt.UnaryOperation.NEG)
    last.name = "neg"
    last.get_output(0).name = "y"
    network.mark_output(last.get_output(0))
    config, profile = cpu_config(logger), trt.Builder(logger).create_optimization_profile()
    profile.set_shape_input("n", [0], [3], [9])
    config.add_optimization_profile(profile)
    return network, config


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("iterations", [0, 1, 5])
def test_a_loop_is_one_layer_17_8(nested: bool, iterations: int) -> None:
    logger = CollectingLogger()
    engine = built(*looping(logger, nested=nested), logger)
    context, recorder = engine.create_execution_context(), Recorder()
    context.profiler = recorder
    assert run(context, {"x": np.ones(4, np.float32), "n": np.array(iterations, np.int32)}) is not None
    assert [name for name, _ in recorder.told] == ["exp", f"loop{int(nested)}", "neg"]
    assert all(ms >= 0 for _, ms in recorder.told)


def test_plans_for_a_gpu_name_the_loop_17_8() -> None:
    logger = CollectingLogger()
    network, config = looping(logger, nested=True)
    config.target = "cuda"
    plan = trt.Builder(logger).build_serialized_network(network, config)
    assert plan is not None, logger.text()
    manifest = read_plan(bytes(plan)).manifest
    named = times_of_layers([(launch.layer, 1.0) for launch in manifest.launches], manifest.layers)
    assert [name.split(" + ")[-1] for name, _ in named] == ["exp", "loop1", "neg"]
    assert sum(ms for _, ms in named) == len(manifest.launches)


def test_records_that_are_not_of_the_launches() -> None:
    launches = [("a", 1.0), ("b", 2.0)]
    assert times_of_layers(launches, [{"loop": "l"}]) == launches
    assert times_of_layers(launches, [{"loop": "l"}, {"loop": "l"}]) == [("l", 3.0)]
    assert times_of_layers(launches, [{"loop": 3}, {}]) == launches
