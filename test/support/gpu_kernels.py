"""Networks of one fused op lowered for a GPU, and run by the SIMT interpreter with all its checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from lowered_network import parse_module
from xdsl.dialects.builtin import ModuleOp, StringAttr

from mlirt.dialects.context import RtContext
from mlirt.dialects.device_files import gpu_device
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import check_ir, run_passes

DEVICE = "h200"
"""What networks are lowered for; with few processors (`h200+processors=2`) small kernels have persistent blocks."""

Array = np.ndarray[Any, np.dtype[Any]]


def lower_to_threads(module: ModuleOp, context: RtContext, tactic: str = "", features: str = "") -> ModuleOp:
    """A copy of a network of fused ops as mapped kernels; a tactic with a choice, `file:choice`, is for all ops."""
    lowered = module.clone()
    if ":" in tactic:
        for op in lowered.walk():
            if isinstance(op, FusedOp):
                op.attributes["fused.tactic"] = StringAttr(tactic)
        tactic = ""
    chosen = f" tactic={tactic}" if tactic else ""
    given = f" features={features}" if features else ""
    options = f"target=cuda arch={gpu_device(DEVICE).arch}{chosen}{given} device={DEVICE}"
    passes = f"convert-fused-to-kernel{{{options}}},map-parallel-to-threads{{device={DEVICE}}},canonicalize-kernels"
    run_passes(lowered, context, passes)
    check_ir(lowered)
    return lowered


def check_on_threads(
    text: str, inputs: Mapping[str, Array], *, tactic: str = "", tolerance: float = 1e-5, features: str = ""
) -> ModuleOp:
    """Assert that the mapped kernels give what the reference gives, without races; returns the lowered module.

    The tolerance is relative to the largest value; integers are compared exactly.
    """
    module, context = parse_module(text)
    expected = interpret(module, context, inputs)
    lowered = lower_to_threads(module, context, tactic, features)
    found = run_plan(lowered, context, inputs)
    for name, want in expected.items():
        got = found[name]
        assert got.dtype == want.dtype
        if want.dtype.kind in "fV":
            wide = want.astype(np.float64)
            bound = tolerance * max(1.0, float(np.abs(wide).max(initial=0)))
            np.testing.assert_allclose(got.astype(np.float64), wide, rtol=0, atol=bound)
        else:
            np.testing.assert_array_equal(got, want)
    return lowered


def run_on_threads(text: str, inputs: Mapping[str, Array], tactic: str = "") -> Array:
    """The only result of a network, by its mapped kernels, which are checked for races."""
    module, context = parse_module(text)
    (found,) = run_plan(lower_to_threads(module, context, tactic), context, inputs).values()
    return found


def kernel_names(module: ModuleOp) -> list[str]:
    """The families of the kernels of a lowered module, in order."""
    return [op.sym_name.data.rpartition("_")[0] for op in module.body.block.ops if isinstance(op, FuncOp)]


__all__ = ["check_on_threads", "kernel_names", "lower_to_threads", "run_on_threads"]
