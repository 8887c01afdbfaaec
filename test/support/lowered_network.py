"""Runs a network of fused ops on the reference and, lowered to kernels, on the SIMT interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.verification import verify
from mlirt.passes.pipeline import check_ir, run_passes

Array = np.ndarray[Any, np.dtype[Any]]


def parse_module(text: str) -> tuple[ModuleOp, RtContext]:
    """A verified module from its text."""
    context = RtContext()
    register_dialects(context)
    module = Parser(context, text).parse_module()
    verify(module)
    return module, context


def lower(module: ModuleOp, context: RtContext, target: str = "cpu", tactic: str = "generic") -> ModuleOp:
    """The module on buffers, checked."""
    run_passes(module, context, f"convert-fused-to-kernel{{target={target} tactic={tactic}}}")
    check_ir(module)
    return module


def compare(
    module: ModuleOp,
    context: RtContext,
    inputs: Mapping[str, Array],
    *,
    targets: tuple[str, ...] = ("cpu", "cuda"),
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> None:
    """Assert that the lowered network gives what the reference gives; integers exactly."""
    expected = interpret(module, context, inputs)
    for target in targets:
        lowered = lower(module.clone(), context, target)
        if target == "cuda":
            run_passes(lowered, context, "map-parallel-to-threads")
            check_ir(lowered)
        found = run_plan(lowered, context, inputs)
        for name, want in expected.items():
            got = found[name]
            assert got.dtype == want.dtype
            assert got.shape == want.shape
            if want.dtype.kind in "fV":
                wide = want.astype(np.float64)
                np.testing.assert_allclose(got.astype(np.float64), wide, rtol, atol, err_msg=f"{target} {name}")
            else:
                np.testing.assert_array_equal(got, want, err_msg=f"{target} {name}")


__all__ = ["compare", "lower", "parse_module"]
