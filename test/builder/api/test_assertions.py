"""Assertions in engines: they end the build or the run, whatever becomes of the outputs (tensorrt-features.md#1.2a,
1.2b).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from layer_networks import Array, CollectingLogger, constant, new_network
from network_engines import built, cpu_config, run
from onnx_models import numbers

import mlirt as trt
from mlirt.errors import UnmetConditionError

Outputs = Callable[[trt.INetworkDefinition, trt.ITensor], trt.ITensor]

GREATER = trt.ElementWiseOperation.GREATER
EQUAL, LESS = trt.ElementWiseOperation.EQUAL, trt.ElementWiseOperation.LESS
# What an engine is left with: nothing to compute, a copy, a shape, a launch.
OUTPUTS: dict[str, Outputs] = {
    "constant": lambda network, x: constant(network, np.ones(3, np.float32)),
    "folded": lambda network, x: network.add_identity(constant(network, np.ones(3, np.float32))).get_output(0),
    "copy": lambda network, x: network.add_identity(x).get_output(0),
    "shape": lambda network, x: network.add_shape(x).get_output(0),
    "computed": lambda network, x: network.add_unary(x, trt.UnaryOperation.NEG).get_output(0),
}


def length(network: trt.INetworkDefinition, x: trt.ITensor, axis: int) -> trt.ITensor:
    return network.add_slice(network.add_shape(x).get_output(0), [axis], [1], [1]).get_output(0)


def config_of(
    logger: CollectingLogger, name: str, values: tuple[list[int], list[int], list[int]]
) -> trt.IBuilderConfig:
    """A configuration with a profile of what an input that is read as a shape holds."""
    config = cpu_config(logger)
    profile = trt.Builder(logger).create_optimization_profile()
    profile.set_shape_input(name, *values)
    config.add_optimization_profile(profile)
    return config


@pytest.mark.parametrize("kind", OUTPUTS)
def test_condition_that_is_an_input_1_2b(kind: str) -> None:
    """An engine that has nothing to compute looks at its conditions all the same."""
    logger = CollectingLogger()
    network = new_network(logger)
    holds, x = network.add_input("holds", trt.bool, ()), network.add_input("x", trt.float32, (3,))
    network.add_assertion(holds, "told you so")
    network.mark_output(OUTPUTS[kind](network, x))
    engine = built(network, config_of(logger, "holds", ([0], [1], [1])), logger)
    feeds = {"x": np.ones(3, np.float32)}
    assert run(engine.create_execution_context(), feeds | {"holds": np.array(True)}) is not None
    context = engine.create_execution_context()
    assert run(context, feeds | {"holds": np.array(False)}) is None
    assert "Error Code 7: Internal Error (IAssertionLayer" in logger.text()
    assert "condition[0] is false: holds. told you so" in logger.text()
    with pytest.raises(UnmetConditionError, match="told you so"):
        engine.engine.run(feeds | {"holds": np.array(False)})
    assert run(context, feeds | {"holds": np.array(True)}) is not None


@pytest.mark.parametrize("kind", OUTPUTS)
def test_condition_of_lengths_1_2b(kind: str) -> None:
    logger = CollectingLogger()
    network = new_network(logger)
    x, y = (network.add_input(f"inputT{k}", trt.float32, (-1, -1)) for k in (0, 1))
    same = network.add_elementwise(length(network, x, 1), length(network, y, 1), EQUAL).get_output(0)
    network.add_assertion(same, "edges differ.")
    network.mark_output(OUTPUTS[kind](network, x))
    shapes = {one.name: ((1, 1), (3, 4), (9, 9)) for one in (x, y)}
    engine = built(network, cpu_config(logger, shapes=shapes), logger)

    def feeds(width: int) -> dict[str, Array]:
        return {"inputT0": np.ones((2, 3), np.float32), "inputT1": np.ones((4, width), np.float32)}

    assert run(engine.create_execution_context(), feeds(3)) is not None
    assert run(engine.create_execution_context(), feeds(4)) is None
    text = "condition[0] is false: (EQUAL (# 1 (SHAPE inputT0)) (# 1 (SHAPE inputT1))). edges differ. Condition '==' "
    assert "Error Code 7: Internal Error" in logger.text()
    assert f"{text}violated: 3 != 4. Instruction: CHECK_EQUAL 3 4." in logger.text()


@pytest.mark.parametrize("order", ["xy", "yx"])
def test_lengths_that_are_asserted_equal_are_one_1_2c(order: str) -> None:
    """The engine has one symbol for both, which its sum does not broadcast any more; a run still gets the words."""
    logger = CollectingLogger()
    network = new_network(logger)
    x, y = (network.add_input(name, trt.float32, (-1, 4)) for name in "xy")
    left, right = (length(network, {"x": x, "y": y}[name], 0) for name in order)
    network.add_assertion(network.add_elementwise(left, right, EQUAL).get_output(0), "rows differ.")
    network.mark_output(network.add_elementwise(x, y, trt.ElementWiseOperation.SUM).get_output(0))
    shapes = {name: ((1, 4), (3, 4), (9, 4)) for name in "xy"}
    engine = built(network, cpu_config(logger, shapes=shapes), logger)
    manifest = engine.manifest
    assert [one.shape for one in (*manifest.inputs, *manifest.outputs)] == [("x_0", 4)] * 3
    assert not manifest.requirements
    feeds = {name: numbers(5, 4, seed=k) for k, name in enumerate("xy")}
    (found,) = engine.engine.run(feeds).values()
    np.testing.assert_array_equal(found, feeds["x"] + feeds["y"])
    assert run(engine.create_execution_context(), {"x": numbers(3, 4), "y": numbers(1, 4)}) is None
    lengths = "3 != 1. Instruction: CHECK_EQUAL 3 1." if order == "xy" else "1 != 3. Instruction: CHECK_EQUAL 1 3."
    assert f"rows differ. Condition '==' violated: {lengths}" in logger.text()
    assert "Error Code 7" in logger.text()


@pytest.mark.parametrize("kind", OUTPUTS)
def test_condition_that_other_layers_decide_1_2a(kind: str) -> None:
    """A product makes the length 3, so that the build knows that it is not 4."""
    logger = CollectingLogger()
    network = new_network(logger)
    x, none = network.add_input("x", trt.float32, (2, -1)), trt.MatrixOperation.NONE
    weights = constant(network, np.ones((3, 5), np.float32))
    product = network.add_matrix_multiply(x, none, weights, none).get_output(0)
    four = constant(network, np.array([4], np.int32))
    network.add_assertion(network.add_elementwise(length(network, x, 1), four, EQUAL).get_output(0), "not four")
    network.mark_output(product)
    network.mark_output(OUTPUTS[kind](network, product))
    config = cpu_config(logger, shapes={"x": ((2, 1), (2, 3), (2, 5))})
    assert trt.Builder(logger).build_serialized_network(network, config) is None
    assert "condition[0] is false: (EQUAL (# 1 (SHAPE x)) 4). not four" in logger.text()


def test_more_conditions_than_are_looked_at_one_by_one_1_2a() -> None:
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (3,))
    numbers, limit = (constant(network, one.astype(np.int32)) for one in (np.arange(100), np.full(100, 50)))
    network.add_assertion(network.add_elementwise(numbers, limit, LESS).get_output(0), "too many")
    network.mark_output(network.add_identity(x).get_output(0))
    assert trt.Builder(logger).build_serialized_network(network, cpu_config(logger)) is None
    assert "Error Code 4" in logger.text()
    assert "is false. too many" in logger.text()


@pytest.mark.parametrize("kind", [LESS, GREATER])
def test_lengths_that_are_ordered_1_2b(kind: trt.ElementWiseOperation) -> None:
    """Twice the rows of x and one more are less, or more, than 8: no launch is needed to see it."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (-1,))
    one, two, eight = (constant(network, np.array([number], np.int32)) for number in (1, 2, 8))
    twice = network.add_elementwise(length(network, x, 0), two, trt.ElementWiseOperation.PROD).get_output(0)
    more = network.add_elementwise(twice, one, trt.ElementWiseOperation.SUM).get_output(0)
    network.add_assertion(network.add_elementwise(more, eight, kind).get_output(0), "too many")
    network.mark_output(network.add_identity(x).get_output(0))
    engine = built(network, cpu_config(logger, shapes={"x": ((1,), (3,), (9,))}), logger)
    for rows in (1, 3, 4, 9):
        holds = 2 * rows + 1 < 8 if kind is LESS else 2 * rows + 1 > 8
        found = run(engine.create_execution_context(), {"x": np.ones(rows, np.float32)})
        assert (found is not None) == holds
    text = f"condition[0] is false: ({kind.name} (SUM (PROD (# 0 (SHAPE x)) 2) 1) 8). too many"
    assert text in logger.text()
