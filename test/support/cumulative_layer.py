"""Running sums and products lowered for a GPU and run by the SIMT interpreter."""

from __future__ import annotations

import numpy as np
from gpu_kernels import check_on_threads
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i8": np.int8, "ui8": np.uint8, "i64": np.int64}


def cumulative(
    kind: str, shape: tuple[int, ...], element: str, axis: int, *, exclusive: bool = False, reverse: bool = False
) -> ModuleOp:
    """Running sums or products, checked; returns the lowered network."""
    x = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({x} {{trt.name = "y"}}) {{
      %y = fused.cumulative {kind} %x {{axis = {axis} : i64, exclusive = {str(exclusive).lower()},
          reverse = {str(reverse).lower()}}} : ({x}) -> {x}
      func.return %y : {x}
    }}"""
    random = np.random.default_rng(0)
    if kind == "prod" and element.startswith("f"):
        values = random.uniform(0.9, 1.1, shape)
    else:
        values = random.integers(0 if element == "ui8" else -9, 10, shape)
    return check_on_threads(text, {"x": values.astype(DTYPES[element])}, tolerance=2e-3)


def kernels(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("cumulative")]
