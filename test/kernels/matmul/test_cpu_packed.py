"""Products with weights of few bits on register tiles, compiled: shapes that nothing was tuned for."""

from __future__ import annotations

import platform
import re

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from cpu_kernel_runs import widths
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packed_products import PackedCase, PackedNetwork

from mlirt.builder.machine_texts import machine_text
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.tile_packed import TileLoadPackedOp, TileMultiplyAddPackedOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.dialects.plan.ops import WeightOp
from mlirt.kernels.matmul.cpu.packed_tile_kernel import FEW_ROWS
from mlirt.passes.pipeline import check_ir, run_passes


def _lowered(network: PackedNetwork, vector_bits: int, only: str = "") -> None:
    tactic = f" tactic={only}" if only else ""
    run_passes(
        network.module,
        network.ctx,
        f"convert-fused-to-kernel{{target=cpu vector_bits={vector_bits}{tactic}}},"
        f"map-parallel-to-workers{{vector_bits={vector_bits}}}",
    )
    check_ir(network.module)


def _check(case: PackedCase, vector_bits: int, only: str = "") -> None:
    """Compare with the reference, run by one worker, two, and more than there is work for."""
    network = PackedNetwork(case)
    (expected,) = interpret(network.module, network.ctx, network.inputs).values()
    _lowered(network, vector_bits, only)
    uses = {type(op) for op in network.module.walk()}
    if not only:
        few = case.symbolic or case.rows * int(np.prod(case.batch, initial=1)) <= FEW_ROWS
        assert (TileMultiplyAddPackedOp in uses) == few
        assert (TileLoadPackedOp in uses) == (case.symbolic or not few)
    plan = CompiledPlan(network.module, network.ctx, vector_bits)
    for workers in (1, 2, 7):
        (found,) = plan.run(network.inputs, workers).values()
        np.testing.assert_allclose(found, expected, 2e-4, 2e-4)


_TYPICAL = [
    PackedCase(1, 64, 128, 32),
    PackedCase(1, 333, 128, 32, zero="bytes", bias=True),
    PackedCase(3, 37, 100, 16, zero="floats"),
    PackedCase(5, 130, 70, 64, bias=True),
    PackedCase(2, 48, 300, 256, zero="bytes", symbolic=True),
    PackedCase(9, 48, 300, 128, bits=8, zero="bytes", symbolic=True),
    PackedCase(1, 65, 53, 56, bits=8),
    PackedCase(4, 20, 72, 16, bits=2, zero="bytes"),
    PackedCase(1, 50, 43, 48, bits=2),
    PackedCase(3, 40, 96, 32, batch=(5,), zero="bytes", symbolic=True, bias=True),
    PackedCase(1, 17, 1, 8),
    PackedCase(40, 200, 33, 16, batch=(2, 3)),
]


@pytest.mark.parametrize("case", _TYPICAL, ids=str)
@pytest.mark.parametrize("bits", widths())
def test_typical_products(case: PackedCase, bits: int) -> None:
    _check(case, bits)


@pytest.mark.parametrize("case", _TYPICAL[:7], ids=str)
def test_plain_loops_give_the_same(case: PackedCase) -> None:
    _check(case, widths()[0], only="generic_packed")


@st.composite
def cases(draw: st.DrawFn) -> PackedCase:
    return PackedCase(
        draw(st.integers(1, 20)),
        draw(st.integers(1, 150)),
        draw(st.integers(1, 300)),
        draw(st.sampled_from([8, 16, 24, 32, 64, 128, 256])),
        draw(st.sampled_from([2, 4, 8])),
        draw(st.sampled_from(["one", "bytes", "floats"])),
        tuple(draw(st.lists(st.integers(1, 3), max_size=2))),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), bits=st.sampled_from(widths()))
def test_products_of_any_shape(case: PackedCase, bits: int) -> None:
    network = PackedNetwork(case)
    (expected,) = interpret(network.module, network.ctx, network.inputs).values()
    _lowered(network, bits)
    plan = CompiledPlan(network.module, network.ctx, bits)
    (found,) = plan.run(network.inputs, 2).values()
    np.testing.assert_allclose(found, expected, 5e-4, 5e-4)


@pytest.mark.parametrize("case", [PackedCase(2, 24, 40, 16, zero="bytes"), PackedCase(7, 24, 20, 16, bits=8)], ids=str)
def test_the_interpreted_kernel_gives_the_same(case: PackedCase) -> None:
    network = PackedNetwork(case)
    (expected,) = interpret(network.module, network.ctx, network.inputs).values()
    run_passes(network.module, network.ctx, "convert-fused-to-kernel{target=cpu},map-parallel-to-workers")
    (found,) = run_plan(network.module, network.ctx, network.inputs).values()
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


def test_the_weights_of_a_plan_are_the_codes() -> None:
    network = PackedNetwork(PackedCase(1, 128, 256, 32))
    _lowered(network, widths()[0])
    sizes = [network.ctx.weights.get(op.value).nbytes for op in network.module.walk() if isinstance(op, WeightOp)]
    assert sum(sizes) <= 128 * 256 // 2 + 128 * 8 * 4 + 512


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads the assembly of x86-64")
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("bits", [512, 256])
def test_accumulators_stay_in_registers(rows: int, bits: int) -> None:
    """No step of the sum goes through the stack, and AVX-512 looks codes up."""
    if bits not in widths() or 512 not in widths():
        pytest.skip("this machine has no such vectors, or 16 registers for them: a step needs more")
    network = PackedNetwork(PackedCase(rows, 512, 256, 64, zero="bytes"))
    _lowered(network, bits)
    parts = re.split(r"^\S+:.*$", machine_text(network.module, "asm"), flags=re.MULTILINE)
    steps = [part for part in parts if part.count("vfmadd") >= 16]
    assert steps
    assert not [line for part in steps for line in part.splitlines() if "(%rsp)" in line and "mm" in line]
    assert bits != 512 or any("vpermps" in part for part in steps)
