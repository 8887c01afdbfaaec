"""Slices that are joined, as the kernels of a whole build compute them: one launch, and the elements of NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from lowered_network import parse_module

from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.passes.pipeline import PipelineOptions, run_phases

ROWS, COLUMNS = 3, 15
# Slices of 3 x 15 elements by start, count and stride of the columns.
JOINED = {
    "unfolded": [(k, 5, 3) for k in range(3)],
    "overlapping": [(2 * k, 4, 1) for k in range(5)],
    "reversed": [(14 - k, 1, 1) for k in range(15)],
    "following": [(5 * k, 5, 1) for k in range(3)],
    "two": [(1, 7, 2), (0, 7, 2)],
}


def _text(parts: Sequence[tuple[int, int, int]], axis: int) -> str:
    """A network that joins slices along an axis: 1 lies side by side, 2 in an axis of its own."""
    lines: list[str] = []
    for number, (start, count, stride) in enumerate(parts):
        result = f"tensor<{ROWS}x{count}xf32>"
        lines.append(
            f'  %s{number} = trt.slice %x {{start = #trt.dims<["0", "{start}"]>, '
            f'size = #trt.dims<["{ROWS}", "{count}"]>, '
            f"stride = array<i64: 1, {stride}>}} : (tensor<{ROWS}x{COLUMNS}xf32>) -> {result}"
        )
        if axis == 2:
            lines.append(
                f'  %p{number} = trt.shuffle %s{number} {{reshape_dims = #trt.dims<["{ROWS}", "{count}", "1"]>, '
                f"zero_is_placeholder = false}} : ({result}) -> tensor<{ROWS}x{count}x1xf32>"
            )
    count, name = parts[0][1], "s" if axis == 1 else "p"
    part = f"tensor<{ROWS}x{count}xf32>" if axis == 1 else f"tensor<{ROWS}x{count}x1xf32>"
    joined = f"tensor<{ROWS}x{count * len(parts)}xf32>" if axis == 1 else f"tensor<{ROWS}x{count}x{len(parts)}xf32>"
    names, types = ", ".join(f"%{name}{k}" for k in range(len(parts))), ", ".join([part] * len(parts))
    lines.append(f"  %y = trt.concatenation {names} {{axis = {axis} : i64}} : ({types}) -> {joined}")
    head = f'func.func @main(%x: tensor<{ROWS}x{COLUMNS}xf32> {{trt.name = "x"}}) -> ({joined} {{trt.name = "y"}}) {{'
    return "\n".join([head, *lines, f"  func.return %y : {joined}", "}"])


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("name", JOINED)
def test_joined_slices_are_one_launch(name: str, axis: int, target: str) -> None:
    text = _text(JOINED[name], axis)
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    x[0, 3], x[1, 4] = np.nan, np.inf
    parts = [x[:, start : start + count * stride : stride] for start, count, stride in JOINED[name]]
    expected = np.concatenate(parts, 1) if axis == 1 else np.stack(parts, 2)
    options = PipelineOptions(target, "fp32")
    module, context = parse_module(text)
    run_phases(module, context, last="fusion", options=options)
    assert not any(isinstance(op, ConcatOp) for op in module.walk())
    module, context = parse_module(text)
    run_phases(module, context, options=options)
    assert sum(isinstance(op, LaunchOp) for op in module.walk()) == 1
    np.testing.assert_array_equal(run_plan(module, context, {"x": x})["y"], expected)
