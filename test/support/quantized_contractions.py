"""Texts of networks with one convolution or int8 product, summed in int32 and rounded to int8 again."""

from __future__ import annotations

from typing import Any

import numpy as np
from contractions import Problem, constant, tensor

Array = np.ndarray[Any, np.dtype[Any]]
BYTES: dict[str, np.dtype[Any]] = {"i8": np.dtype(np.int8), "ui8": np.dtype(np.uint8)}


def random_bytes(shape: tuple[int, ...], element: str, seed: int = 0) -> Array:
    """Every value of the type may occur."""
    limits = np.iinfo(BYTES[element])
    rng = np.random.default_rng(seed)
    return rng.integers(limits.min, limits.max, shape, BYTES[element], endpoint=True)


def _constants(kernel: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Weights, and for each result of a pixel a bias and a factor: results spread over the bytes, some are ties."""
    rng = np.random.default_rng(1)
    weights = rng.integers(-127, 127, kernel, np.int8, endpoint=True)
    bias = rng.integers(-9999, 9999, kernel[0], np.int32)
    scale = (2.0 ** rng.integers(-3, 0, kernel[0]) / (40 * weights[0].size ** 0.5)).astype(np.float32)
    scale[::3] = 2.0**-9
    return weights, bias, scale


def quantized_product_text(
    left: tuple[int, ...],
    columns: int,
    element: str = "i8",
    result: str = "i8",
    *,
    residual: str = "",
    tactic: str = "",
) -> str:
    """`x[.., m, k]` times known bytes `[n, k]`, with the same epilogue as convolutions; `r` is read with `residual`."""
    weights, bias, scale = _constants((columns, left[-1]))
    made = (*left[:-1], columns)
    last = len(left) - 1
    access = [f'#fused.access<["d{last}"]>'] * 2
    if residual:
        indices = ", ".join(f'"d{axis}"' for axis in range(len(left)))
        access.append(f"#fused.access<[{indices}]>")
    x, w, y, r = (
        tensor(left, element),
        tensor(weights.shape, "i8"),
        tensor(made, result),
        tensor(made, residual or "i8"),
    )
    b, m = tensor(bias.shape, "i32"), tensor(scale.shape, "f32")
    chosen = f'fused.tactic = "{tactic}", ' if tactic else ""
    return f"""
    func.func @main(%x: {x} {{trt.name = "x"}}, %r: {r} {{trt.name = "r"}}) -> ({y} {{trt.name = "y"}}) {{
      %w = {constant(weights, "i8")} : {w}
      %b = {constant(bias, "i32")} : {b}
      %m = {constant(scale, "f32")} : {m}
      %y = fused.matmul %x, %w, %b, %m{", %r" if residual else ""}
          {{{chosen}transpose_rhs = true, access = [{", ".join(access)}]}}
          : ({", ".join([x, w, b, m, *([r] if residual else [])])}) -> {y} {{
      {epilogue(result, residual)}
      }}
      func.return %y : {y}
    }}"""


def _tensor(shape: tuple[int, ...], element: str, last: bool) -> str:
    if not last:
        return tensor(shape, element)
    names = ", ".join(f'"{size}"' for size in shape)
    order = ", ".join(map(str, (0, *range(2, len(shape)), 1)))
    return tensor(shape, element).removesuffix(">") + f", #trt.dims<[{names}], order = [{order}]>>"


def epilogue(result: str, residual: str = "", relu: bool = True) -> str:
    """`round(max((sum + bias) * scale + residual * 0.1, 0))`, saturated; not rounded for float results."""
    lines = [
        f"^bb0(%acc: i32, %b0: i32, %factor: f32{f', %r0: {residual}' if residual else ''}):",
        "%zero = arith.constant 0.0 : f32",
        "%shifted = arith.addi %acc, %b0 : i32",
        "%wide = arith.sitofp %shifted : i32 to f32",
        "%scaled = arith.mulf %wide, %factor : f32",
    ]
    total = "%scaled"
    if residual:
        lines += [
            "%step = arith.constant 0.1 : f32",
            *_widened(residual),
            "%other = arith.mulf %r1, %step : f32",
            "%sum = arith.addf %scaled, %other : f32",
        ]
        total = "%sum"
    if relu:
        lines.append(f"%relu = arith.maximumf {total}, %zero : f32")
        total = "%relu"
    return "\n".join(lines + _stored(total, result))


def _widened(element: str) -> list[str]:
    if element == "ui8":
        return ["%r2 = arith.bitcast %r0 : ui8 to i8", "%r1 = arith.uitofp %r2 : i8 to f32"]
    return [f"%r1 = arith.sitofp %r0 : {element} to f32"]


def _stored(total: str, result: str) -> list[str]:
    if result == "f32":
        return [f"fused.yield {total} : f32"]
    if result == "f16":
        return [f"%half = arith.truncf {total} : f32 to f16", "fused.yield %half : f16"]
    limits = np.iinfo(BYTES[result])
    lines = [
        f"%low = arith.constant {limits.min}.0 : f32",
        f"%high = arith.constant {limits.max}.0 : f32",
        f"%rounded = math.roundeven {total} : f32",
        "%above = arith.maximumf %rounded, %low : f32",
        "%inside = arith.minimumf %above, %high : f32",
        "%whole = arith.fptosi %inside : f32 to i32",
        "%byte = arith.trunci %whole : i32 to i8",
    ]
    if result == "i8":
        return [*lines, "fused.yield %byte : i8"]
    return [*lines, "%unsigned = arith.bitcast %byte : i8 to ui8", "fused.yield %unsigned : ui8"]


def quantized_convolution_text(
    problem: Problem,
    element: str = "i8",
    result: str = "i8",
    *,
    residual: str = "",
    relu: bool = True,
    padding_value: int = 0,
    tactic: str = "",
    last: bool = True,
) -> str:
    """An int8 convolution `x`, with `last` on tensors whose channels are neighbours in memory.

    `residual` is the element type of `r`, the other number of an addition; without one `r` is not read.
    """
    weights, bias, scale = _constants(problem.kernel)
    names = ["stride", "dilation", "pre_padding", "post_padding"]
    values = [problem.stride, problem.dilation, problem.pre, problem.post]
    properties = [f'fused.tactic = "{tactic}"'] if tactic else []
    properties += [
        f"{name} = array<i64: {', '.join(map(str, problem.along(value)))}>"
        for name, value in zip(names, values, strict=True)
    ]
    if padding_value:
        properties.append(f"padding_value = {padding_value} : i64")
    access = ['#fused.access<["d1"]>'] * 2
    if residual:
        indices = ", ".join(f'"d{axis}"' for axis in range(len(problem.output)))
        access.append(f"#fused.access<[{indices}]>")
    other = residual or "i8"
    plain = {"x": tensor(problem.input, element), "r": tensor(problem.output, other)}
    here = {"x": _tensor(problem.input, element, last), "r": _tensor(problem.output, other, last)}
    y, made = tensor(problem.output, result), _tensor(problem.output, result, last)
    w, b, m = tensor(problem.kernel, "i8"), tensor(bias.shape, "i32"), tensor(scale.shape, "f32")
    moved = [f"%{name}_in = fused.reformat %{name} : ({plain[name]}) -> {here[name]}" for name in plain]
    inputs = {name: f"%{name}_in" if last else f"%{name}" for name in plain}
    types = [here["x"], w, b, m, *([here["r"]] if residual else [])]
    return f"""
    func.func @main(%x: {plain["x"]} {{trt.name = "x"}}, %r: {plain["r"]} {{trt.name = "r"}})
        -> ({y} {{trt.name = "y"}}) {{
      %w = {constant(weights, "i8")} : {w}
      %b = {constant(bias, "i32")} : {b}
      %m = {constant(scale, "f32")} : {m}
      {chr(10).join(moved) if last else ""}
      %made = fused.convolution {inputs["x"]}, %w, %b, %m{f", {inputs['r']}" if residual else ""}
          {{{", ".join(properties)}, groups = {problem.groups} : i64, access = [{", ".join(access)}]}}
          : ({", ".join(types)}) -> {made} {{
      {epilogue(result, residual, relu)}
      }}
      {f"%y = fused.reformat %made : ({made}) -> {y}" if last else ""}
      func.return {"%y" if last else "%made"} : {y}
    }}"""
