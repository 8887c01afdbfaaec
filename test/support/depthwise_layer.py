"""A depthwise convolution in planes or with its channels last, lowered for a GPU and run by the SIMT interpreter."""

from __future__ import annotations

import numpy as np
from gpu_kernels import check_on_threads
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.symbolic_text import parse


def last(shape: tuple[int, ...], element: str) -> str:
    names, order = ", ".join(f'"{size}"' for size in shape), [0, *range(2, len(shape)), 1]
    return f"tensor<{'x'.join(map(str, shape))}x{element}, #trt.dims<[{names}], order = {order}>>"


def plain(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def depthwise(
    shape: tuple[int, ...],
    element: str,
    size: int = 3,
    stride: int = 1,
    dilation: int = 1,
    pad: int = 1,
    *,
    planes: bool = False,
) -> ModuleOp:
    """`relu(convolution(x) + x[.., 0..])`, checked; returns the lowered network."""
    spatial = len(shape) - 2
    out = (*shape[:2], *((length + 2 * pad - dilation * (size - 1) - 1) // stride + 1 for length in shape[2:]))
    kernel = (shape[1], 1, *(size,) * spatial)
    weights = np.random.default_rng(1).integers(-4, 5, kernel).tolist()
    own = AccessAttr.of([parse(f"d{axis}") for axis in range(2)] + [0] * spatial)
    many = {
        name: f"array<i64: {', '.join([str(n)] * spatial)}>" for name, n in (("s", stride), ("d", dilation), ("p", pad))
    }
    narrow = "%o = arith.truncf %m : f32 to f16" if element == "f16" else "%o = arith.addf %m, %z : f32"
    wide = "%w = arith.extf %r : f16 to f32" if element == "f16" else "%w = arith.addf %r, %z : f32"
    inner = plain if planes else last
    text = f"""
    func.func @main(%x: {plain(shape, element)} {{trt.name = "x"}}) -> ({plain(out, element)} {{trt.name = "y"}}) {{
      %k = trt.constant {{value = dense<{weights}> : {plain(kernel, element)}}} : {plain(kernel, element)}
      {"" if planes else f"%a = fused.reformat %x : ({plain(shape, element)}) -> {last(shape, element)}"}
      %b = fused.convolution {"%x, %k, %x" if planes else "%a, %k, %a"} {{stride = {many["s"]},
          dilation = {many["d"]}, pre_padding = {many["p"]}, post_padding = {many["p"]},
          groups = {shape[1]} : i64, access = [{own}]}}
          : ({inner(shape, element)}, {plain(kernel, element)}, {inner(shape, element)}) -> {inner(out, element)} {{
      ^bb0(%acc: f32, %r: {element}):
        %z = arith.constant 0.0 : f32
        {wide}
        %s = arith.addf %acc, %w : f32
        %m = arith.maximumf %s, %z : f32
        {narrow}
        fused.yield %o : {element}
      }}
      {"" if planes else f"%y = fused.reformat %b : ({last(out, element)}) -> {plain(out, element)}"}
      func.return {"%b" if planes else "%y"} : {plain(out, element)}
    }}"""
    x = np.random.default_rng(0).integers(-9, 10, shape).astype(np.float16 if element == "f16" else np.float32)
    return check_on_threads(text, {"x": x}, tolerance=1e-3)
