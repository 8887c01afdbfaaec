"""The inspector's JSON says of each branch and loop which layers it has, and who decides about it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from layer_networks import CollectingLogger, constant, new_network

import mlirt as trt

SUM, LESS = trt.ElementWiseOperation.SUM, trt.ElementWiseOperation.LESS
NONE = trt.MatrixOperation.NONE


def engine_of(network: trt.INetworkDefinition, verbosity: trt.ProfilingVerbosity) -> trt.ICudaEngine:
    logger = CollectingLogger()
    builder = trt.Builder(logger)
    config = builder.create_builder_config()
    config.target = "cpu"
    config.profiling_verbosity = verbosity
    engine = trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config) or b"")
    assert engine is not None, logger.text()
    return engine


def doubling_or_squaring() -> trt.INetworkDefinition:
    """x doubled while its first number is below a limit, then times itself as a matrix where a condition holds."""
    network = new_network()
    condition = network.add_input("condition", trt.bool, ())
    x, limit = network.add_input("x", trt.float32, (64, 64)), network.add_input("limit", trt.float32, (1, 1))
    loop = network.add_loop()
    value = loop.add_recurrence(x)
    before = value.get_output(0)
    double = network.add_elementwise(before, before, SUM)
    double.name = "double"
    value.set_input(1, double.get_output(0))
    first = network.add_slice(before, (0, 0), (1, 1), (1, 1)).get_output(0)
    below = network.add_shuffle(network.add_elementwise(first, limit, LESS).get_output(0))
    below.reshape_dims = ()
    loop.add_trip_limit(below.get_output(0), trt.TripLimit.WHILE)
    doubled = loop.add_loop_output(before, trt.LoopOutput.LAST_VALUE).get_output(0)
    choice = network.add_if_conditional()
    choice.set_condition(condition)
    given = choice.add_input(doubled).get_output(0)
    square = network.add_matrix_multiply(given, NONE, given, NONE)
    square.name = "square"
    result = choice.add_output(square.get_output(0), given).get_output(0)
    result.name = "y"
    network.mark_output(result)
    return network


def test_loops_and_branches() -> None:
    """tensorrt-features.md#17.1 and 17.3: on a CPU it is the thread in front of the decision that decides."""
    engine = engine_of(doubling_or_squaring(), trt.ProfilingVerbosity.DETAILED)
    told = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    assert [set(one) for one in told["Decisions"]] == [{"kind", "layers", "decided_by"}] * 2
    loop, branch = told["Decisions"]
    assert (loop["kind"], loop["decided_by"]) == ("loop", "device")
    assert any("double" in layer for layer in loop["layers"])
    assert (branch["kind"], branch["decided_by"]) == ("branch", "device")
    assert "square" in branch["layers"]


def test_what_is_decided_when_the_engine_is_built_is_no_decision() -> None:
    network = new_network()
    x = network.add_input("x", trt.float32, (4,))
    choice = network.add_if_conditional()
    one, two = (constant(network, np.array(number, np.float32)) for number in (1, 2))
    choice.set_condition(network.add_elementwise(one, two, LESS).get_output(0))
    given = choice.add_input(x).get_output(0)
    result = choice.add_output(network.add_unary(given, trt.UnaryOperation.EXP).get_output(0), given).get_output(0)
    network.mark_output(result)
    inspector = engine_of(network, trt.ProfilingVerbosity.DETAILED).create_engine_inspector()
    assert "Decisions" not in json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))


@pytest.mark.parametrize("verbosity", [trt.ProfilingVerbosity.LAYER_NAMES_ONLY, trt.ProfilingVerbosity.NONE])
def test_without_details(verbosity: trt.ProfilingVerbosity) -> None:
    """tensorrt-features.md#17.2: decisions name layers, and so are told wherever names are."""
    inspector = engine_of(doubling_or_squaring(), verbosity).create_engine_inspector()
    told = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    assert ("Decisions" in told) == (verbosity is trt.ProfilingVerbosity.LAYER_NAMES_ONLY)
