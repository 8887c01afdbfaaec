"""Compares a few fused ops, compiled for the CPU, with what they mean, and tells which kernels they got."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from compiled_plan import Array, CompiledPlan
from cpu_kernel_runs import MAX_WIDTH
from fused_network import Network, context, network_of
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.core import FuncOp
from mlirt.passes.pipeline import check_ir, run_passes

Build = Callable[[Network], Sequence[SSAValue]]


def families(module: ModuleOp) -> set[str]:
    """The families of the kernels of a lowered network."""
    return {op.sym_name.data.rsplit("_", 1)[0] for op in module.walk() if isinstance(op, FuncOp)}


def check_compiled(
    types: Sequence[TensorType[Attribute]],
    build: Build,
    inputs: Sequence[Array],
    bits: int = MAX_WIDTH,
    tolerance: float = 0.0,
) -> set[str]:
    """The families of the kernels; one worker and several give what the ops mean."""
    ctx, module = context(), network_of(types, build)
    feeds: Mapping[str, Array] = {f"input{number}": one for number, one in enumerate(inputs)}
    want = interpret(module, ctx, dict(feeds))
    passes = f"convert-fused-to-kernel{{vector_bits={bits}}},map-parallel-to-workers{{vector_bits={bits}}}"
    run_passes(module, ctx, passes)
    check_ir(module)
    plan = CompiledPlan(module, ctx, bits)
    for workers in (1, 3):
        got = plan.run(feeds, workers)
        for key, array in want.items():
            np.testing.assert_allclose(got[key], array, rtol=tolerance, atol=tolerance)
    return families(module)


__all__ = ["check_compiled", "families"]
