"""A pooling layer in planes or with its channels last, lowered for a GPU and run by the SIMT interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpu_kernels import check_on_threads
from xdsl.dialects.builtin import ModuleOp

DTYPES = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "ui8": np.uint8}


def tensor(shape: tuple[int, ...], element: str, *, last: bool = False) -> str:
    names, order = ", ".join(f'"{size}"' for size in shape), [0, *range(2, len(shape)), 1]
    way = f", #trt.dims<[{names}], order = {order}>" if last else ""
    return f"tensor<{'x'.join(map(str, shape))}x{element}{way}>"


def pooling_text(
    kind: str,
    shape: tuple[int, ...],
    element: str,
    *,
    last: bool = False,
    planes: bool = False,
    size: int = 3,
    stride: int = 1,
    dilation: int = 1,
    pads: tuple[int, int] = (1, 1),
    includes: bool = False,
) -> str:
    """The mean or the largest of each window of `x`: the input has its channels `last`, and so has the result but with
    `planes`.
    """
    room = sum(pads) - dilation * (size - 1) - 1
    out = (*shape[:2], *((length + room) // stride + 1 for length in shape[2:]))
    spatial, accumulators = len(shape) - 2, {"f16": "f32", "i8": "i32", "ui8": "i32"}.get(element, element)
    many = {name: ", ".join([str(value)] * spatial) for name, value in (("w", size), ("s", stride), ("d", dilation))}
    before, after = (", ".join([f'"{pad}"'] * spatial) for pad in pads)
    narrow = {"f16": "arith.truncf %acc : f32 to f16", "i8": "arith.trunci %acc : i32 to i8"}
    body = (
        f"%o = {narrow[element]}\nfused.yield %o : {element}"
        if element in narrow
        else f"fused.yield %acc : {accumulators}"
    )
    is_reordered = last and not planes
    given, made, result = tensor(shape, element), tensor(out, element), tensor(out, element, last=is_reordered)
    inner = tensor(shape, element, last=last)
    enter = f"%a = fused.reformat %x : ({given}) -> {inner}" if last else ""
    leave = f"%y = fused.reformat %b : ({result}) -> {made}" if is_reordered else ""
    return f"""
    func.func @main(%x: {given} {{trt.name = "x"}}) -> ({made} {{trt.name = "y"}}) {{
      {enter}
      %b = fused.window {kind} {"%a" if last else "%x"} {{window = array<i64: {many["w"]}>,
          stride = array<i64: {many["s"]}>, dilation = array<i64: {many["d"]}>, pre_padding = #trt.dims<[{before}]>,
          post_padding = #trt.dims<[{after}]>, count_include_padding = {str(includes).lower()}}}
          : ({inner}) -> {result} {{
      ^bb0(%acc: {accumulators}):
        {body}
      }}
      {leave}
      func.return {"%y" if is_reordered else "%b"} : {made}
    }}"""


def pooling(kind: str, shape: tuple[int, ...], element: str, **options: Any) -> ModuleOp:
    """The network of `pooling_text`, checked; returns it lowered."""
    random = np.random.default_rng(0)
    x = random.integers(0 if element == "ui8" else -90, 100, shape).astype(DTYPES[element])
    return check_on_threads(pooling_text(kind, shape, element, **options), {"x": x}, tolerance=1e-3)
