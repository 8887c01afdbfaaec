"""Pointwise ops by the indices at which they read their operands, compiled for the CPU, against their meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from compiled_plan import CompiledPlan
from fused_network import Network, access, context, network_of, summing, t
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.interpreter import interpret
from mlirt.passes.pipeline import check_ir, run_passes


@dataclass(frozen=True)
class PointwiseCase:
    """A result of `sizes` (or `names` where only the run knows them) from operands that are read at `indices`."""

    sizes: tuple[int, ...]
    indices: tuple[tuple[str, ...], ...]
    names: tuple[int | str, ...] = ()

    def dims(self) -> tuple[int | str, ...]:
        return self.names or self.sizes

    def operand(self, indices: Sequence[str], sizes: Sequence[int | str]) -> list[int | str]:
        return [1 if index == "0" else sizes[int(index[1:])] for index in indices]

    def build(self, network: Network) -> Sequence[SSAValue]:
        accesses = [access(*one) for one in self.indices]
        op = PointwiseOp(network.inputs, accesses, [t("float32", *self.dims())], summing(len(self.indices)))
        return [network.add(op)]

    def module(self) -> ModuleOp:
        types = [t("float32", *self.operand(one, self.dims())) for one in self.indices]
        return network_of(types, self.build)

    def lowered(self, bits: int) -> ModuleOp:
        """The kernels that vectors of so many bits get."""
        return _lowered(self.module(), bits)

    def check(self, bits: int) -> ModuleOp:
        """Compare the compiled kernels, for one worker and for several, with the op; gives the lowered network."""
        rng = np.random.default_rng(3)
        inputs = {
            f"input{number}": rng.standard_normal([int(size) for size in self.operand(one, self.sizes)]).astype(
                np.float32
            )
            for number, one in enumerate(self.indices)
        }
        module, ctx = self.module(), context()
        want = interpret(module, ctx, inputs)
        plan = CompiledPlan(_lowered(module, bits), ctx, bits)
        for workers in (1, 3):
            got = plan.run(inputs, workers)
            for key, array in want.items():
                np.testing.assert_array_equal(got[key], array)
        return module


def _lowered(module: ModuleOp, bits: int) -> ModuleOp:
    passes = f"convert-fused-to-kernel{{vector_bits={bits}}},map-parallel-to-workers{{vector_bits={bits}}}"
    run_passes(module, context(), passes)
    check_ir(module)
    return module


__all__ = ["PointwiseCase"]
