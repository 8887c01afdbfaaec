"""Convolutions into tensor memory on tensors with the channels innermost, against the reference."""

from __future__ import annotations

import gpu_kernels
import numpy as np
import onnx
import pytest
from contractions import DTYPES, TOLERANCE, Problem, channels_last_text
from gpu_kernels import check_on_threads
from onnx import helper, numpy_helper
from quantized_contractions import quantized_convolution_text, random_bytes

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_phases


@pytest.fixture(autouse=True)
def few_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block has several tiles, so that both tiles of accumulators are used again."""
    monkeypatch.setattr(gpu_kernels, "DEVICE", "b200+processors=2")


def check(problem: Problem, choice: str, element: str, features: str = "", tolerance: float = 0) -> str:
    """Compare a convolution in one configuration; the text of its kernels."""
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    name = f'{{fused.tactic = "cuda_tcgen05:{choice}", stride'
    text = channels_last_text(problem, element).replace("{stride", name, 1)
    return str(check_on_threads(text, inputs, tolerance=tolerance or TOLERANCE[element], features=features))


KINDS = {
    "3 x 3, batch 5": (Problem((5, 64, 9, 7), (40, 64, 3, 3), pre=(1,), post=(1,), residual=True), "128x64s3"),
    "short lines": (Problem((2, 24, 9, 7), (40, 24, 3, 3), pre=(1,), post=(1,)), "128x64s3"),
    "everything uneven": (
        Problem((1, 16, 12, 10), (72, 16, 3, 2), (1, 2), (2, 1), pre=(1, 0), post=(2, 1), residual=True),
        "128x96s3",
    ),
    "an odd number of channels": (Problem((2, 64, 9, 7), (75, 64, 3, 3), pre=(1,), residual=True), "128x128s3"),
    "pixels as rows": (Problem((5, 64, 5, 7), (64, 64, 1, 1), residual=True), "128x32s3"),
    "one dimension": (Problem((1, 8, 150), (10, 8, 5), dilation=(2,), pre=(4,), post=(4,)), "128x32s3"),
    "three dimensions": (
        Problem((1, 8, 5, 6, 7), (9, 8, 2, 3, 2), stride=(1, 2, 1), pre=(0, 1, 1), post=(1, 1, 0)),
        "128x32s3",
    ),
    "groups": (Problem((2, 64, 9, 9), (64, 32, 3, 3), pre=(1,), post=(1,), groups=2, residual=True), "128x32s3"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_convolutions(kind: str) -> None:
    problem, choice = KINDS[kind]
    element = "bf16" if kind == "groups" else "f16"
    text = check(problem, choice, element)
    assert "kernel.tensor_mma" in text
    assert ("kernel.load_window" in text) == (kind != "pixels as rows")
    assert ("line = 64" in text) == (problem.kernel[1] * DTYPES[element].itemsize <= 64)


def test_floats_that_may_be_rounded() -> None:
    problem, choice = KINDS["3 x 3, batch 5"]
    assert "kernel.tensor_mma tf32" in check(problem, choice, "f32", "tf32", 2e-3)


@pytest.mark.parametrize(
    ("element", "result", "residual"), [("i8", "i8", ""), ("ui8", "ui8", "i8"), ("i8", "f16", "ui8")]
)
def test_int8_bit_by_bit(element: str, result: str, residual: str) -> None:
    problem = Problem((2, 80, 9, 15), (40, 80, 3, 3), pre=(1,), post=(1,))
    tactic = "cuda_tcgen05:128x64s3"
    text = quantized_convolution_text(problem, element, result, residual=residual, tactic=tactic, last=True)
    inputs = {"x": random_bytes(problem.input, element), "r": random_bytes(problem.output, residual or "i8", 1)}
    assert f"kernel.tensor_mma {'s8' if element == 'i8' else 'u8'}" in str(check_on_threads(text, inputs))


def test_a_residual_block_in_half_precision() -> None:
    """All phases, with the layouts that a B200 has: each convolution is one into tensor memory."""
    rng = np.random.default_rng(0)
    shapes = {"w1": (64, 64, 3, 3), "w2": (128, 64, 1, 1), "w3": (64, 128, 1, 1)}
    weights = {name: (rng.standard_normal(shape) / 24).astype(np.float32) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "w3"], ["e"]),
        helper.make_node("Add", ["e", "x"], ["y"]),
    ]
    size = (5, 64, 32, 32)
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, size) for name in ("x", "y")]
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "block", values[:1], values[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    context = RtContext()
    module = import_model(model, context)
    inputs = {"x": rng.standard_normal(size).astype(np.float32)}
    want = interpret(module, context, inputs)["y"]
    options = PipelineOptions("cuda", "fp16", TargetMachine.for_device("cuda", "b200+processors=8"))
    run_phases(module, context, options=options)
    assert str(module).count("kernel.tensor_mma") == 3
    np.testing.assert_allclose(run_plan(module, context, inputs)["y"], want, rtol=0, atol=4e-3 * np.abs(want).max())
