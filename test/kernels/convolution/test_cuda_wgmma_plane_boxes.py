"""Convolutions by warpgroups whose boxes of pixels threads fill from planes, against the reference, without races."""

from __future__ import annotations

import gpu_kernels
import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, Problem, channels_last_text, convolution_text
from gpu_kernels import check_on_threads, kernel_names, lower_to_threads
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lowered_network import parse_module

from mlirt.dialects.kernel.fragment import LoadFragmentOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import PassError, run_passes

KINDS = {
    "3 x 3": (Problem((2, 16, 5, 40), (24, 16, 3, 3), pre=(1,), post=(1,), residual=True), "64x2x32l64s2k4"),
    "both parts of the channels": (Problem((1, 72, 5, 66), (136, 72, 3, 3), pre=(1,), post=(1,)), "128x2x64l128s1k5"),
    "four rows a warpgroup": (Problem((2, 64, 9, 40), (40, 64, 3, 3), residual=True), "64x8x32l64s1k4"),
    "a row a warpgroup": (Problem((1, 32, 3, 300), (128, 32, 1, 3), pre=(0, 1), post=(0, 1)), "128x1x256l64s2k4"),
    "stride": (Problem((2, 40, 19, 83), (64, 40, 3, 3), stride=(2,), pre=(1,), post=(1,)), "64x2x32l128s2k4"),
    "stride of three": (
        Problem((1, 16, 4, 98), (16, 16, 2, 5), stride=(1, 3), pre=(0, 4), post=(1, 3)),
        "64x2x32l64s2k4",
    ),
    "dilation": (Problem((1, 24, 11, 47), (24, 24, 3, 3), dilation=(2, 3), pre=(2, 5), post=(1, 4)), "64x4x32l64s1k4"),
    "rows of odd length": (
        Problem((5, 17, 4, 37), (72, 17, 3, 2), pre=(1,), post=(0,), residual=True),
        "128x4x32l64s2k5",
    ),
    "pixels": (Problem((2, 64, 7, 96), (136, 64, 1, 1), residual=True), "128x2x96l128s2k4"),
    "volumes": (Problem((2, 16, 4, 5, 34), (40, 16, 3, 3, 3), pre=(1,), post=(1,), residual=True), "64x2x32l64s2k4"),
    "volumes of a plane": (Problem((1, 16, 1, 3, 34), (16, 16, 1, 2, 3), pre=(0,), post=(0,)), "64x2x32l64s2k4"),
    "planes of padding": (Problem((1, 16, 2, 3, 34), (16, 16, 2, 2, 3), (3, 1, 1), pre=(2, 0, 0)), "64x2x32l64s2k4"),
    "volumes with strides": (
        Problem((1, 40, 5, 7, 66), (72, 40, 2, 3, 3), (2, 1, 2), (2, 1, 1), (1,), (1, 0, 1)),
        "128x2x32l64s1k4",
    ),
    "weights that stay": (Problem((5, 16, 5, 40), (24, 16, 3, 3), pre=(1,), post=(1,)), "64x2x40l64s2k9"),
    "weights of some channels stay": (
        Problem((2, 72, 5, 37), (136, 72, 3, 2), pre=(1,), post=(1,), residual=True),
        "64x4x40l128s1k12",
    ),
    "weights of all channels stay": (Problem((3, 40, 6, 37), (136, 40, 2, 2)), "128x3x40l64s3k16"),
    "weights of volumes stay": (
        Problem((1, 16, 4, 5, 34), (40, 16, 3, 3, 3), pre=(1,), post=(1,), residual=True),
        "64x4x40l64s4k27",
    ),
}

