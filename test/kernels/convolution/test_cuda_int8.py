"""Int8 convolutions on a GPU: sums in int32 and results rounded to int8 are those of the reference, bit by bit."""

from __future__ import annotations

import gpu_kernels
import numpy as np
import pytest
from contractions import PROBLEMS, Problem
from gpu_kernels import check_on_threads, kernel_names
from lowered_network import parse_module
from quantized_contractions import quantized_convolution_text, random_bytes
from xdsl.dialects.builtin import ModuleOp, i8

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.buffers import memory
from mlirt.dialects.kernel.fragment import StoreFragmentOp
from mlirt.dialects.kernel.tensor_copy import LoadBoxOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import run_passes

UNEVEN = Problem((2, 80, 9, 7), (40, 80, 3, 3), stride=(2,), pre=(1,), post=(1,))
PICTURE = Problem((2, 3, 23, 21), (40, 3, 7, 7), stride=(2,), pre=(3,), post=(3,))


def check(
    problem: Problem,
    element: str,
    result: str,
    residual: str,
    tactic: str,
    *,
    last: bool = True,
    padding_value: int = 0,
) -> ModuleOp:
    text = quantized_convolution_text(
        problem, element, result, residual=residual, tactic=tactic, last=last, padding_value=padding_value
    )
    inputs = {"x": random_bytes(problem.input, element), "r": random_bytes(problem.output, residual or "i8", 1)}
    return check_on_threads(text, inputs)


@pytest.mark.parametrize("element", ["i8", "ui8"])
@pytest.mark.parametrize(
    ("residual", "result", "choice"),
    [("", "i8", "64x64s3"), ("ui8", "ui8", "128x64s3"), ("i8", "f32", "64x64s3c2"), ("ui8", "f16", "64x32s4")],
)
def test_warpgroups(element: str, residual: str, result: str, choice: str) -> None:
    module = check(UNEVEN, element, result, residual, f"cuda_wgmma:{choice}")
    assert f"kernel.warpgroup_mma {'s8' if element == 'i8' else 'u8'}" in str(module)


@pytest.mark.parametrize("choice", ["64x64s3", "128x64s3", "64x64s3c2"])
@pytest.mark.parametrize("channels", [48, 192])
def test_lines_of_64_bytes_where_longer_ones_would_be_half_empty(choice: str, channels: int) -> None:
    problem = Problem((2, channels, 9, 7), (40, channels, 3, 3), pre=(1,), post=(1,))
    module = check(problem, "i8", "i8", "ui8", f"cuda_wgmma:{choice}")
    assert "line = 64" in str(module)


@pytest.mark.parametrize("choice", ["64x64s3", "64x128s3t", "128x192s3", "64x64s3c2"])
def test_a_thread_has_as_many_neighbouring_bytes_as_one_access_writes(choice: str) -> None:
    problem = Problem((2, 32, 9, 7), (208, 32, 1, 1))
    module = check(problem, "i8", "i8", "i8", f"cuda_wgmma:{choice}")
    stores = [op for op in module.walk() if isinstance(op, StoreFragmentOp)]
    assert 16 in {op.group(op.buffer) for op in stores if memory(op.buffer).get_element_type() == i8}


@pytest.mark.parametrize(
    "choice", ["64x64s3te1", "64x128s2te1", "128x64s2e1", "64x256s2te1", "64x64s3t4e1", "128x64s2e1d"]
)
def test_residuals_are_copied_ahead(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_kernels, "DEVICE", "h200+processors=2")
    module = check(Problem((2, 80, 19, 17), (208, 80, 1, 1)), "i8", "i8", "i8", f"cuda_wgmma:{choice}")
    boxes = {str(op.map.type) for op in module.walk() if isinstance(op, LoadBoxOp)}
    assert f"!kernel.tensor_map<i8, [{choice.split('x')[0]}, 64]>" in boxes


def test_residuals_that_lie_otherwise_are_read_by_threads() -> None:
    problem = Problem((2, 80, 9, 7), (208, 80, 1, 1))
    module = check(problem, "i8", "i8", "ui8", "cuda_wgmma:64x64s3te1")
    assert not any(isinstance(op, LoadBoxOp) and "swizzle" not in str(op.map.type) for op in module.walk())


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("residual", "result"), [("", "i8"), ("i8", "i8"), ("ui8", "ui8")])
def test_limits_of_int8_are_the_last_step(residual: str, result: str, relu: bool) -> None:
    problem = Problem((2, 32, 9, 7), (48, 32, 3, 3), pre=(1,), post=(1,))
    tactic = "cuda_wgmma:64x64s3"
    text = quantized_convolution_text(problem, "i8", result, residual=residual, relu=relu, tactic=tactic)
    inputs = {"x": random_bytes(problem.input, "i8"), "r": random_bytes(problem.output, residual or "i8", 1)}
    module, context = parse_module(text)
    want = interpret(module, context, inputs)["y"]
    lowering = "convert-fused-to-kernel{target=cuda},map-parallel-to-threads"
    run_passes(module, context, f"strength-reduce-conversions,{lowering}")
    assert "kernel.saturate_fragment" in str(module)
    assert ("kernel.float_fragment" in str(module)) == bool(residual)
    np.testing.assert_array_equal(run_plan(module, context, inputs)["y"], want)
    assert {want.min(), want.max()} >= {np.iinfo(want.dtype).max}


