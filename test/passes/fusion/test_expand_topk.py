"""Rows that are looked through in parts have the same largest elements, in the same order, at the same places."""

from __future__ import annotations

import numpy as np
import pytest
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.passes.pipeline import run_passes

TEXT = """
func.func @main(%x: tensor<{shape}x{element}> {{trt.name = "x"}})
    -> (tensor<{results}x{element}> {{trt.name = "v"}}, tensor<{results}xi64> {{trt.name = "i"}}) {{
  %v, %i = trt.topk {kind} %x {{k = {k} : i64, axis = {axis} : i64}}
      : (tensor<{shape}x{element}>) -> (tensor<{results}x{element}>, tensor<{results}xi64>)
  func.return %v, %i : tensor<{results}x{element}>, tensor<{results}xi64>
}}"""


def text_of(shape: tuple[int, ...], k: int, element: str = "f32", kind: str = "max", axis: int = -1) -> str:
    axis %= len(shape)
    results = "x".join(str(k if one == axis else size) for one, size in enumerate(shape))
    sizes = "x".join(map(str, shape))
    return TEXT.format(shape=sizes, results=results, element=element, kind=kind, k=k, axis=axis)


def random_rows(shape: tuple[int, ...], numbers: int) -> np.ndarray:
    """Rows of so many different numbers."""
    return np.random.default_rng(0).integers(-numbers, numbers, shape).astype(np.float32)


@pytest.mark.parametrize("numbers", [3, 1000, 1 << 30])
@pytest.mark.parametrize(
    ("shape", "k", "layers"), [((2, 3, 65536), 100, 3), ((40000,), 1, 3), ((3, 1 << 18), 600, 9), ((2, 46368), 300, 5)]
)
def test_the_same_results(shape: tuple[int, ...], k: int, layers: int, numbers: int) -> None:
    module, context = parse_module(text_of(shape, k))
    inputs = {"x": random_rows(shape, numbers)}
    want = interpret(module, context, inputs)
    run_passes(module, context, "expand-topk")
    assert sum(op.name == "trt.topk" for op in module.walk()) == layers
    found = interpret(module, context, inputs)
    for name, array in want.items():
        np.testing.assert_array_equal(found[name], array)


def test_what_is_no_number_comes_first() -> None:
    module, context = parse_module(text_of((2, 32768), 40))
    x = random_rows((2, 32768), 100)
    x[0, 777:30000:50], x[1, 5], x[1, 100:200] = np.nan, np.nan, -np.inf
    want = interpret(module, context, {"x": x})
    run_passes(module, context, "expand-topk")
    found = interpret(module, context, {"x": x})
    np.testing.assert_array_equal(found["i"], want["i"])


@pytest.mark.parametrize(
    ("shape", "k", "kind", "axis"),
    [((2, 8192), 100, "max", 1), ((2, 65537), 100, "max", 1), ((2, 65536), 100, "min", 1), ((65536, 4), 9, "max", 0)],
    ids=["short", "prime", "smallest", "other axis"],
)
def test_others_stay(shape: tuple[int, ...], k: int, kind: str, axis: int) -> None:
    module, context = parse_module(text_of(shape, k, kind=kind, axis=axis))
    run_passes(module, context, "expand-topk")
    assert sum(op.name == "trt.topk" for op in module.walk()) == 1
