"""Layers whose lengths differ in a run end it by their name, as the decoder of a U-Net for odd sizes does."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of, numbers, tensor_info

import mlirt
from mlirt.errors import InvalidInputError


@pytest.mark.parametrize(
    "joint",
    [
        helper.make_node("Concat", ["x", "whole"], ["y"], name="join", axis=1),
        helper.make_node("Add", ["x", "whole"], ["y"], name="join"),
    ],
    ids=lambda node: node.op_type,
)
def test_a_skip_connection_of_an_odd_image(joint: onnx.NodeProto) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["half"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("ConvTranspose", ["half", "spread"], ["whole"], strides=[2, 2]),
        joint,
    ]
    weights = {"kernel": numbers(4, 4, 3, 3), "spread": numbers(4, 4, 2, 2, seed=1)}
    model = model_of(nodes, {"x": ("float32", [1, 4, "h", "w"])}, ["y"], weights)
    engine = mlirt.compile(model, "cpu")
    x = numbers(1, 4, 6, 8)
    np.testing.assert_allclose(
        engine.run({"x": x})["y"], mlirt.compile(model, "reference").run({"x": x})["y"], 1e-4, 1e-5
    )
    for sides, lengths in (((5, 8), "5 and 6"), ((6, 7), "7 and 8")):
        with pytest.raises(InvalidInputError, match=f"layer join: .*{lengths.replace(' and ', '.* ')}"):
            engine.run({"x": numbers(1, 4, *sides)})


def test_numbers_of_elements_that_the_data_tells() -> None:
    nodes = [
        helper.make_node("NonZero", ["a"], ["p"]),
        helper.make_node("NonZero", ["b"], ["q"]),
        helper.make_node("Add", ["p", "q"], ["y"], name="join"),
    ]
    model = model_of(nodes, {"a": ("float32", [None]), "b": ("float32", [None])}, ["y"], {})
    engine = mlirt.compile(model, "cpu")
    few, many = np.ones(3, np.float32), np.ones(70000, np.float32)
    for a, b in ((few, many), (many, few)):
        found = rf"layer join: its inputs have the lengths {b.size} and {a.size} .* \(nonzero\d+ and broadcast"
        with pytest.raises(InvalidInputError, match=found):
            engine.run({"a": a, "b": b})
        with pytest.raises(InvalidInputError, match="layer join"):
            mlirt.compile(model, "reference").run({"a": a, "b": b})
        np.testing.assert_array_equal(engine.run({"a": a, "b": a})["y"], [2 * np.arange(a.size)])


def test_a_shape_that_the_data_tells() -> None:
    """As the rows of a reshape, compared with the columns of what they are multiplied with."""
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y"], name="product"),
    ]
    model = model_of(nodes, {"x": ("float32", ["n"]), "shape": ("int64", [2])}, ["y"], {"w": numbers(4, 5)})
    engine = mlirt.compile(model, "cpu")
    x = numbers(24)
    assert engine.run({"x": x, "shape": np.array([6, 4])})["y"].shape == (6, 5)
    with pytest.raises(InvalidInputError, match=r"layer product: columns of lhs .*: expected 12, got 4"):
        engine.run({"x": x, "shape": np.array([2, 12])})
    assert engine.run({"x": x[:8], "shape": np.array([2, 4])})["y"].shape == (2, 5)


def test_a_branch_needs_its_lengths_where_a_run_takes_it() -> None:
    taken = helper.make_graph(
        [helper.make_node("Add", ["x", "twice"], ["t"], name="join")], "then", [], [tensor_info("t", "float32", ["t"])]
    )
    left = helper.make_graph([helper.make_node("Relu", ["x"], ["e"])], "else", [], [tensor_info("e", "float32", ["e"])])
    nodes = [
        helper.make_node("MaxPool", ["x"], ["half"], kernel_shape=[2], strides=[2]),
        helper.make_node("Concat", ["half", "half"], ["twice"], axis=2),
        helper.make_node("If", ["c"], ["y"], then_branch=taken, else_branch=left),
    ]
    model = model_of(nodes, {"x": ("float32", [1, 1, "n"]), "c": ("bool", [])}, ["y"], {})
    engine = mlirt.compile(model, "cpu")
    odd, even = np.ones((1, 1, 5), np.float32), np.ones((1, 1, 4), np.float32)
    np.testing.assert_array_equal(engine.run({"x": even, "c": np.array(True)})["y"], 2 * even)
    np.testing.assert_array_equal(engine.run({"x": odd, "c": np.array(False)})["y"], odd)
    message = r"layer join: its inputs have the lengths 5 and 4 where they must be equal, or the first 1 "
    with pytest.raises(InvalidInputError, match=message):
        engine.run({"x": odd, "c": np.array(True)})
    assert isinstance(engine, mlirt.Engine)
    with pytest.raises(InvalidInputError, match="layer join"):
        engine.context.run_timed({"x": odd, "c": np.array(True)})


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_parts_that_do_not_make_up_a_length_of_the_run(target: str) -> None:
    """They would be read from behind the end of the caller's array, or leave its rest behind."""
    nodes = [
        helper.make_node("Split", ["x", "parts"], ["a", "b"], name="cut", axis=0),
        helper.make_node("Neg", ["a"], ["y"]),
        helper.make_node("Neg", ["b"], ["z"]),
    ]
    model = model_of(nodes, {"x": ("float32", ["n", 4])}, ["y", "z"], {"parts": np.array([3, 5])})
    engine = mlirt.compile(model, target)
    big = numbers(12, 4)
    np.testing.assert_array_equal(engine.run({"x": big[:8]})["z"], -big[3:8])
    for rows in (10, 6, 2, 0):
        with pytest.raises(InvalidInputError, match="layer cut"):
            engine.run({"x": big[:rows]})


