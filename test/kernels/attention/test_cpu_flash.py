"""Attention on register tiles, compiled for the CPU of this machine, against the meaning of the op."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from attentions import SMALL, Attention
from compiled_plan import CompiledPlan
from cpu_kernel_runs import widths
from lowered_network import parse_module
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.context import RtContext
from mlirt.dialects.device_files import cpu_device
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.core import FuncOp
from mlirt.kernels.attention.cpu.shape import blocks_per_head, tile_for
from mlirt.passes.pipeline import check_ir, run_passes

FITTING = {
    name: replace(case, element="f32") for name, case in SMALL.items() if case.columns % 16 == 0 and not case.ending
}


def lowered(module: ModuleOp, context: RtContext, bits: int) -> ModuleOp:
    run_passes(module, context, f"convert-fused-to-kernel{{target=cpu vector_bits={bits}}}")
    run_passes(module, context, f"map-parallel-to-workers{{vector_bits={bits}}}")
    check_ir(module)
    return module


def kernels(module: ModuleOp) -> list[str]:
    return [op.sym_name.data.rpartition("_")[0] for op in module.body.block.ops if isinstance(op, FuncOp)]


def check(case: Attention, bits: int) -> None:
    module, context = parse_module(case.text())
    expected = interpret(module, context, case.inputs())["y"]
    plan = CompiledPlan(lowered(module, context, bits), context, bits)
    assert kernels(module) == ["attention"]
    for workers in (1, 3):
        found = plan.run(case.inputs(), workers)["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", FITTING)
def test_small(name: str) -> None:
    check(FITTING[name], widths()[0])


@pytest.mark.parametrize("bits", widths()[1:])
@pytest.mark.parametrize("name", ["tails", "causal with a past", "mask per key"])
def test_other_widths(name: str, bits: int) -> None:
    check(FITTING[name], bits)


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_others_go_another_way(element: str) -> None:
    columns = 16 if element == "f16" else 24
    module, context = parse_module(Attention(1, 1, 8, 8, 16, columns, element).text())
    assert "attention" not in kernels(lowered(module, context, 512))


def test_tiles() -> None:
    assert tile_for(100, 24, cpu_device("cpu-avx512")) is None
    for name, registers in (
        ("cpu-128", 16),
        ("cpu-avx2", 16),
        ("cpu-avx512", 32),
        ("cpu-neoverse-v1", 32),
        ("cpu-neon", 32),
    ):
        for columns in (16, 32, 48, 64, 96, 128):
            tile = tile_for(100, columns, cpu_device(name))
            assert tile is not None
            assert columns % tile.width(cpu_device(name).vector_bits // 32) == 0
            # Accumulators, one vector of each column, and a factor.
            assert registers // 2 <= tile.rows * tile.vectors + tile.vectors + 1 <= registers
    assert blocks_per_head(2, 100, 2) == 4
    assert blocks_per_head(96, 100, 2) == 1
