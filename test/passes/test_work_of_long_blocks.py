"""What passes do for one op of a block does not grow with the block."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable, Mapping

import pytest

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.source_parser import parse_source
from mlirt.passes.pipeline import run_passes
from mlirt.passes.pipeline_text import parse_pipeline


def joined(parts: int) -> str:
    """A concatenation of many values."""
    lines = [f"  %p{k} = trt.unary exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>" for k in range(parts)]
    types = ", ".join(["tensor<4x8xf32>"] * parts)
    values = ", ".join(f"%p{k}" for k in range(parts))
    lines.append(f"  %y = trt.concatenation {values} {{axis = 1 : i64}} : ({types}) -> tensor<4x{8 * parts}xf32>")
    return _function("\n".join(lines), f"tensor<4x{8 * parts}xf32>")


def normalized(parts: int) -> str:
    """Rows that are divided by their sums, again and again."""
    lines: list[str] = []
    for k in range(parts):
        value = f"%q{k - 1}" if k else "%x"
        lines += [
            f"  %s{k} = trt.reduce sum {value} {{axes = array<i64: 1>, keep_dims = true}}"
            " : (tensor<4x8xf32>) -> tensor<4x1xf32>",
            f"  %q{k} = trt.elementwise div {value}, %s{k} : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>",
        ]
    lines.append(f"  %y = trt.unary exp %q{parts - 1} : (tensor<4x8xf32>) -> tensor<4x8xf32>")
    return _function("\n".join(lines), "tensor<4x8xf32>")


def _function(lines: str, result: str) -> str:
    return f"func.func @main(%x: tensor<4x8xf32>) -> {result} {{\n{lines}\n  func.return %y : {result}\n}}"


@pytest.mark.parametrize(
    ("network", "before", "name"),
    [
        (joined, "convert-trt-to-fused,fuse-pointwise,eliminate-concatenation", "assign-layouts{target=cuda}"),
        (normalized, "convert-trt-to-fused,fuse-pointwise", "fuse-row-reductions"),
    ],
)
def test_four_times_the_ops_are_four_times_the_work(network: Callable[[int], str], before: str, name: str) -> None:
    small, large = (_calls(network(parts), before, name) for parts in (50, 200))
    grown = {function: count for function, count in large.items() if count > max(1000, 6 * small.get(function, 0))}
    assert not grown


def _calls(text: str, before: str, name: str) -> Mapping[str, int]:
    """How often a pass calls each function."""
    ctx = RtContext()
    register_dialects(ctx)
    module, _ = parse_source(ctx, text, "long.mlir")
    run_passes(module, ctx, before)
    profile = cProfile.Profile()
    profile.enable()
    for one in parse_pipeline(name):
        one.apply(ctx, module)
    profile.disable()
    stats: Mapping[tuple[str, int, str], tuple[int, ...]] = getattr(pstats.Stats(profile), "stats")
    return {f"{file} {line} {function}": found[1] for (file, line, function), found in stats.items()}
