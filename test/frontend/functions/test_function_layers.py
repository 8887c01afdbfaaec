"""Ops that functions compute: as nodes of ONNX models, in plans, and what is said where they do not fit."""

from __future__ import annotations

import logging
import math
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from onnx import ModelProto, helper
from onnx_models import model_of

import mlirt
from mlirt.errors import InvalidInputError, InvalidModelError, PluginError, UnsupportedError
from mlirt.tensorrt.plugins.functions.function_plugin import FunctionCreator

X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(2, 6)


@pytest.fixture(autouse=True)
def no_ops_are_left() -> Generator[None]:
    """Each test has the ops that it registers, and none else."""
    yield
    registry = mlirt.get_plugin_registry()
    for creator in registry.all_creators:
        if isinstance(creator, FunctionCreator):
            registry.deregister_creator(creator)


def model(op: str, inputs: str = "x", outputs: str = "b", **attributes: Any) -> ModelProto:
    """relu, a node of the domain `mine`, and the negative of its first result."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node(op, ["a", *inputs.split()[1:]], outputs.split(), name="node", domain="mine", **attributes),
        helper.make_node("Neg", [outputs.split()[0]], ["y"], name="neg"),
    ]
    kinds = {name: ("float32", ["n", 6] if name == "x" else [1, 6]) for name in inputs.split()}
    return model_of(nodes, kinds, ["y", *outputs.split()[1:]], domains=["mine"])


def swish(x: float, *, beta: float = 1.0) -> float:
    return x / (1 + math.exp(-beta * x))


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_function_of_numbers_is_fused(target: str) -> None:
    assert mlirt.op("mine::Swish")(swish) is swish
    engine = mlirt.compile(model("Swish", beta=2.0), target=target)
    expected = -np.maximum(X, 0) / (1 + np.exp(-2 * np.maximum(X, 0)))
    np.testing.assert_allclose(engine.run({"x": X})["y"], expected, rtol=1e-5)
    if target == "cpu":
        assert [layer["name"] for layer in engine.layers] == ["relu + node + neg"]


def test_function_of_numbers_is_fused_for_cuda() -> None:
    mlirt.op("mine::Swish")(swish)
    engine = mlirt.compile(model("Swish"), target="cuda", heuristic=True)
    assert [layer["name"] for layer in engine.layers] == ["relu + node + neg"]


def test_broadcast_and_type() -> None:
    @mlirt.op("mine::Above", types="int32")
    def above(x: float, y: float) -> bool:
        return x > y

    assert above(2.0, 1.0)
    y = np.full((1, 6), 0.5, np.float32)
    found = mlirt.compile(model("Above", "x w"), target="cpu").run({"x": X, "w": y})["y"]
    np.testing.assert_array_equal(found, -(np.maximum(X, 0) > y).astype(np.int32))


def test_result_that_reads_one_input_is_as_long_as_all() -> None:
    @mlirt.op("mine::Second")
    def second(x: float, y: float) -> float:
        return y

    assert second(1.0, 2.0) == 2.0
    y = np.arange(6, dtype=np.float32).reshape(1, 6)
    found = mlirt.compile(model("Second", "x w"), target="cpu").run({"x": X, "w": y})["y"]
    np.testing.assert_array_equal(found, np.repeat(-y, 2, 0))


def gamma(x: float, *, shift: float) -> float:
    return math.gamma(x + shift)


def test_function_that_is_not_read_runs_on_the_cpu(caplog: pytest.LogCaptureFixture) -> None:
    mlirt.op("mine::Gamma")(gamma)
    with caplog.at_level(logging.INFO, "mlirt"):
        engine = mlirt.compile(model("Gamma", shift=1.0), target="cpu")
    assert "mine::Gamma is called as a plugin on the CPU, element by element" in caplog.text
    expected = [-math.gamma(max(x, 0) + 1) for x in X.ravel()]
    np.testing.assert_allclose(engine.run({"x": X})["y"].ravel(), expected, rtol=1e-5)
    with pytest.raises(UnsupportedError) as caught:
        mlirt.compile(model("Gamma", shift=1.0), target="cuda", heuristic=True)
    text = str(caught.value)
    assert text.startswith("layer node: mine::Gamma is a Python function that runs on CPUs (line")
    assert "math.gamma has no layer" in text
    assert "mlirt.plugin.impl" in text
    assert "\n" not in text


def late(x: float, y: float) -> float:
    z = x * y + y
    return math.gamma(z)


def test_function_that_is_read_in_part() -> None:
    """The layers of its first lines are nobody's, and what they read is there for the plugin and those behind it."""
    mlirt.op("mine::Late")(late)
    nodes = [
        helper.make_node("Late", ["x", "w"], ["a"], name="node", domain="mine"),
        helper.make_node("Add", ["a", "w"], ["y"], name="add"),
    ]
    kinds = {"x": ("float32", [2, 6])}
    partly = model_of(nodes, kinds, ["y"], {"w": np.full((1, 6), 0.5, np.float32)}, domains=["mine"])
    engine = mlirt.compile(partly, target="cpu")
    assert [layer["name"] for layer in engine.layers] == ["node", "add"]
    expected = [[late(float(x), 0.5) + 0.5 for x in row] for row in np.abs(X)]
    np.testing.assert_allclose(engine.run({"x": np.abs(X)})["y"], expected, rtol=1e-5)


