"""Biases that attention reads by rows and columns of pictures: every way to read them, against sums in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, tensor
from gpu_kernels import check_on_threads, kernel_names
from lowered_network import compare, interpret, parse_module

Array = np.ndarray[Any, np.dtype[Any]]
HEADS, DEPTH = 2, 16
FLASH, GROUPS = "cuda_flash:64x64w4", "cuda_groups:128x128s2"
CASES = [
    ((4, 16), (8, 32), FLASH),  # two rows in a tile, whole tiles
    ((5, 14), (5, 16), FLASH),  # four rows in a tile, and one in the last
    ((3, 8), (3, 128), FLASH),  # a row has two tiles
    ((2, 6), (4, 40), FLASH),  # groups of eight keys are in one row
    ((2, 6), (9, 14), FLASH),  # keys are alone
    ((3, 50), (5, 64), GROUPS),
    ((2, 64), (2, 256), GROUPS),
    ((3, 50), (6, 48), GROUPS),
    ((3, 50), (7, 32), "cuda_groups:128x64s3"),
    ((4, 64), (5, 64), "cuda_groups:128x128s3otp"),
    ((4, 64), (5, 64), "cuda_groups:128x64s4o"),
    ((1, 3), (9, 24), "cuda_few_queries:parts1"),
]


@pytest.mark.parametrize(("queries", "keys", "tactic"), CASES)
def test_on_threads(queries: tuple[int, int], keys: tuple[int, int], tactic: str) -> None:
    lowered = check_on_threads(text(queries, keys, tactic), inputs(queries, keys), tolerance=TOLERANCE["f16"])
    assert kernel_names(lowered) == ["attention"]


@pytest.mark.parametrize("queries", [(3, 5), (1, 4)])
def test_general(queries: tuple[int, int]) -> None:
    module, context = parse_module(text(queries, (3, 7), "generic"))
    compare(module, context, inputs(queries, (3, 7)), rtol=4e-3, atol=4e-3)


def test_reference() -> None:
    given = inputs((3, 5), (4, 7))
    wide = {name: value.astype(np.float64) for name, value in given.items()}
    rows, columns, whole = (wide[name] for name in "abc")  # [i // 5, h, i % 5, j // 7], [i % 5, h, i // 5, j % 7]
    bias = np.einsum("yhxr->hyxr", rows)[..., None] + np.einsum("xhyc->hyxc", columns)[..., None, :]
    scores = wide["q"] @ np.swapaxes(wide["k"], -1, -2) * 0.25 + bias.reshape(1, HEADS, 15, 28)
    scores = np.where(np.swapaxes(whole, 1, 2).reshape(15, 28) > 0, scores, -1e4)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    module, context = parse_module(text((3, 5), (4, 7), "generic"))
    found = interpret(module, context, given)["y"]
    np.testing.assert_allclose(found, powers / powers.sum(-1, keepdims=True) @ wide["v"], rtol=2e-3, atol=2e-3)


def inputs(queries: tuple[int, int], keys: tuple[int, int]) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape).astype(DTYPES["f16"]) for name, shape in shapes(queries, keys).items()}


def shapes(queries: tuple[int, int], keys: tuple[int, int]) -> dict[str, tuple[int, ...]]:
    """Of queries, keys, values; of a bias by rows of keys, one by columns, and one by both."""
    many = [count * width for count, width in (queries, keys)]
    heads = [(1, HEADS, count, DEPTH) for count in (many[0], many[1], many[1])]
    rows, columns = (queries[0], HEADS, queries[1], keys[0]), (queries[1], HEADS, queries[0], keys[1])
    return dict(zip("qkvabc", (*heads, rows, columns, (many[0], keys[1], keys[0])), strict=True))


def text(queries: tuple[int, int], keys: tuple[int, int], tactic: str) -> str:
    """Attention with both biases where an element of a third operand, transposed by keys, is above 0."""
    types = {name: tensor(shape, "f16") for name, shape in shapes(queries, keys).items()}
    accesses = ("d0 d1 d2 d4", "d0 d1 d3 d4", "d0 d1 d3 d5", "d6 d1 d7 d8", "d7 d1 d6 d9", "d2 d9 d8")
    quoted = ["[" + ", ".join(f'"{index}"' for index in access.split()) + "]" for access in accesses]
    arguments = ", ".join(f'%{name}: {type_} {{trt.name = "{name}"}}' for name, type_ in types.items())
    return f"""
    func.func @main({arguments}) -> ({types["q"]} {{trt.name = "y"}}) {{
      %y = fused.attention %q, %k, %v, %a, %b, %c {{fused.tactic = "{tactic}",
          access = [{", ".join(f"#fused.access<{one}>" for one in quoted)}],
          widths = array<i64: {queries[1]}, {keys[1]}>,
          reduced = #trt.dims<["{keys[0] * keys[1]}", "{DEPTH}"]>}} : ({", ".join(types.values())}) -> {types["q"]} {{
      ^bb0(%s: f32, %row: f16, %column: f16, %whole: f16):
        %scale = arith.constant 2.500000e-01 : f32
        %never = arith.constant -1.000000e+04 : f32
        %zero = arith.constant 0.000000e+00 : f32
        %0 = arith.mulf %s, %scale : f32
        %1 = arith.extf %row : f16 to f32
        %2 = arith.extf %column : f16 to f32
        %3 = arith.extf %whole : f16 to f32
        %4 = arith.addf %0, %1 : f32
        %5 = arith.addf %4, %2 : f32
        %6 = arith.cmpf ogt, %3, %zero : f32
        %7 = arith.select %6, %5, %never : f32
        fused.yield %7 : f32
      }}
      func.return %y : {types["q"]}
    }}"""
