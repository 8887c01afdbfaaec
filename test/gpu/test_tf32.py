"""Convolutions whose floats the matrix units read with 10 bits of mantissa."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from convolution_chain import chain
from one_tactic import Onlooker, Only
from onnx import TensorProto, helper, numpy_helper
from repeated_runs import differing_runs

import mlirt
from mlirt.builder.tactics.algorithm_selector import Algorithm, AlgorithmContext, AlgorithmSelector

pytestmark = pytest.mark.gpu

TOLERANCE = 3e-3  # of the largest value; three layers of roundings to 10 bits


@pytest.mark.parametrize("image", [(2, 64, 56, 54), (1, 72, 29, 27), (8, 128, 14, 14)])
def test_a_chain_of_convolutions(image: tuple[int, ...]) -> None:
    model, onlooker = chain(image, (128, 100, 64), {}), Onlooker()
    engine = mlirt.compile(model, "cuda", "tf32", algorithm_selector=onlooker, heuristic=True)
    assert any(name.startswith("cuda_wgmma") for name in onlooker.taken)
    x = np.random.default_rng(1).standard_normal(image, np.float32)
    (want,) = mlirt.compile(model, "reference").run({"x": x}).values()
    (found,) = engine.run({"x": x}).values()
    np.testing.assert_allclose(found, want, rtol=0, atol=TOLERANCE * float(np.abs(want).max()))
    assert not np.array_equal(found, want)
    assert differing_runs(engine, {"x": x}, 20) == []


def positive(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Numbers with all bits of the mantissa, whose sums keep the errors of their products."""
    return np.random.default_rng(seed).random(shape, np.float32) + np.float32(0.5)


def one_layer(op: str, x: tuple[int, ...], w: tuple[int, ...], known: bool, **settings: Any) -> onnx.ModelProto:
    """A product or a convolution of positive numbers, with weights or of two inputs."""
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)]
    values += [] if known else [helper.make_tensor_value_info("w", TensorProto.FLOAT, w)]
    weights = [numpy_helper.from_array(positive(w, 2), "w")] if known else []
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node(op, ["x", "w"], ["y"], name="layer", **settings)
    graph = helper.make_graph([node], "layer", values, [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


LAYERS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], bool, dict[str, Any]]] = {
    "product": ("MatMul", (256, 1000), (1000, 192), True, {}),
    "product of two inputs": ("Gemm", (256, 1000), (192, 1000), False, {"transB": 1}),
    "3 x 3": ("Conv", (2, 64, 28, 26), (96, 64, 3, 3), True, {"pads": [1, 1, 1, 1]}),
    "1 x 1": ("Conv", (2, 512, 28, 26), (256, 512, 1, 1), True, {}),
    "stride": ("Conv", (2, 144, 57, 55), (192, 144, 3, 3), True, {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "few channels": ("Conv", (2, 3, 64, 60), (64, 3, 7, 7), True, {"strides": [2, 2], "pads": [3, 3, 3, 3]}),
    "three dimensions": ("Conv", (1, 16, 8, 14, 14), (48, 16, 3, 3, 3), True, {"pads": [1] * 6}),
}


class Kinds(AlgorithmSelector):
    """Notes the tactics of warpgroups that are offered: one for each kind of tile, whatever its sizes."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def select_algorithms(self, context: AlgorithmContext, choices: Sequence[Algorithm]) -> list[int]:
        ours = [one.name for one in choices if one.name.startswith("cuda_wgmma")]
        self.names |= {re.sub(r"\d+", "", name): name for name in ours}
        return []

    def report_algorithms(self, contexts: Sequence[AlgorithmContext], choices: Sequence[Algorithm]) -> None: ...


@pytest.mark.parametrize("layer", LAYERS)
def test_errors_go_in_both_directions(layer: str) -> None:
    """Operands whose lower bits are cut off make sums of positive numbers 7e-4 smaller."""
    op, x, w, known, settings = LAYERS[layer]
    model, kinds = one_layer(op, x, w, known, **settings), Kinds()
    mlirt.compile(model, "cuda", "tf32", algorithm_selector=kinds, heuristic=True)
    assert kinds.names
    inputs = {"x": positive(x, 1)} if known else {"x": positive(x, 1), "w": positive(w, 2)}
    (want,) = mlirt.compile(model, "reference").run(inputs).values()
    for name in kinds.names.values():
        selector = Only(name)
        engine = mlirt.compile(model, "cuda", "tf32", algorithm_selector=selector, heuristic=True)
        assert name in selector.taken
        (found,) = engine.run(inputs).values()
        assert not np.array_equal(found, want), name
        assert abs(float((found / want.astype(np.float64)).mean()) - 1) < 5e-5, name


def test_every_way_that_is_measured_errs_in_both_directions() -> None:
    """The libraries' too, as far as they are here."""
    for layer in LAYERS:
        op, x, w, known, settings = LAYERS[layer]
        model = one_layer(op, x, w, known, **settings)
        engine = mlirt.compile(model, "cuda", "tf32", min_timing_iterations=3)
        inputs = {"x": positive(x, 1)} if known else {"x": positive(x, 1), "w": positive(w, 2)}
        (found,) = engine.run(inputs).values()
        (want,) = mlirt.compile(model, "reference").run(inputs).values()
        assert abs(float((found / want.astype(np.float64)).mean()) - 1) < 5e-5, layer


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays(special: float) -> None:
    x = positive((64, 128), 1)
    x[3, 5] = special
    model, kinds = one_layer("MatMul", (64, 128), (128, 64), True), Kinds()
    mlirt.compile(model, "cuda", "tf32", algorithm_selector=kinds, heuristic=True)
    selector = Only(next(iter(kinds.names.values())))
    engine = mlirt.compile(model, "cuda", "tf32", algorithm_selector=selector, heuristic=True)
    assert selector.name in selector.taken
    (found,) = engine.run({"x": x}).values()
    np.testing.assert_array_equal(found[3], np.full(64, special, np.float32))
    assert np.isfinite(np.delete(found, 3, 0)).all()