def frames(signal: Any, *, size: int, step: int = 1) -> Any:
    return np.lib.stride_tricks.sliding_window_view(signal, size, axis=1)[:, ::step]


def frame_shape(signal: Any, size: int, step: int) -> Any:
    return signal[0], (signal[1] - size) // step + 1, size


def test_function_of_arrays_in_a_plan(tmp_path: Path) -> None:
    """The plan holds attributes; who opens it registers the op first."""
    mlirt.op("mine::Frames", shapes=frame_shape)(frames)
    engine = mlirt.compile(model("Frames", size=4, step=2), target="cpu")
    assert str(engine.outputs[0]) == "y float32[n, 2, 4]"
    expected = -frames(np.maximum(X, 0), size=4, step=2)
    np.testing.assert_array_equal(engine.run({"x": X})["y"], expected)
    engine.save(tmp_path / "frames.plan")
    np.testing.assert_array_equal(mlirt.load(tmp_path / "frames.plan").run({"x": X})["y"], expected)
    creator = mlirt.get_plugin_registry().get_creator("Frames", "1", "mine")
    assert creator is not None
    mlirt.get_plugin_registry().deregister_creator(creator)
    with pytest.raises(PluginError, match="could not find Plugin Frames version 1 in namespace 'mine'"):
        mlirt.load(tmp_path / "frames.plan")


def test_several_outputs_and_numba() -> None:
    def shapes(x: Any) -> Any:
        return [(x[0],), (x[0],)]

    @mlirt.op("mine::Extremes", shapes=shapes, types=["float32", "int64"])
    @numba.njit
    def extremes(x: Any) -> Any:
        rows = x.shape[0]
        largest, place = np.empty(rows, np.float32), np.empty(rows, np.int64)
        for row in range(rows):
            place[row] = x[row].argmax()
            largest[row] = x[row, place[row]]
        return largest, place

    found = mlirt.compile(model("Extremes", outputs="b c"), target="cpu").run({"x": X})
    np.testing.assert_array_equal(found["y"], -np.maximum(X, 0).max(1))
    np.testing.assert_array_equal(found["c"], np.maximum(X, 0).argmax(1))


def test_op_without_a_domain_serves_all() -> None:
    mlirt.op("Swish")(swish)
    engine = mlirt.compile(model("Swish"), target="cpu")
    assert [layer["name"] for layer in engine.layers] == ["relu + node + neg"]


def test_registering_again_replaces() -> None:
    mlirt.op("mine::Swish")(swish)

    @mlirt.op("mine::Swish")
    def other(x: float) -> float:
        return x + 1

    np.testing.assert_array_equal(
        mlirt.compile(model("Swish"), target="cpu").run({"x": X})["y"], -np.maximum(X, 0) - other(0.0)
    )


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"step": 2}, "node 'node'): mine::Frames needs the attribute 'size', which has no default"),
        ({"size": 4, "hop": 2}, "mine::Frames has no attribute 'hop'; its attributes are size, step"),
    ],
)
def test_attributes_that_do_not_fit(attributes: dict[str, int], why: str) -> None:
    mlirt.op("mine::Frames", shapes=frame_shape)(frames)
    with pytest.raises(InvalidModelError) as caught:
        mlirt.compile(model("Frames", "x", "b", **attributes), target="cpu")
    assert why in str(caught.value)


def test_inputs_that_do_not_fit() -> None:
    mlirt.op("mine::Swish")(swish)
    with pytest.raises(InvalidModelError, match=r"mine::Swish has 1 inputs \(x\), got 2"):
        mlirt.compile(model("Swish", "x w"), target="cpu")


def shorter(x: Any) -> Any:
    return x[:, 1:]


def complex_numbers(x: Any) -> Any:
    return x + 1j


def twice(x: Any) -> Any:
    return x, x


def failing(x: Any) -> Any:
    return x.nothing


def writing(x: Any) -> Any:
    return x.fill(0)


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (shorter, r"result 0 has the shape \(2, 5\), expected \(2, 6\); see shapes="),
        (complex_numbers, "result 0 has the type complex64, expected float32; see types="),
        (twice, "it returned 2 arrays, expected 1"),
        (failing, "failed in enqueue: AttributeError"),
        (writing, "failed in enqueue: ValueError: assignment destination is read-only"),
    ],
)
def test_results_that_do_not_fit(result: Any, why: str) -> None:
    mlirt.op("mine::Same")(result)
    engine = mlirt.compile(model("Same"), target="cpu")
    with pytest.raises(PluginError, match=why):
        engine.run({"x": X})


@pytest.mark.parametrize("name", ["a::b::c", "::b", "a::", ""])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(InvalidInputError, match="is no name of an op; expected 'domain::Name'"):
        mlirt.op(name)(swish)


def test_shapes_that_need_lengths_now() -> None:
    def shapes(x: Any) -> Any:
        return max(x[0], 4), x[1]

    mlirt.op("mine::Padded", shapes=shapes)(twice)
    with pytest.raises(InvalidModelError, match=r"node.*length x0.0 is not known when the network is built"):
        mlirt.compile(model("Padded"), target="cpu")
