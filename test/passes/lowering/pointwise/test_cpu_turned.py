"""Pointwise ops whose operand lies across the result, compiled, against the meaning of the op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from cpu_kernel_runs import widths
from fused_network import Network, access, context, network_of, summing, t
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.tile_loads import TileLoadTransposedOp
from mlirt.passes.pipeline import check_ir, run_passes


@dataclass(frozen=True)
class Case:
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


TURNED = {
    "whole squares": Case((32, 48), (("d1", "d0"),)),
    "parts of squares": Case((37, 19), (("d1", "d0"),)),
    "channels to the front": Case((2, 24, 5, 11), (("d0", "d2", "d3", "d1"),)),
    "with a sum and a bias": Case((3, 33, 40), (("d0", "d2", "d1"), ("d0", "d1", "d2"), ("0", "d1", "0"))),
    "more than a task": Case((9, 1100), (("d1", "d0"),)),
    "sizes known at run time": Case((21, 18), (("d1", "d0"), ("d0", "d1")), ("n", "m")),
}
LEFT = {
    "nothing lies across": Case((32, 48), (("d0", "d1"),)),
    "a short side": Case((3, 48), (("d1", "d0"),)),
    "two operands lie across": Case((32, 48), (("d1", "d0"), ("d1", "d0"))),
}


def _lowered(module: ModuleOp, ctx: RtContext, bits: int) -> None:
    run_passes(
        module,
        ctx,
        f"convert-fused-to-kernel{{vector_bits={bits}}},map-parallel-to-workers{{vector_bits={bits}}}",
    )
    check_ir(module)


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("name", TURNED)
def test_squares_are_turned(name: str, bits: int) -> None:
    case, ctx = TURNED[name], context()
    module, rng = case.module(), np.random.default_rng(3)
    inputs = {
        f"input{number}": rng.standard_normal([int(size) for size in case.operand(one, case.sizes)]).astype(np.float32)
        for number, one in enumerate(case.indices)
    }
    want = interpret(module, ctx, inputs)
    _lowered(module, ctx, bits)
    assert any(isinstance(op, TileLoadTransposedOp) for op in module.walk())
    plan = CompiledPlan(module, ctx, bits)
    for workers in (1, 3):
        got = plan.run(inputs, workers)
        for key, array in want.items():
            np.testing.assert_array_equal(got[key], array)


@pytest.mark.parametrize("name", LEFT)
def test_other_ops_are_loop_nests(name: str) -> None:
    module, ctx = LEFT[name].module(), context()
    _lowered(module, ctx, 512)
    assert not any(isinstance(op, TileLoadTransposedOp) for op in module.walk())
