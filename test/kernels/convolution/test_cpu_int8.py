"""Int8 convolutions on register tiles, compiled: bit by bit what the op means on plain tensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from cpu_kernel_runs import widths
from quantized_convolution import Case, Layer

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.tile_products import TileDotAddOp, TileMultiplyAddLanesOp
from mlirt.passes.pipeline import check_ir, run_passes

CASES = {
    "point": Case(32, 48, 7, 9, (1, 1), pre=(0, 0), post=(0, 0)),
    "point of one pixel": Case(64, 64, 1, 1, (1, 1), pre=(0, 0), post=(0, 0), batch=3),
    "accumulators": Case(32, 32, 9, 13, batch=2, output="int32"),
    "scaled": Case(32, 32, 9, 13, output="float32"),
    "quantised": Case(32, 32, 9, 13, batch=2, zero_point=3),
    "channels left over": Case(20, 37, 6, 5, has_residual=True),
    "point, blocks left over": Case(44, 24, 5, 7, (1, 1), pre=(0, 0), post=(0, 0)),
    "wide window": Case(12, 16, 9, 12, (3, 9), pre=(1, 4), post=(1, 4)),
    "many blocks": Case(16, 80, 5, 14, has_residual=True),
    "stride and dilation": Case(16, 16, 17, 15, stride=(2, 2), dilation=(2, 1), pre=(2, 0), post=(1, 1)),
    "first layer": Case(3, 32, 21, 30, (7, 7), stride=(2, 2), pre=(3, 3), post=(3, 3)),
    "first layer of six channels": Case(6, 24, 12, 12, (3, 5), pre=(0, 2), post=(0, 2), zero_point=255),
    "groups of blocks": Case(64, 96, 8, 8, groups=2),
    "depthwise": Case(48, 48, 10, 11, groups=48, has_residual=True),
    "depthwise with channels left over": Case(24, 24, 13, 9, (5, 5), stride=(2, 1), pre=(2, 2), post=(2, 2), groups=24),
    "depthwise sums": Case(16, 16, 6, 29, groups=16, output="int32"),
    "symbolic": Case(32, 48, 11, 19, is_symbolic=True, has_residual=True, batch=2),
    "symbolic point": Case(32, 32, 6, 10, (1, 1), pre=(0, 0), post=(0, 0), is_symbolic=True),
}
_NARROW = (
    *("accumulators", "channels left over", "first layer", "depthwise", "symbolic"),
    *("point", "point, blocks left over", "symbolic point", "wide window"),
)


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("name", CASES)
def test_a_convolution_gives_what_it_means(name: str, bits: int) -> None:
    if bits != max(widths()) and name not in _NARROW:
        pytest.skip("tried at the widest vectors")
    _check(CASES[name], bits)


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("name", ["accumulators", "first layer"])
def test_processors_without_the_instruction_give_the_same(name: str, bits: int) -> None:
    _check(CASES[name], bits, features="none")


def test_sums_of_extreme_int8_do_not_saturate() -> None:
    for features in ("", "none"):
        layer = Layer(replace(CASES["accumulators"], zero_point=255))
        layer.inputs["input0"][:] = 255
        _check_layer(layer, max(widths()), features)


def _check(case: Case, bits: int, features: str = "") -> None:
    _check_layer(Layer(case), bits, features)


def _check_layer(layer: Layer, bits: int, features: str) -> None:
    want = interpret(layer.module, layer.ctx, layer.inputs)
    run_passes(layer.module, layer.ctx, f"assign-layouts{{lanes={bits // 32}}}")
    tail = f"convert-fused-to-kernel{{vector_bits={bits}}},map-parallel-to-workers{{vector_bits={bits}}}"
    run_passes(layer.module, layer.ctx, tail)
    check_ir(layer.module)
    is_depthwise = layer.case.groups == layer.case.channels
    wanted = TileMultiplyAddLanesOp if is_depthwise else TileDotAddOp
    assert any(isinstance(op, wanted) for op in layer.module.walk())
    plan = CompiledPlan(layer.module, layer.ctx, bits, not features)
    for workers in (1, 2, 3):
        got = plan.run(layer.inputs, workers)
        for key, array in want.items():
            assert len(np.unique(array)) > 20
            np.testing.assert_array_equal(got[key], array)
