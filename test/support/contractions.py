"""Texts of networks with one matrix product or one convolution, of many kinds, for tests of their lowerings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
TOLERANCE = {"f32": 1e-5, "f16": 2e-3, "bf16": 1e-2}


def tensor(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def product_text(
    left: tuple[int, ...],
    right: tuple[int, ...],
    result: tuple[int, ...],
    element: str,
    flips: tuple[bool, bool],
    given: str = "",
) -> str:
    """`y = relu(x @ w + b)`; x has elements of the type `given`, if that is another one."""
    w, b, y = (tensor(shape, element) for shape in (right, result[-1:], result))
    x = tensor(left, given or element)
    last = len(result) - 1
    wide = "" if element == "f32" else f"%wide = arith.extf %0 : {element} to f32"
    narrow = "" if element == "f32" else f"%narrow = arith.truncf %max : f32 to {element}"
    add, out = ("%0", "%max") if element == "f32" else ("%wide", "%narrow")
    return f"""
    func.func @main(%x: {x} {{trt.name = "x"}}, %w: {w} {{trt.name = "w"}}, %b: {b} {{trt.name = "b"}})
        -> ({y} {{trt.name = "y"}}) {{
      %y = fused.matmul %x, %w, %b {{transpose_lhs = {str(flips[0]).lower()}, transpose_rhs = {str(flips[1]).lower()},
          access = [#fused.access<["d{last}"]>]}} : ({x}, {w}, {b}) -> {y} {{
      ^bb0(%acc: f32, %0: {element}):
        {wide}
        %zero = arith.constant 0.0 : f32
        %sum = arith.addf %acc, {add} : f32
        %max = arith.maximumf %sum, %zero : f32
        {narrow}
        fused.yield {out} : {element}
      }}
      func.return %y : {y}
    }}"""


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


def constant(array: np.ndarray[tuple[int, ...], np.dtype[Any]], element: str) -> str:
    return f'trt.constant {{value = dense<"0x{array.tobytes().hex().upper()}"> : {tensor(array.shape, element)}}}'


def convolution_text(problem: Problem, element: str, given: str = "") -> str:
    """`y = relu(conv(x, w) + b [+ r])`, weights and bias known; x is of the type `given`, if that is another one."""
    rng = np.random.default_rng(1)
    weights = (rng.standard_normal(problem.kernel) / 4).astype(DTYPES[element])
    bias = rng.standard_normal(problem.output[1]).astype(DTYPES[element])
    w, b, y = (tensor(shape, element) for shape in (problem.kernel, bias.shape, problem.output))
    x = tensor(problem.input, given or element)
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


def channels_last_text(problem: Problem, element: str) -> str:
    """As `convolution_text`, computed on tensors whose channels are neighbours in memory."""
    text = convolution_text(problem, element)
    head, op, tail = re.split(r"(?=%y = fused\.convolution)|(?=func\.return)", text)
    plain = {shape: tensor(shape, element) for shape in (problem.input, problem.output)}
    last = {shape: _last(shape, element) for shape in plain}
    before, region = op.split(" {\n      ^bb0", 1)
    for name in ("x", "r"):
        before = re.sub(rf"%{name}\b", f"%{name}_last", before)
    for shape in plain:
        before = before.replace(plain[shape], last[shape])

    def moved(name: str, shape: tuple[int, ...]) -> str:
        return f"%{name}_last = fused.reformat %{name} : ({plain[shape]}) -> {last[shape]}\n"

    op = before.replace("%y =", "%y_last =", 1) + " {\n      ^bb0" + region
    back = f"%y = fused.reformat %y_last : ({last[problem.output]}) -> {plain[problem.output]}\n"
    return head + moved("x", problem.input) + moved("r", problem.output) + op + back + tail


def planes_text(problem: Problem, element: str) -> str:
    """As `convolution_text`, of an input whose channels are neighbours in memory; results are planes of channels."""
    text = convolution_text(problem, element)
    plain, last = tensor(problem.input, element), _last(problem.input, element)
    head, op = text.split("%y = fused.convolution %x", 1)
    names, types = op.split("          : (", 1)
    moved = f"%x_last = fused.reformat %x : ({plain}) -> {last}\n"
    return f"{head}{moved}%y = fused.convolution %x_last{names}          : ({types.replace(plain, last, 1)}"


def _last(shape: tuple[int, ...], element: str) -> str:
    names = ", ".join(f'"{size}"' for size in shape)
    order = ", ".join(map(str, (0, *range(2, len(shape)), 1)))
    return tensor(shape, element).removesuffix(">") + f", #trt.dims<[{names}], order = [{order}]>>"


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