def test_parts_of_a_length_that_the_data_tells() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["p"]),
        helper.make_node("Split", ["p", "parts"], ["y", "z"], name="cut", axis=1),
    ]
    model = model_of(nodes, {"x": ("float32", ["n"])}, ["y", "z"], {"parts": np.array([3, 5])})
    engine = mlirt.compile(model, "cpu")
    np.testing.assert_array_equal(engine.run({"x": np.ones(8, np.float32)})["z"], [[3, 4, 5, 6, 7]])
    for count in (7, 9):
        with pytest.raises(InvalidInputError, match=f"layer cut: its parts 3 and 5 add up to 8, but .* length {count}"):
            engine.run({"x": np.ones(count, np.float32)})


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
def test_channels_that_weights_do_not_have(target: str, kind: str) -> None:
    nodes = [helper.make_node(kind, ["x", "w"], ["y"], name="layer1")]
    model = model_of(nodes, {"x": ("float32", [1, "c", 2, 2])}, ["y"], {"w": numbers(3, 3, 1, 1)})
    engine = mlirt.compile(model, target)
    assert engine.run({"x": numbers(1, 3, 2, 2)})["y"].shape == (1, 3, 2, 2)
    for count in (1, 2, 8):
        with pytest.raises(InvalidInputError, match="layer layer1"):
            engine.run({"x": numbers(1, count, 2, 2)})


@pytest.mark.parametrize("kind", ["convolution", "deconvolution", "fully_connected"])
def test_channels_of_a_network_are_those_of_its_weights(kind: str) -> None:
    """tensorrt-features.md#1.12 and 6.9: -1 input channels are what the weights have, whatever the profile says."""
    builder = mlirt.Builder(mlirt.Logger(mlirt.Logger.INTERNAL_ERROR))
    network = builder.create_network(1)
    x = network.add_input("x", mlirt.float32, (1, -1, 2, 2))
    if kind == "convolution":
        layer = network.add_convolution_nd(x, 1, (1, 1), np.ones((1, 3, 1, 1), np.float32))
    elif kind == "deconvolution":
        layer = network.add_deconvolution_nd(x, 1, (1, 1), np.ones((3, 1, 1, 1), np.float32))
    else:
        layer = network.add_fully_connected(x, 2, np.ones((2, 12), np.float32))
    network.mark_output(layer.get_output(0))
    config = builder.create_builder_config()
    config.target = "cpu"
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 1, 2, 2), (1, 3, 2, 2), (1, 8, 2, 2))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    engine = mlirt.Runtime(mlirt.Logger(mlirt.Logger.INTERNAL_ERROR)).deserialize_cuda_engine(plan)
    assert engine is not None
    context = engine.create_execution_context()
    assert [context.set_input_shape("x", (1, count, 2, 2)) for count in (3, 2, 8, 1)] == [True, False, False, False]