DECONVOLUTIONS = {
    "weights that stay": (
        Problem((2, 40, 4, 37), (40, 40, 4, 3), (2,), pre=(1,), post=(1, 0), transposed=True, residual=True),
        "64x4x40l64s2k8",
    ),
    "4 x 4": (
        Problem((1, 16, 4, 40), (16, 24, 4, 4), (2,), pre=(1,), post=(1,), transposed=True, residual=True),
        "64x2x32l64s2k4",
    ),
    "rows of odd length": (
        Problem((2, 17, 5, 37), (17, 72, 4, 4), (2,), pre=(1,), post=(0,), transposed=True, residual=True),
        "128x4x32l64s1k5",
    ),
    "remainders without a tap": (
        Problem((1, 72, 3, 35), (72, 24, 3, 1), (2, 4), pre=(2, 0), post=(0, 0), transposed=True),
        "64x2x32l128s1k4",
    ),
    "padding of several steps": (
        Problem((1, 16, 6, 41), (16, 40, 5, 7), (2,), pre=(4, 5), transposed=True),
        "64x4x32l64s2k4",
    ),
    "strides of one axis": (
        Problem((5, 24, 3, 66), (24, 136, 2, 3), (3, 1), pre=(0, 1), post=(0, 1), transposed=True, residual=True),
        "128x2x64l64s2k5",
    ),
    "a plane": (
        Problem((1, 16, 1, 3, 33), (16, 16, 2, 2, 2), (2,), pre=(1, 0, 0), post=(0,), transposed=True, residual=True),
        "64x2x32l64s2k4",
    ),
    "volumes": (
        Problem((1, 16, 3, 4, 33), (16, 16, 3, 2, 5), (2, 3, 4), pre=(1, 0, 2), transposed=True, residual=True),
        "64x2x32l64s2k4",
    ),
}


def check(problem: Problem, choice: str, element: str = "f16") -> list[str]:
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    text = convolution_text(problem, element)
    tactic = f"cuda_wgmma_plane_boxes:{choice}"
    module = check_on_threads(text, inputs, tactic=tactic, tolerance=TOLERANCE[element])
    assert {"kernel.warpgroup_mma", "kernel.async_fence"} <= {op.name for op in module.walk()}
    return kernel_names(module)


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_convolutions(kind: str, element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_kernels, "DEVICE", "h200+processors=3")
    problem, choice = KINDS[kind]
    assert check(problem, choice, element) == ["convolution"]


@pytest.mark.parametrize("kind", DECONVOLUTIONS)
def test_kinds_of_deconvolutions(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_kernels, "DEVICE", "h200+processors=3")
    problem, choice = DECONVOLUTIONS[kind]
    assert check(problem, choice) == ["convolution"]


def test_numbers_beside_a_window_are_none_of_it() -> None:
    """Infinities and numbers that are none spread as far as the windows that hold them, no further."""
    problem = Problem((1, 16, 6, 40), (16, 16, 1, 3))
    x = np.ones(problem.input, np.float16)
    x[..., 20], x[..., 39] = np.inf, np.nan
    inputs = {"x": x, "r": np.zeros(problem.output, np.float16)}
    module, context = parse_module(convolution_text(problem, "f16"))
    lowered = lower_to_threads(module, context, "cuda_wgmma_plane_boxes:64x2x32l64s2k4")
    with np.errstate(all="ignore"):
        (found,) = run_plan(lowered, context, inputs).values()
    meets = np.isin(np.arange(problem.output[-1]), [18, 19, 20, 37])
    assert np.isfinite(found[..., ~meets]).all()


@pytest.mark.parametrize(("width", "together"), [(40, 2), (37, 1)])
def test_rows_are_read_in_words(width: int, together: int) -> None:
    module, context = parse_module(convolution_text(Problem((1, 16, 6, width), (16, 16, 3, 3)), "f16"))
    lowered = lower_to_threads(module, context, "cuda_wgmma_plane_boxes:64x2x32l64s2k4")
    loads = [op for op in lowered.walk() if isinstance(op, LoadFragmentOp) and op.buffer.name_hint == "input"]
    assert {len(load.offset_list()) for load in loads} == {load.group(load.buffer) for load in loads} == {together}


