"""Plans that keep their network are built again with other weights: by ONNX names, with the same tactics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import model_of

import mlirt
from mlirt.builder.build import BuildOptions, build_plan
from mlirt.builder.refit import KeptNetwork
from mlirt.builder.tactics.algorithm_selector import Algorithm, AlgorithmContext
from mlirt.builder.tactics.selection import Tuning
from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidInputError
from mlirt.frontend.onnx.importer import import_model
from mlirt.runtime.engine import Engine
from mlirt.runtime.plan_file import Plan

X = np.arange(12, dtype=np.float32).reshape(2, 6) / 12


def network(kernel: np.ndarray, bias: np.ndarray) -> onnx.ModelProto:
    nodes = [helper.make_node("Gemm", ["x", "kernel", "bias"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    model = model_of(nodes, {"x": ("float32", ["n", 6])}, ["y"])
    for name, array in (("kernel", kernel), ("bias", bias)):
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def weights(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.standard_normal((6, 64)).astype(np.float32), random.standard_normal(64).astype(np.float32)


def test_initializers_have_names(tmp_path: Path) -> None:
    """tensorrt-features.md#14.3 and 14.6: a saved engine gives what one does that is built with the weights."""
    (kernel, bias), (other, _) = weights(0), weights(1)
    mlirt.compile(network(kernel, bias), "cpu", refittable=True).save(tmp_path / "a.plan")
    engine = mlirt.load(tmp_path / "a.plan")
    known = mlirt.refittable_weights(engine)
    assert set(known) == {"kernel", "bias"}
    np.testing.assert_array_equal(known["bias"].reshape(-1), bias)
    found = mlirt.refit(engine, {"kernel": other}).run({"x": X})["y"]
    want = mlirt.compile(network(other, bias), "cpu").run({"x": X})["y"]
    np.testing.assert_array_equal(found, want)
    with pytest.raises(InvalidInputError, match="no weights 'w'; it has kernel, bias"):
        mlirt.refit(engine, {"w": other})
    with pytest.raises(InvalidInputError, match=r"kernel: expected floating-point weights of shape \[6, 64\]"):
        mlirt.refit(engine, {"kernel": bias})


def test_statistics_have_names() -> None:
    """tensorrt-features.md#14.3 and 14.11: each of a normalisation's weights, although all are folded into the
    convolution.
    """
    random = np.random.default_rng(3)
    stored = {name: random.uniform(0.5, 2, 4).astype(np.float32) for name in ("gamma", "beta", "mean", "variance")}
    stored["kernel"] = random.standard_normal((4, 3, 3, 3)).astype(np.float32)

    def normalized(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
        statistics = ["gamma", "beta", "mean", "variance"]
        nodes = [
            helper.make_node("Conv", ["x", "kernel"], ["a"], name="conv"),
            helper.make_node("BatchNormalization", ["a", *statistics], ["y"], name="norm"),
        ]
        model = model_of(nodes, {"x": ("float32", ["n", 3, 8, 8])}, ["y"])
        model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
        return model

    engine, plain = (mlirt.compile(normalized(stored), "cpu", refittable=keeps) for keeps in (True, False))
    assert isinstance(engine, Engine)
    assert [layer["name"] for layer in engine.layers] == [layer["name"] for layer in plain.layers]
    assert set(mlirt.refittable_weights(engine)) == set(stored)
    new = {"variance": stored["variance"] * 4, "beta": stored["beta"] - 1}
    feeds = {"x": random.standard_normal((2, 3, 8, 8)).astype(np.float32)}
    want = mlirt.compile(normalized(stored | new), "cpu").run(feeds)["y"]
    np.testing.assert_allclose(mlirt.refit(engine, new).run(feeds)["y"], want, rtol=1e-4, atol=1e-5)


def test_plain_plans_keep_nothing() -> None:
    """tensorrt-features.md#14.1."""
    engine = mlirt.compile(network(*weights(0)), "cpu")
    assert isinstance(engine, Engine)
    with pytest.raises(InvalidInputError, match="refittable=True"):
        mlirt.refit(engine, {})


class Last:
    """Takes the way that nobody would take by himself."""

    def select_algorithms(self, context: AlgorithmContext, choices: Sequence[Algorithm]) -> list[int]:
        return [len(choices) - 1]

    def report_algorithms(self, contexts: Sequence[AlgorithmContext], choices: Sequence[Algorithm]) -> None:
        """Nothing to do."""


def test_tactics_are_those_of_the_first_build() -> None:
    """tensorrt-features.md#14.6 and 22.2: a GPU's kernels stay the same, and nothing is measured."""
    ctx = RtContext()
    module = import_model(network(*weights(0)), ctx)
    other = RtContext()
    usual = build_plan(
        import_model(network(*weights(0)), other), other, "cuda", BuildOptions(architectures=("sm_90a",))
    )
    options = BuildOptions(tuning=Tuning(selector=Last()), refittable=True, architectures=("sm_90a",))
    odd = build_plan(module, ctx, "cuda", options)
    again = KeptNetwork(odd).plan()

    def kernels(plan: Plan) -> list[str]:
        return [kernel.name for kernel in plan.manifest.kernels]

    assert kernels(odd) != kernels(usual)
    assert kernels(again) == kernels(odd)


def test_scales_are_refused_by_name_14_9() -> None:
    """Of several constants of one name none has changed where one of them cannot."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "step", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "step", "zero"], ["y"]),
    ]
    model = model_of(nodes, {"x": ("float32", [2, 6])}, ["y"])
    for name, array in (("step", np.array(0.5, np.float32)), ("zero", np.array(3, np.int8))):
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    engine = mlirt.compile(model, "cpu", "int8", refittable=True)
    assert isinstance(engine, Engine)
    for scale in (0.0, -1.0, np.nan):
        with pytest.raises(InvalidInputError, match="step: expected scales greater than 0 for layer"):
            mlirt.refit(engine, {"step": np.array(scale, np.float32)})
    kept = KeptNetwork(engine.plan)
    with pytest.raises(InvalidInputError, match="greater than 0"):
        kept.replace_named("step", np.array(-1, np.float32))
    assert {float(kept.array_of(one)) for one in kept.named["step"]} == {0.5}
    np.testing.assert_allclose(
        mlirt.refit(engine, {"step": np.array(0.25, np.float32)}).run({"x": X})["y"], np.rint(X * 4) / 4
    )


def test_weights_that_were_zero_stay_so_14_9() -> None:
    """Channels that are all 0 have the scale 0, which is what a refit with the same weights gives again
    (tensorrt-features.md#10.5).
    """
    model = model_of(
        [helper.make_node("DequantizeLinear", ["x", "steps"], ["y"], axis=0)], {"x": ("int8", [2, 3])}, ["y"]
    )
    steps = np.array([0, 0.5], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(steps, "steps"))
    engine = mlirt.compile(model, "cpu", "int8", refittable=True)
    assert isinstance(engine, Engine)
    mlirt.refit(engine, {"steps": steps})
    with pytest.raises(InvalidInputError, match="greater than 0"):
        mlirt.refit(engine, {"steps": steps[::-1]})
