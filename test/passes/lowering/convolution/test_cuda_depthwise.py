"""Depthwise convolutions: every window, stride and border, channels last or planes, whole and partial blocks."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import check_on_threads, kernel_names
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.kernel.core import FuncOp, StoreOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp
from mlirt.dialects.symbolic_text import parse
from mlirt.passes.lowering.convolution import cuda_depthwise


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


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(
    ("size", "stride", "dilation", "pad"), [(3, 1, 1, 1), (3, 2, 1, 1), (5, 1, 1, 2), (3, 1, 2, 2), (2, 2, 1, 0)]
)
def test_windows(element: str, size: int, stride: int, dilation: int, pad: int) -> None:
    assert "depthwise" in kernel_names(depthwise((2, 16, 9, 11), element, size, stride, dilation, pad))


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("height", [8, 9, 10, 11])
@pytest.mark.parametrize(
    ("size", "stride", "dilation", "pad"), [(3, 1, 1, 1), (3, 2, 1, 1), (5, 1, 1, 2), (3, 1, 2, 2)]
)
def test_planes(
    element: str, height: int, size: int, stride: int, dilation: int, pad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread has a block of rows, as in large networks."""
    monkeypatch.setattr(cuda_depthwise, "_THREADS", 1)
    module = depthwise((2, 3, height, 9), element, size, stride, dilation, pad, planes=True)
    (kernel,) = [op for op in module.ops if isinstance(op, FuncOp)]
    assert kernel.sym_name.data.startswith("depthwise")
    assert sum(isinstance(op, StoreOp) for op in kernel.walk()) == (4 if stride == 1 else 2)


@pytest.mark.parametrize("width", [40, 41, 42, 43])
def test_blocks_of_columns(width: int) -> None:
    """With enough to do a thread computes four neighbouring results, of eight channels each."""
    module = depthwise((1, 256, 100, width), "f16")
    loads = [op for op in module.walk() if isinstance(op, LoadFragmentOp) and op.valid is not None]
    assert sum(len(op.offsets) == 8 for op in loads) >= 6


def test_signals_and_single_columns() -> None:
    assert "depthwise" in kernel_names(depthwise((2, 8, 50), "f32"))
    assert "depthwise" in kernel_names(depthwise((2, 8, 7, 1), "f32"))
    assert "depthwise" in kernel_names(depthwise((2, 8, 1, 7), "f32"))
    assert "depthwise" not in kernel_names(depthwise((2, 8, 50), "f32", planes=True))
