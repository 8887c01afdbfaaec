"""8-bit floats: every code and every kind of rounding, on the reference, in scalar bodies and in code for the CPU."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lowered_network import parse_module

from mlirt.builder.build import build
from mlirt.dialects.float8 import rounded
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import PipelineOptions, run_phases

TEXT = """
    func.func @main(%x: tensor<?xf32, #trt.dims<["n"]>> {trt.name = "x"}, %c: tensor<256xf8E4M3FN> {trt.name = "c"})
        -> (tensor<?xf8E4M3FN, #trt.dims<["n"]>> {trt.name = "codes"}, tensor<256xf32> {trt.name = "numbers"}) {
      %codes = trt.identity %x : (tensor<?xf32, #trt.dims<["n"]>>) -> tensor<?xf8E4M3FN, #trt.dims<["n"]>>
      %numbers = trt.identity %c : (tensor<256xf8E4M3FN>) -> tensor<256xf32>
      func.return %codes, %numbers : tensor<?xf8E4M3FN, #trt.dims<["n"]>>, tensor<256xf32>
    }"""

CODES = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)


def inputs() -> dict[str, Any]:
    exact = CODES.astype(np.float32)
    exact = exact[np.isfinite(exact)]
    ties = (exact[1:] + exact[:-1]) / 2
    near = np.concatenate([np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))])
    special = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 448, 464, 480, 1e30, -1e30, 1e-30, 2**-10, 3 * 2**-11])
    noise = np.random.default_rng(0).standard_normal(4096) * np.exp2(np.random.default_rng(1).integers(-14, 10, 4096))
    return {"x": np.concatenate([exact, ties, near, special, noise]).astype(np.float32), "c": CODES}


def check(found: dict[str, Any]) -> None:
    x = inputs()["x"]
    np.testing.assert_array_equal(found["codes"].view(np.uint8) & 0x7F, rounded(x).view(np.uint8) & 0x7F)
    signed = ~np.isnan(x)
    np.testing.assert_array_equal(found["codes"].view(np.uint8)[signed], rounded(x).view(np.uint8)[signed])
    np.testing.assert_array_equal(found["numbers"], CODES.astype(np.float32))


def test_what_is_too_large_becomes_the_largest() -> None:
    assert rounded(np.array([1e9, -np.inf, 449.0])).astype(np.float32).tolist() == [448.0, -448.0, 448.0]
    assert np.isnan(rounded(np.nan).astype(np.float32))


def test_on_the_reference() -> None:
    module, context = parse_module(TEXT)
    check(dict(interpret(module, context, inputs())))


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_in_scalar_bodies(target: str) -> None:
    module, context = parse_module(TEXT)
    run_phases(module, context, options=PipelineOptions(target))
    check(run_plan(module, context, inputs()))


def test_in_code_for_the_cpu() -> None:
    module, context = parse_module(TEXT)
    check(dict(build(module, context, "cpu").run(inputs())))
