"""Pooling in strips of rows: every kind, stride, dilation and border, channels last or not, whole and partial."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import check_on_threads, kernel_names
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp, StoreOp
from mlirt.dialects.kernel.fragment import StoreFragmentOp
from mlirt.passes.lowering.window import cuda_strips

DTYPES = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "ui8": np.uint8}


def tensor(shape: tuple[int, ...], element: str, *, last: bool = False) -> str:
    names, order = ", ".join(f'"{size}"' for size in shape), [0, *range(2, len(shape)), 1]
    way = f", #trt.dims<[{names}], order = {order}>" if last else ""
    return f"tensor<{'x'.join(map(str, shape))}x{element}{way}>"


def pooling(
    kind: str,
    shape: tuple[int, ...],
    element: str,
    *,
    last: bool,
    size: int = 3,
    stride: int = 1,
    dilation: int = 1,
    pads: tuple[int, int] = (1, 1),
    includes: bool = False,
) -> ModuleOp:
    """The mean or the largest of each window, checked; returns the lowered network."""
    room = sum(pads) - dilation * (size - 1) - 1
    out = (*shape[:2], *((length + room) // stride + 1 for length in shape[2:]))
    spatial, sums = len(shape) - 2, {"f16": "f32", "i8": "i32", "ui8": "i32"}.get(element, element)
    many = {name: ", ".join([str(value)] * spatial) for name, value in (("w", size), ("s", stride), ("d", dilation))}
    before, after = (", ".join([f'"{pad}"'] * spatial) for pad in pads)
    narrow = {"f16": "arith.truncf %acc : f32 to f16", "i8": "arith.trunci %acc : i32 to i8"}
    body = f"%o = {narrow[element]}\nfused.yield %o : {element}" if element in narrow else f"fused.yield %acc : {sums}"
    given, made = ((tensor(one, element), tensor(one, element, last=last)) for one in (shape, out))
    inner = tensor(shape, element, last=last)
    enter = f"%a = fused.reformat %x : ({given[0]}) -> {inner}" if last else ""
    leave = f"%y = fused.reformat %b : ({made[1]}) -> {made[0]}" if last else ""
    text = f"""
    func.func @main(%x: {given[0]} {{trt.name = "x"}}) -> ({made[0]} {{trt.name = "y"}}) {{
      {enter}
      %b = fused.window {kind} {"%a" if last else "%x"} {{window = array<i64: {many["w"]}>,
          stride = array<i64: {many["s"]}>, dilation = array<i64: {many["d"]}>, pre_padding = #trt.dims<[{before}]>,
          post_padding = #trt.dims<[{after}]>, count_include_padding = {str(includes).lower()}}}
          : ({inner}) -> {made[1]} {{
      ^bb0(%acc: {sums}):
        {body}
      }}
      {leave}
      func.return {"%y" if last else "%b"} : {made[0]}
    }}"""
    random = np.random.default_rng(0)
    x = random.integers(0 if element == "ui8" else -90, 100, shape).astype(DTYPES[element])
    return check_on_threads(text, {"x": x}, tolerance=1e-3)


@pytest.fixture(autouse=True)
def _long_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strips are as long as in large networks."""
    monkeypatch.setattr(cuda_strips, "_THREADS", 1)


def stores(module: ModuleOp) -> int:
    """Of the kernel of the layer."""
    kernels = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("window")]
    return sum(isinstance(op, StoreOp | StoreFragmentOp) for op in kernels[0].walk())


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("element", ["f32", "f16", "i8"])
@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize(
    ("size", "stride", "dilation", "pads"),
    [(3, 1, 1, (1, 1)), (3, 2, 1, (1, 1)), (3, 2, 1, (0, 1)), (2, 1, 1, (0, 0)), (3, 1, 2, (2, 2)), (5, 1, 1, (2, 2))],
)
def test_windows(
    kind: str, element: str, last: bool, size: int, stride: int, dilation: int, pads: tuple[int, int]
) -> None:
    shape = (2, 16, 9, 11)
    made = pooling(kind, shape, element, last=last, size=size, stride=stride, dilation=dilation, pads=pads)
    assert "window" in kernel_names(made)
    rows = 4 if stride == 1 else 2
    # Vectors of bytes take more registers.
    assert stores(made) in ((1, 2) if element == "i8" and last else (rows,))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("height", [8, 9, 10, 11])
def test_partial_strips(height: int, last: bool) -> None:
    pooling("average", (1, 8, height, 6), "f32", last=last, includes=True)


@pytest.mark.parametrize("shape", [(2, 8, 20), (1, 8, 5, 6, 7)])
def test_signals_and_volumes(shape: tuple[int, ...]) -> None:
    assert stores(pooling("max", shape, "f16", last=True)) == 4


def test_windows_side_by_side_share_nothing() -> None:
    assert stores(pooling("max", (1, 8, 8, 8), "f32", last=True, size=2, stride=2, pads=(0, 0))) == 1
