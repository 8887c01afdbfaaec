"""Attention in shifted windows, as Swin writes it: rolls are gathers of rows, and masks are part of attention."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from lowered_network import parse_module

from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import PipelineOptions, run_phases

IMAGES, SIDE, WINDOW, HEADS, WIDTH = 5, 6, 3, 2, 16
WINDOWS, PLACES, CHANNELS = (SIDE // WINDOW) ** 2, WINDOW**2, HEADS * WIDTH


def _rolled(x: str, y: str, shift: int) -> list[str]:
    """A roll along both axes of an image, as slices and concatenations."""
    lines, now = list[str](), x
    for axis in (1, 2):
        shape = [IMAGES, SIDE, SIDE, CHANNELS]
        parts = [(shift % SIDE, SIDE - shift % SIDE), (0, shift % SIDE)]
        for k, (start, size) in enumerate(parts):
            lengths = [size if a == axis else one for a, one in enumerate(shape)]
            starts = [start if a == axis else 0 for a in range(4)]
            lines.append(
                f"  %{y}{axis}{k} = trt.slice %{now} {{start = {_dims(starts)}, size = {_dims(lengths)}, "
                f"stride = array<i64: 1, 1, 1, 1>}} : ({_type(shape)}) -> {_type(lengths)}"
            )
        types = ", ".join(_type([s if a == axis else one for a, one in enumerate(shape)]) for _, s in parts)
        to = y if axis == 2 else f"{y}{axis}"
        values = f"%{y}{axis}0, %{y}{axis}1"
        lines.append(f"  %{to} = trt.concatenation {values} {{axis = {axis} : i64}} : ({types}) -> {_type(shape)}")
        now = to
    return lines


def _dims(lengths: list[int]) -> str:
    return "#trt.dims<[" + ", ".join(f'"{one}"' for one in lengths) + "]>"


def _type(lengths: list[int]) -> str:
    return "tensor<" + "x".join(map(str, lengths)) + "xf16>"


def _shuffled(x: str, y: str, before: list[int], lengths: list[int], order: list[int]) -> str:
    after = [lengths[axis] for axis in order]
    properties = f"reshape_dims = {_dims(lengths)}, second_transpose = array<i64: {', '.join(map(str, order))}>"
    return f"  %{y} = trt.shuffle %{x} {{{properties}}} : ({_type(before)}) -> {_type(after)}"


def _network() -> str:
    image, half = [IMAGES, SIDE, SIDE, CHANNELS], SIDE // WINDOW
    windows, rows = [IMAGES, half, WINDOW, half, WINDOW, CHANNELS], [IMAGES * WINDOWS, PLACES, CHANNELS]
    heads, scores = [IMAGES * WINDOWS, HEADS, PLACES, WIDTH], [IMAGES * WINDOWS, HEADS, PLACES, PLACES]
    masks = [1, WINDOWS, 1, PLACES, PLACES]
    long, stay = [IMAGES, WINDOWS, HEADS, PLACES, PLACES], [0, 1, 2, 3]
    split = [IMAGES, half, half, WINDOW, WINDOW, CHANNELS]
    lines = [
        *_rolled("x", "r", 1),
        _shuffled("r", "w", image, windows, [0, 1, 3, 2, 4, 5]),
        _shuffled("w", "p", split, rows, [0, 1, 2]),
        _shuffled("p", "h", rows, [IMAGES * WINDOWS, PLACES, HEADS, WIDTH], [0, 2, 1, 3]),
        f"  %c = trt.constant {{value = dense<0.25> : tensor<1x1x1x1xf16>}} : {_type([1, 1, 1, 1])}",
        f"  %q = trt.elementwise prod %h, %c : ({_type(heads)}, {_type([1, 1, 1, 1])}) -> {_type(heads)}",
        f"  %s = trt.matrix_multiply %q, %h {{rhs_op = #trt<matrix_operation transpose>}} "
        f": ({_type(heads)}, {_type(heads)}) -> {_type(scores)}",
        _shuffled("s", "s5", scores, long, [0, 1, 2, 3, 4]),
        f"  %m5 = trt.elementwise sum %s5, %m : ({_type(long)}, {_type(masks)}) -> {_type(long)}",
        _shuffled("m5", "m4", long, scores, stay),
        f"  %a = trt.softmax %m4 {{axis = 3 : i64}} : ({_type(scores)}) -> {_type(scores)}",
        f"  %o = trt.matrix_multiply %a, %h : ({_type(scores)}, {_type(heads)}) -> {_type(heads)}",
        _shuffled("o", "t", heads, heads, [0, 2, 1, 3]),
        _shuffled("t", "b", [IMAGES * WINDOWS, PLACES, HEADS, WIDTH], split, [0, 1, 3, 2, 4, 5]),
        _shuffled("b", "i", windows, image, stay),
        *_rolled("i", "y", -1),
    ]
    arguments = f'%x: {_type(image)} {{trt.name = "x"}}, %m: {_type(masks)} {{trt.name = "m"}}'
    head = f'func.func @main({arguments}) -> ({_type(image)} {{trt.name = "y"}}) {{'
    return "\n".join([head, *lines, f"  func.return %y : {_type(image)}", "}"])


def _expected(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    half = SIDE // WINDOW
    rolled = np.roll(x.astype(np.float64), (-1, -1), (1, 2)).reshape(IMAGES, half, WINDOW, half, WINDOW, CHANNELS)
    rows = rolled.transpose(0, 1, 3, 2, 4, 5).reshape(IMAGES * WINDOWS, PLACES, HEADS, WIDTH).transpose(0, 2, 1, 3)
    scores = (0.25 * rows @ rows.swapaxes(2, 3)).reshape(IMAGES, WINDOWS, HEADS, PLACES, PLACES) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True)).reshape(-1, HEADS, PLACES, PLACES)
    found = (weights / weights.sum(-1, keepdims=True) @ rows).transpose(0, 2, 1, 3)
    images = found.reshape(IMAGES, half, half, WINDOW, WINDOW, CHANNELS).transpose(0, 1, 3, 2, 4, 5)
    return np.roll(images.reshape(x.shape), (1, 1), (1, 2))


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_shifted_windows_are_two_gathers_and_attention(target: str) -> None:
    generator = np.random.default_rng(3)
    x = generator.standard_normal((IMAGES, SIDE, SIDE, CHANNELS)).astype(np.float16)
    mask = np.where(generator.random((1, WINDOWS, 1, PLACES, PLACES)) < 0.3, -100.0, 0.0).astype(np.float16)
    options = PipelineOptions(target, "fp16")
    module, context = parse_module(_network())
    run_phases(module, context, last="fusion", options=options)
    found = Counter(op.name for op in module.walk() if isinstance(op, FusedOp) and not isinstance(op, ViewOp))
    assert found["fused.attention"] == 1
    assert not found["fused.softmax"]
    assert not found["fused.matmul"]
    module, context = parse_module(_network())
    run_phases(module, context, options=options)
    result = run_plan(module, context, {"x": x, "m": mask})["y"]
    np.testing.assert_allclose(result.astype(np.float64), _expected(x, mask), rtol=4e-3, atol=4e-3)