def test_sizes_that_the_run_tells() -> None:
    def type_(channels: int) -> str:
        return f'tensor<?x{channels}x?x?xf16, #trt.dims<["n", "{channels}", "h", "w"]>>'

    walk = ", ".join(f"{name} = array<i64: 1, 1>" for name in ("stride", "dilation", "pre_padding", "post_padding"))
    text = f"""
    func.func @main(%x: {type_(32)} {{trt.name = "x"}}) -> ({type_(40)} {{trt.name = "y"}}) {{
      %w = trt.constant {{value = dense<0.5> : tensor<40x32x3x3xf16>}} : tensor<40x32x3x3xf16>
      %y = fused.convolution %x, %w {{fused.tactic = "cuda_wgmma_plane_boxes:64x4x32l64s2k5", {walk}}}
          : ({type_(32)}, tensor<40x32x3x3xf16>) -> {type_(40)} {{
      ^bb0(%acc: f32):
        %h = arith.truncf %acc : f32 to f16
        fused.yield %h : f16
      }}
      func.return %y : {type_(40)}
    }}"""
    image = np.random.default_rng(0).standard_normal((3, 32, 7, 45)).astype(np.float16)
    check_on_threads(text, {"x": image}, tolerance=TOLERANCE["f16"])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    channels = data.draw(st.integers(16, 70))
    problem = Problem(
        (data.draw(st.integers(1, 2)), channels, data.draw(st.integers(3, 9)), data.draw(st.integers(33, 80))),
        (data.draw(st.integers(8, 140)), channels, *pair(1, 3)),
        *(pair(1, 2), pair(1, 2), pair(0, 2), pair(0, 2)),
        residual=data.draw(st.booleans()),
    )
    assume(problem.output[2] > 0 and problem.output[3] >= 32)
    check(problem, data.draw(st.sampled_from(["64x4x32l64s1k4", "64x2x64l128s1k5", "128x2x32l64s2k4"])))


def is_offered(problem: Problem, choice: str) -> bool:
    """Whether a block has room for a tile: results of four places each take as much more memory."""
    text = convolution_text(problem, "f16").replace(
        "{stride", f'{{fused.tactic = "cuda_wgmma_plane_boxes:{choice}", stride', 1
    )
    module, context = parse_module(text)
    try:
        run_passes(module, context, "convert-fused-to-kernel{target=cuda}")
    except PassError as error:
        if "does not lower" not in str(error):
            raise
        return False
    return True


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_deconvolution(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    channels, strides = (
        data.draw(st.integers(16, 70)),
        (data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 2, 4]))),
    )
    problem = Problem(
        (data.draw(st.integers(1, 2)), channels, data.draw(st.integers(1, 7)), data.draw(st.integers(36, 60))),
        (channels, data.draw(st.integers(8, 70)), *pair(1, 5)),
        strides,
        pre=pair(0, 3),
        post=pair(-1, 2),
        transposed=True,
        residual=data.draw(st.booleans()),
    )
    assume(problem.output[2] > 0 and problem.output[3] >= 32 * strides[1])
    choice = data.draw(st.sampled_from(["64x2x32l64s1k4", "64x2x32l128s1k5", "64x4x32l64s2k4"]))
    assume(is_offered(problem, choice))
    check(problem, choice)


@pytest.mark.parametrize(
    "text",
    [
        convolution_text(Problem((1, 8, 9, 40), (16, 8, 3, 3)), "f16"),  # few channels
        convolution_text(Problem((1, 16, 40, 9), (16, 16, 3, 3)), "f16"),  # short rows
        convolution_text(Problem((1, 32, 9, 40), (32, 16, 3, 3), groups=2), "f16"),
        convolution_text(Problem((1, 16, 9, 40), (16, 16, 3, 3)), "f32"),
        channels_last_text(Problem((1, 16, 9, 40), (16, 16, 3, 3)), "f16"),
        convolution_text(Problem((1, 16, 9, 40), (16, 16, 3, 3), (3,), transposed=True), "f16"),
        convolution_text(Problem((1, 16, 9, 40), (16, 16, 3, 3), (2,), (2,), transposed=True), "f16"),
    ],
)
def test_others_are_left_to_other_tactics(text: str) -> None:
    module, context = parse_module(text.replace("{stride", '{fused.tactic = "cuda_wgmma_plane_boxes", stride', 1))
    with pytest.raises(PassError, match="does not lower"):
        run_passes(module, context, "convert-fused-to-kernel{target=cuda}")
