"""Convolutions whose tiles are boxes of pixels that were copied once, against the reference."""

from __future__ import annotations

import gpu_kernels
import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, Problem, channels_last_text, convolution_text
from gpu_kernels import check_on_threads
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lowered_network import parse_module
from quantized_contractions import quantized_convolution_text, random_bytes
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.tensor_copy import LoadBoxOp, LoadWindowOp
from mlirt.passes.pipeline import PassError, run_passes


def check(problem: Problem, choice: str, element: str = "f16") -> ModuleOp:
    """Compare a convolution in one configuration."""
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    name = f'{{fused.tactic = "cuda_wgmma_boxes:{choice}", stride'
    text = channels_last_text(problem, element).replace("{stride", name, 1)
    module = check_on_threads(text, inputs, tolerance=TOLERANCE[element])
    assert any(isinstance(op, LoadBoxOp) for op in module.walk())
    assert not any(isinstance(op, LoadWindowOp) for op in module.walk())
    return module


KINDS = {
    "3 x 3": (Problem((2, 64, 9, 7), (40, 64, 3, 3), pre=(1,), post=(1,), residual=True), "8x8n64g2s2"),
    "rows as they are": (Problem((2, 64, 9, 7), (40, 64, 3, 3), pre=(1,), post=(1,), residual=True), "7x7n64g2s1"),
    "channels beyond a line": (Problem((1, 72, 19, 11), (72, 72, 3, 3), pre=(1,), post=(1,)), "8x8n32g3s1"),
    "stride": (Problem((2, 64, 19, 12), (40, 64, 3, 3), stride=(2,), pre=(1,), post=(1,)), "8x8n64g2s1"),
    "stride, rows as they are": (Problem((2, 24, 19, 12), (40, 24, 3, 3), stride=(2,), pre=(1,)), "9x6n64g1s2"),
    "everything uneven": (
        Problem((1, 16, 12, 19), (72, 16, 3, 2), (1, 2), (2, 1), pre=(1, 0), post=(2, 1), residual=True),
        "8x8n64g2s2",
    ),
    "one after the other": (Problem((2, 72, 41, 19), (40, 72, 3, 3), pre=(1,), post=(1,)), "8x8n64g3ts1"),
    "four warpgroups": (Problem((2, 16, 61, 59), (40, 16, 3, 3), pre=(1,), post=(1,)), "8x8n64g4s1"),
    "pixels as rows, one after the other": (Problem((3, 72, 35, 17), (136, 72, 1, 1)), "1x64n64g3ts2"),
    "pixels as rows": (Problem((3, 72, 15, 7), (72, 72, 1, 1), residual=True), "1x64n64g2s2"),
    "residuals ahead": (Problem((3, 72, 15, 7), (136, 72, 1, 1), residual=True), "1x64n32g2s2e2"),
    "a large window": (Problem((1, 16, 14, 13), (16, 16, 5, 7), pre=(2, 3), post=(2, 3)), "8x8n32g2s1"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_kinds_of_convolutions(kind: str, element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_kernels, "DEVICE", "h200+processors=3")
    problem, choice = KINDS[kind]
    check(problem, choice, element)


FEW_CHANNELS = {
    "a picture": Problem((2, 3, 23, 21), (40, 3, 7, 7), stride=(2,), pre=(3,), post=(3,)),
    "one channel, uneven": Problem((1, 1, 12, 30), (16, 1, 3, 5), pre=(1, 2), post=(1, 2), residual=True),
    "lines of two tiles": Problem((2, 12, 9, 12), (24, 12, 3, 5), stride=(1, 2), pre=(1,), post=(1,)),
}


@pytest.mark.parametrize("kind", FEW_CHANNELS)
@pytest.mark.parametrize("last", [False, True])
def test_few_channels_are_joined_along_rows(kind: str, last: bool) -> None:
    problem = FEW_CHANNELS[kind]
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    text = (channels_last_text if last else convolution_text)(problem, "f16")
    text = text.replace("{stride", '{fused.tactic = "cuda_wgmma_row_boxes:8x8n64g2s2", stride', 1)
    module = check_on_threads(text, inputs, tolerance=TOLERANCE["f16"])
    assert not any(isinstance(op, LoadWindowOp) for op in module.walk())


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    window, sizes = pair(1, 3), pair(4, 17)
    assume(window != (1, 1))
    channels = 8 * data.draw(st.integers(1, 10))
    problem = Problem(
        (data.draw(st.integers(1, 2)), channels, *sizes),
        (data.draw(st.integers(8, 70)), channels, *window),
        *(pair(1, 2), pair(1, 2), pair(0, 2), pair(0, 2)),
        residual=data.draw(st.booleans()),
    )
    assume(min(problem.output[2:]) > 0)
    check(problem, data.draw(st.sampled_from(["8x8n32g2s1", "8x8n64g1s2", "8x8n32g4s1", "8x8n64g2ts1"])))


def test_sizes_that_the_run_tells() -> None:
    def type_(channels: int, order: str = "") -> str:
        return f'tensor<?x{channels}x?x?xf16, #trt.dims<["n", "{channels}", "h", "w"]{order}>>'

    x, y = type_(32), type_(40)
    x_last, y_last = (type_(channels, ", order = [0, 2, 3, 1]") for channels in (32, 40))
    walk = ", ".join(f"{name} = array<i64: 1, 1>" for name in ("stride", "dilation", "pre_padding", "post_padding"))
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({y} {{trt.name = "y"}}) {{
      %w = trt.constant {{value = dense<0.5> : tensor<40x32x3x3xf16>}} : tensor<40x32x3x3xf16>
      %a = fused.reformat %x : ({x}) -> {x_last}
      %b = fused.convolution %a, %w {{fused.tactic = "cuda_wgmma_boxes:8x8n64g2ts1", {walk}}}
          : ({x_last}, tensor<40x32x3x3xf16>) -> {y_last} {{
      ^bb0(%acc: f32):
        %h = arith.truncf %acc : f32 to f16
        fused.yield %h : f16
      }}
      %y = fused.reformat %b : ({y_last}) -> {y}
      func.return %y : {y}
    }}"""
    image = np.random.default_rng(0).standard_normal((3, 32, 11, 18)).astype(np.float16)
    check_on_threads(text, {"x": image}, tolerance=TOLERANCE["f16"])


@pytest.mark.parametrize("element", ["i8", "ui8"])
@pytest.mark.parametrize("channels", [32, 64, 144])
@pytest.mark.parametrize(("residual", "result"), [("", "i8"), ("ui8", "ui8"), ("i8", "f16")])
def test_bytes(element: str, channels: int, residual: str, result: str) -> None:
    problem = Problem((2, channels, 13, 9), (40, channels, 3, 3), pre=(1,), post=(1,))
    tactic = "cuda_wgmma_boxes:8x8n64g2s1"
    text = quantized_convolution_text(problem, element, result, residual=residual, tactic=tactic, last=True)
    inputs = {"x": random_bytes(problem.input, element), "r": random_bytes(problem.output, residual or "i8", 1)}
    module = check_on_threads(text, inputs)
    assert f"kernel.warpgroup_mma {'s8' if element == 'i8' else 'u8'}" in str(module)


@pytest.mark.parametrize(
    "problem",
    [
        Problem((1, 12, 9, 9), (16, 12, 3, 3)),  # pixels do not start at multiples of 16 bytes
        Problem((1, 16, 9, 9), (16, 8, 3, 3), groups=2),
        Problem((1, 512, 9, 9), (512, 512, 3, 3)),  # more weights than shared memory has package for
    ],
)
def test_others_are_left_to_other_tactics(problem: Problem) -> None:
    text = channels_last_text(problem, "f16").replace("{stride", '{fused.tactic = "cuda_wgmma_boxes", stride', 1)
    module, context = parse_module(text)
    with pytest.raises(PassError, match="does not lower"):
        run_passes(module, context, "convert-fused-to-kernel{target=cuda}")