@pytest.mark.parametrize("element", ["i8", "ui8"])
@pytest.mark.parametrize("last", [False, True])
def test_pictures_by_warpgroups(element: str, last: bool) -> None:
    # Of 2 x 2 cells, 12 of 16 channels; windows of 7 x 7 cells have 4 x 4 of them.
    module = check(PICTURE, element, "i8", "", "cuda_wgmma_rows:64x32s3", last=last)
    assert "spatial = 2" in str(module)
    assert "kernel.tensor_map<i8, [64, 64]" in str(module)
    assert kernel_names(module)[-2 - last :][:2] == ["rows", "convolution"]


STRIDES = {
    "of one dimension": Problem((1, 3, 14, 17), (16, 3, 3, 5), stride=(1, 2), post=(2, 3)),
    "of three cells": Problem((2, 1, 20, 31), (24, 1, 5, 7), stride=(3,), pre=(2, 1), post=(0, 4)),
    "of windows that leave cells out": Problem((2, 4, 16, 24), (16, 4, 1, 2), stride=(2, 4)),
    "of a film": Problem((1, 3, 5, 16, 17), (16, 3, 3, 3, 3), stride=(1, 2, 2), pre=(1,), post=(1,)),
    "and dilation": Problem((1, 3, 24, 24), (16, 3, 3, 3), stride=(2,), dilation=(2, 1), pre=(2, 1), post=(2, 1)),
}


@pytest.mark.parametrize("kind", STRIDES)
def test_strides_of_pictures(kind: str) -> None:
    module = check(STRIDES[kind], "i8", "i8", "", "cuda_wgmma_rows:64x32s3")
    assert "rows" in kernel_names(module)


@pytest.mark.parametrize(
    ("element", "residual", "result", "last", "padding_value"),
    [
        ("i8", "", "i8", True, 0),
        ("ui8", "ui8", "ui8", True, 7),
        ("i8", "i8", "f32", False, 0),
        ("ui8", "", "i8", False, 9),
    ],
)
@pytest.mark.parametrize("name", [name for name, problem in PROBLEMS.items() if not problem.transposed])
def test_tiles(name: str, element: str, residual: str, result: str, last: bool, padding_value: int) -> None:
    tactic = "cuda_int8_tiles:64x64"
    module = check(PROBLEMS[name], element, result, residual, tactic, last=last, padding_value=padding_value)
    assert f"kernel.mma {'s8' if element == 'i8' else 'u8'}" in str(module)


@pytest.mark.parametrize("choice", ["32x32p4", "128x128"])
def test_other_tiles(choice: str) -> None:
    problem = Problem((1, 96, 7, 7), (40, 96, 3, 3), pre=(1,), post=(1,))
    module = check(problem, "ui8", "i8", "i8", f"cuda_int8_tiles:{choice}")
    assert ("convolution_sum" in kernel_names(module)) == (choice == "32x32p4")


@pytest.mark.parametrize(
    ("element", "residual", "result", "padding_value"),
    [("i8", "", "i8", 0), ("ui8", "ui8", "ui8", 7), ("ui8", "i8", "f32", 0)],
)
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise(stride: int, element: str, residual: str, result: str, padding_value: int) -> None:
    problem = Problem((2, 32, 9, 11), (32, 1, 3, 5), stride=(stride,), pre=(1, 2), post=(1,), groups=32)
    module = check(problem, element, result, residual, "cuda_depthwise", padding_value=padding_value)
    assert "depthwise" in kernel_names(module)


def test_padding_with_a_value_is_nothing_that_the_device_fills_in() -> None:
    problem = Problem((1, 16, 5, 6), (16, 16, 3, 3), pre=(1,), post=(1,))
    module = check(problem, "ui8", "i8", "", "", padding_value=7)
    assert "warpgroup_mma" not in str(module)


def test_a_value_without_padding_makes_no_difference() -> None:
    check(Problem((1, 16, 9, 9), (16, 16, 3, 3)), "ui8", "i8", "", "cuda_wgmma:64x32s4", padding_value=7)


def test_rows_are_filled_up_so_that_the_device_can_copy_them() -> None:
    problem = Problem((2, 24, 19, 17), (40, 24, 3, 3), pre=(1,), post=(1,))
    x = "tensor<2x24x19x17xi8>"
    not_ = f"""%x_in = fused.pointwise %x {{access = [#fused.access<["d0", "d1", "d2", "d3"]>]}} : ({x}) -> {x} {{
      ^bb0(%one: i8):
        %mask = arith.constant 85 : i8
        %other = arith.xori %one, %mask : i8
        fused.yield %other : i8
      }}
      %made = fused.convolution %x_in"""
    text = quantized_convolution_text(problem, last=False, tactic="cuda_wgmma:64x64s3").replace(
        "%made = fused.convolution %x", not_
    )
    inputs = {"x": random_bytes(problem.input, "i8"), "r": random_bytes(problem.output, "i8")}
    module, context = parse_module(text)
    want = interpret(module, context, inputs)["y"]
    run_passes(module, context, "assign-layouts{target=cuda}")
    assert "row = 32" in str(module)
    run_passes(module, context, "convert-fused-to-kernel{target=cuda},map-parallel-to-threads")
    assert "warpgroup_mma" in str(module)
    np.testing.assert_array_equal(run_plan(module, context, inputs)["y"], want)
