"""Groups that were merged into one: panels are multiplied with the blocks of the input that they depend on alone."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from convolution_layer import Case, Layer
from cpu_kernel_runs import MAX_WIDTH, widths

from mlirt.dialects.interpreter import interpret
from mlirt.kernels.convolution.cpu.merged_parts import Parts
from mlirt.passes.pipeline import check_ir, run_passes

CASES = {
    "four of 34": Case(136, 136, 4, 7, (1, 1), pre=(0, 0), post=(0, 0), groups=4, has_residual=True),
    "more results than channels": Case(20, 100, 5, 6, groups=5, batch=2),
    "fewer results than channels": Case(96, 40, 5, 6, (1, 1), pre=(0, 0), post=(0, 0), groups=4),
    "many of eight": Case(136, 136, 6, 7, groups=17, batch=5, has_residual=True),
    "many of three": Case(99, 99, 5, 9, (3, 1), pre=(1, 0), post=(1, 0), groups=33),
    "merged by twos": Case(96, 96, 5, 6, groups=12, is_symbolic=True),
}


def _lowered(case: Case, bits: int) -> Layer:
    layer = Layer(case)
    run_passes(layer.module, layer.ctx, f"merge-convolution-groups{{lanes={bits // 32}}}")
    run_passes(layer.module, layer.ctx, f"assign-layouts{{lanes={bits // 32}}}")
    layer.use("cpu_tiles")
    return layer


@pytest.mark.parametrize("name", CASES)
def test_a_convolution_gives_what_it_means(name: str) -> None:
    for bits in widths() if name == "fewer results than channels" else (MAX_WIDTH,):
        layer = Layer(CASES[name])
        want = interpret(layer.module, layer.ctx, layer.inputs)
        layer = _lowered(CASES[name], bits)
        run_passes(layer.module, layer.ctx, f"convert-fused-to-kernel{{vector_bits={bits}}}")
        run_passes(layer.module, layer.ctx, f"map-parallel-to-workers{{vector_bits={bits}}}")
        check_ir(layer.module)
        plan = CompiledPlan(layer.module, layer.ctx, bits)
        for workers in (1, 3):
            got = plan.run(layer.inputs, workers)
            for key, array in want.items():
                np.testing.assert_allclose(got[key], array, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("groups", "is_cut"), [(4, True), (1, False), (136, False)])
def test_only_merged_groups_leave_blocks_out(groups: int, is_cut: bool) -> None:
    layer = _lowered(Case(136, 136, 2, 3, (1, 1), pre=(0, 0), post=(0, 0), groups=groups), MAX_WIDTH)
    run_passes(layer.module, layer.ctx, f"convert-fused-to-kernel{{vector_bits={MAX_WIDTH}}}")
    assert ("first_block" in str(layer.module)) == is_cut


@pytest.mark.parametrize("count", [1, 2, 4, 5])
@pytest.mark.parametrize("sizes", [(34, 34), (6, 28), (24, 10), (16, 16), (1, 3)])
def test_blocks_are_those_of_the_channels(count: int, sizes: tuple[int, int]) -> None:
    inputs, outputs = sizes
    parts = Parts(count, inputs, outputs)
    for width in (16, 32, 48):
        panels = -(-count * outputs // width)
        for panel in range(panels):
            channels = range(panel * width, min((panel + 1) * width, count * outputs))
            needed = {c // 16 for o in channels for c in range(o // outputs * inputs, (o // outputs + 1) * inputs)}
            assert set(parts.blocks(panel * width, (panel + 1) * width, 16)) == needed
        assert 0 < parts.needed(panels, width, 16) <= 1
        kept = parts.most(panels, width, 16)
        assert parts.needed(panels, width, 16) * -(-count * inputs // 16) <= kept <= -(-count * inputs // 16)
    assert Parts(4, 34, 34).needed(9, 16, 16) == 33 / 81


def test_weights_of_the_blocks_that_a_panel_needs_are_kept() -> None:
    parts = Parts(5, 8, 8)
    packed = np.arange(3 * 3 * 2).reshape(1, 3, 3, 2)
    assert parts.most(3, 16, 16) == 1
    np.testing.assert_array_equal(parts.kept(packed, 16, 16), packed[:, [0, 1, 2], [0, 1, 2]][:, :, None])
    uneven = Parts(2, 24, 24)  # the second panel needs all three blocks, and the last one the second and third
    assert uneven.most(3, 16, 16) == 3
    np.testing.assert_array_equal(uneven.kept(packed, 16, 16), packed)
