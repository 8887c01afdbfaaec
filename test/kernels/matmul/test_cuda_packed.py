"""Products with weights of few bits on a GPU: on the SIMT interpreter against the reference, and what PTX they are."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import lower_to_threads
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packed_products import PackedCase, PackedNetwork

from mlirt.builder.machine_texts import machine_text
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan


def _check(case: PackedCase, tactic: str = "cuda_packed_rows") -> None:
    network = PackedNetwork(case)
    (expected,) = interpret(network.module, network.ctx, network.inputs).values()
    lowered = lower_to_threads(network.module, network.ctx, tactic)
    (found,) = run_plan(lowered, network.ctx, network.inputs).values()
    assert found.dtype == expected.dtype
    wide = expected.astype(np.float64)
    tolerance = (2e-3 if case.halves else 1e-5) * max(1.0, float(np.abs(wide).max()))
    np.testing.assert_allclose(found.astype(np.float64), wide, rtol=0, atol=tolerance)


CASES = [
    PackedCase(1, 64, 256, 32),
    PackedCase(1, 2200, 64, 32, zero="bytes", bias=True),  # two columns a warp
    PackedCase(3, 37, 100, 16, zero="floats", bias=True),
    PackedCase(8, 21, 128, 128, halves=True, half_scales=True),
    PackedCase(5, 33, 140, 64, zero="bytes", batch=(2,), symbolic=True),
    PackedCase(11, 9, 1100, 256, symbolic=True, halves=True),
    PackedCase(2, 9, 70, 72, bits=8, zero="bytes"),
    PackedCase(2, 9, 70, 32, bits=2, zero="bytes"),
    PackedCase(1, 5, 3, 8),
    PackedCase(3, 37, 100, 16, bias=True, float4=True),
    PackedCase(5, 21, 136, 32, halves=True, half_scales=True, float4=True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_typical_products(case: PackedCase) -> None:
    _check(case)


@pytest.mark.parametrize("case", [*CASES[2:5], *CASES[-2:]], ids=str)
def test_plain_loops_give_the_same(case: PackedCase) -> None:
    _check(case, "generic_packed")


@st.composite
def cases(draw: st.DrawFn) -> PackedCase:
    return PackedCase(
        draw(st.integers(1, 10)),
        draw(st.integers(1, 40)),
        draw(st.integers(1, 150)),
        draw(st.sampled_from([16, 32, 64, 128, 256])),
        draw(st.sampled_from([2, 4, 8])),
        draw(st.sampled_from(["one", "bytes", "floats"])),
        tuple(draw(st.lists(st.integers(1, 3), max_size=2))),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases())
def test_products_of_any_shape(case: PackedCase) -> None:
    _check(case)


@pytest.mark.parametrize("halves", [False, True])
def test_codes_and_numbers_are_read_by_16_bytes(halves: bool) -> None:
    network = PackedNetwork(PackedCase(1, 64, 4096, 32, halves=halves))
    text = machine_text(lower_to_threads(network.module, network.ctx), "ptx")
    assert [line for line in text.splitlines() if "ld.global" in line and ".v4." in line]
    assert not [line for line in text.splitlines() if "cvt.rn.f32.s32" in line or "cvt.rn.f32.u32" in line]
