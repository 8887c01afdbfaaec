"""ONNX models with branches and loops: parsed, built by the Builder and run (tensorrt-features.md#7.21, 8.12, 11.13).
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from layer_networks import Array, CollectingLogger
from network_engines import built, cpu_config, parsed, run
from onnx import parser
from onnx.backend.test.case.node import collect_testcases
from onnx_control_flow import SUM_EVEN, UNTIL_LARGE, model, scan_model
from onnx_models import numbers, run_onnxruntime

import mlirt as trt

IF = """
<ir_version: 8, opset_import: ["" : 17]>
choose (bool c, float[n] x) => (float[n] y) {
   y = If (c) <
      then_branch: graph = a () => (float[n] p) { p = Relu (x) },
      else_branch: graph = b () => (float[n] q) { q = Neg (x) }>
}
"""
NODES = (
    "test_if",
    "test_scan_sum",
    "test_scan9_sum",
    "test_scan9_scalar",
    "test_scan9_multi_state",
    "test_linear_attention_gated_delta",
    "test_linear_attention_prefill_with_past_expanded",
    "test_loop11",
)


def engine_of(made: onnx.ModelProto, shapes: dict[str, Any] | None = None) -> trt.ICudaEngine:
    logger = CollectingLogger()
    return built(parsed(made, logger), cpu_config(logger, shapes=shapes), logger)


def given(feeds: dict[str, Array]) -> dict[str, Array]:
    """Arrays as the engine takes them: INT64 inputs of a model are INT32 (tensorrt-features.md#11.7)."""
    return {name: array.astype(np.int32) if array.dtype == np.int64 else array for name, array in feeds.items()}


def check(engine: trt.ICudaEngine, made: onnx.ModelProto, feeds: dict[str, Array]) -> None:
    found = engine.engine.run(given(feeds))
    for got, want in zip(found.values(), run_onnxruntime(made, feeds), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_branches_8_12() -> None:
    made = model(IF)
    engine = engine_of(made, {"x": ([1], [4], [9])})
    context = engine.create_execution_context()
    x = np.array([-1, 2, -3], np.float32)
    for taken in (True, False):
        c = np.array(taken)
        check(engine, made, {"c": c, "x": x})
        found = run(context, {"c": c, "x": x})
        assert found is not None
        np.testing.assert_array_equal(found["y"], np.maximum(x, 0) if taken else -x)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_trip_count_from_an_input_7_21(count: int) -> None:
    made = model(SUM_EVEN)
    check(engine_of(made, {"items": ([1], [5], [9])}), made, {"items": numbers(5), "count": np.array(count)})


def test_end_by_a_condition_7_21() -> None:
    made = model(UNTIL_LARGE)
    check(engine_of(made), made, {"x": np.array([1, 2, 3], np.float32), "limit": np.array(20, np.float32)})


@pytest.mark.parametrize("direction", [0, 1])
def test_scan_11_13(direction: int) -> None:
    made = scan_model((1, 0), (direction, 0), (3, 4))
    check(engine_of(made), made, {"start": numbers(3), "x": numbers(3, 4, seed=1)})


def test_the_network_of_the_example_11_13() -> None:
    example = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "control_flow.py"))
    made = parser.parse_model(example["SUM_EVEN"])
    engine = engine_of(made, {"items": ([1], [4], [9])})
    assert engine.engine.run({"items": np.array([2, 3, 4], np.int32)})["total"] == 6


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    with np.errstate(all="ignore"):  # what the cases of other ops expect is computed as well
        return {case.name: case for case in collect_testcases(None) if case.name in NODES}


@pytest.mark.parametrize("name", NODES)
def test_node_tests_of_onnx_11_13(cases: dict[str, Any], name: str) -> None:
    case = cases[name]
    engine = engine_of(case.model)
    for inputs, outputs in case.data_sets:
        names = (one.name for one in case.model.graph.input)
        found = engine.engine.run(given({one: np.asarray(array) for one, array in zip(names, inputs, strict=True)}))
        for got, want in zip(found.values(), outputs, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


def test_layers_of_numbers_have_a_type_11_13() -> None:
    """The condition of an imported branch is a tensor without dimensions for who walks through the network."""
    network = parsed(model(IF))
    inputs = [one for layer in network for k in range(layer.num_inputs) if (one := layer.get_input(k)) is not None]
    outputs = [layer.get_output(k) for layer in network for k in range(layer.num_outputs)]
    assert trt.bool in {one.dtype for one in (*inputs, *outputs)}
    assert all(len(one.shape) <= 1 for one in (*inputs, *outputs))
