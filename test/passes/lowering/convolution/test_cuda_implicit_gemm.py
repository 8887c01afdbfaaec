"""Convolutions as products on GPUs against the reference: strides, dilation, padding, groups, ranks, deconvolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gpu_kernels import check_on_threads, kernel_names
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

DTYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
TOLERANCE = {"f32": 1e-5, "f16": 2e-3, "bf16": 1e-2}


@dataclass(frozen=True)
class Problem:
    """A convolution; sequences have one entry per spatial dimension, and are extended by their last one."""

    input: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...] = (1,)
    dilation: tuple[int, ...] = (1,)
    pre: tuple[int, ...] = (0,)
    post: tuple[int, ...] = (0,)
    groups: int = 1
    transposed: bool = False
    residual: bool = False

    def along(self, values: tuple[int, ...]) -> list[int]:
        rank = len(self.input) - 2
        return [*values, *[values[-1]] * rank][:rank]

    @property
    def output(self) -> tuple[int, ...]:
        columns = zip(
            self.input[2:],
            self.kernel[2:],
            *map(self.along, (self.stride, self.dilation, self.pre, self.post)),
            strict=True,
        )
        if self.transposed:
            sizes = [(n - 1) * s + d * (w - 1) + 1 - a - b for n, w, s, d, a, b in columns]
            return (self.input[0], self.kernel[1] * self.groups, *sizes)
        sizes = [(n + a + b - d * (w - 1) - 1) // s + 1 for n, w, s, d, a, b in columns]
        return (self.input[0], self.kernel[0], *sizes)


def tensor(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def constant(array: np.ndarray[tuple[int, ...], np.dtype[Any]], element: str) -> str:
    return f'trt.constant {{value = dense<"0x{array.tobytes().hex().upper()}"> : {tensor(array.shape, element)}}}'


def convolution_text(problem: Problem, element: str) -> str:
    """`y = relu(conv(x, w) + b [+ r])`, weights and bias known."""
    rng = np.random.default_rng(1)
    weights = (rng.standard_normal(problem.kernel) / 4).astype(DTYPES[element])
    bias = rng.standard_normal(problem.output[1]).astype(DTYPES[element])
    x, w, b, y = (tensor(shape, element) for shape in (problem.input, problem.kernel, bias.shape, problem.output))
    names = ["stride", "dilation", "pre_padding", "post_padding"]
    values = [problem.stride, problem.dilation, problem.pre, problem.post]
    lists = ", ".join(
        f"{name} = array<i64: {', '.join(map(str, problem.along(value)))}>"
        for name, value in zip(names, values, strict=True)
    )
    access = ['#fused.access<["d1"]>']
    if problem.residual:
        indices = ", ".join(f'"d{axis}"' for axis in range(len(problem.output)))
        access.append(f"#fused.access<[{indices}]>")
    extra = [b, y] if problem.residual else [b]
    widen = "arith.extf %{} : " + element + " to f32" if element != "f32" else "arith.addf %{}, %zero : f32"
    wide = [widen.format(k) for k in (0, 1)]
    return f"""
    func.func @main(%x: {x} {{trt.name = "x"}}, %r: {y} {{trt.name = "r"}}) -> ({y} {{trt.name = "y"}}) {{
      %w = {constant(weights, element)} : {w}
      %b = {constant(bias, element)} : {b}
      %y = fused.convolution %x, %w, %b{", %r" if problem.residual else ""} {{{lists}, groups = {problem.groups} : i64,
          transposed = {str(problem.transposed).lower()}, access = [{", ".join(access)}]}}
          : ({", ".join([x, w, *extra])}) -> {y} {{
      ^bb0(%acc: f32, %0: {element}{f", %1: {element}" if problem.residual else ""}):
        %zero = arith.constant 0.0 : f32
        %wide0 = {wide[0]}
        %sum0 = arith.addf %acc, %wide0 : f32
        {f"%wide1 = {wide[1]}" if problem.residual else ""}
        {"%sum1 = arith.addf %sum0, %wide1 : f32" if problem.residual else ""}
        %max = arith.maximumf {"%sum1" if problem.residual else "%sum0"}, %zero : f32
        {"" if element == "f32" else f"%narrow = arith.truncf %max : f32 to {element}"}
        fused.yield {"%max" if element == "f32" else "%narrow"} : {element}
      }}
      func.return %y : {y}
    }}"""


def check(problem: Problem, element: str) -> list[str]:
    """Compare a convolution; returns the kernels that it became."""
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    text = convolution_text(problem, element)
    return kernel_names(check_on_threads(text, inputs, tactic="cuda", tolerance=TOLERANCE[element]))


PROBLEMS = {
    "pointwise, 16-byte pixels": Problem((2, 16, 8, 8), (24, 16, 1, 1), residual=True),
    "pointwise, odd pixels": Problem((1, 20, 5, 7), (24, 20, 1, 1)),
    "odd channels": Problem((2, 17, 9, 7), (24, 17, 3, 3), pre=(1,), post=(1,), residual=True),
    "few channels": Problem((1, 3, 15, 15), (16, 3, 7, 7), stride=(2,), pre=(3,), post=(3,)),
    "groups": Problem((2, 32, 9, 9), (32, 16, 3, 3), stride=(2, 1), dilation=(1, 2), pre=(1, 0), post=(0, 2), groups=2),
    "one dimension": Problem((1, 12, 20), (10, 12, 5), dilation=(2,), pre=(4,), post=(4,)),
    "three dimensions": Problem((1, 8, 5, 6, 7), (9, 8, 2, 3, 2), stride=(1, 2, 1), pre=(0, 1, 1), post=(1, 1, 0)),
    "deconvolution": Problem((1, 16, 6, 7), (16, 12, 2, 2), stride=(2,), transposed=True),
    "deconvolution in groups": Problem(
        (2, 16, 6, 7), (16, 12, 3, 3), stride=(2, 1), pre=(1,), post=(0, 1), groups=2, transposed=True
    ),
}


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_kinds_of_convolutions(name: str, element: str) -> None:
    assert check(PROBLEMS[name], element) == ["convolution"]


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_long_sums_are_split(element: str) -> None:
    problem = Problem((1, 96, 7, 7), (40, 96, 3, 3), pre=(1,), post=(1,), residual=True)
    assert check(problem, element) == ["convolution", "convolution_sum"]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    groups, window = draw(1, 2), (draw(1, 3), draw(1, 3))
    dilation, pads = (draw(1, 2), draw(1, 2)), tuple((draw(0, 2), draw(0, 2)) for _ in range(2))
    sizes = [max(draw(1, 9), d * (w - 1) + 1) for d, w in zip(dilation, window, strict=True)]
    channels, rows = draw(1, 20), draw(8, 24)
    problem = Problem(
        (draw(1, 2), channels * groups, *sizes),
        (rows * groups, channels, *window),
        stride=(draw(1, 3), draw(1, 3)),
        dilation=dilation,
        pre=tuple(low for low, _ in pads),
        post=tuple(high for _, high in pads),
        groups=groups,
        residual=data.draw(st.booleans()),
    )
    check(problem, data.draw(st.sampled_from(["f32", "f16"])))
