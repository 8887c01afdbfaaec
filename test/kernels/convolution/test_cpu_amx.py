"""Int8 convolutions on the matrix unit: bit by bit what the op means, and when it is chosen."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from quantized_convolution import Case, Layer
from xdsl.dialects.builtin import StringAttr
from xdsl.parser import Parser

from mlirt.builder.host import cpu_target
from mlirt.dialects.device_files import cpu_device
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.amx import AmxDotAddOp
from mlirt.dialects.kernel.features import features_of
from mlirt.dialects.target import AMX
from mlirt.kernels.lib.cpu.amx_choice import MatrixTile, choose_matrix_tile, piece_of, taps_at_once
from mlirt.kernels.lib.tactics.registry import TACTIC
from mlirt.passes.pipeline import check_ir, run_passes

CASES = {
    "point": Case(32, 48, 7, 9, (1, 1), pre=(0, 0), post=(0, 0)),
    "point of one pixel": Case(64, 64, 1, 1, (1, 1), pre=(0, 0), post=(0, 0), batch=3),
    "accumulators": Case(32, 32, 9, 13, batch=2, output="int32"),
    "scaled": Case(32, 32, 9, 29, output="float32"),
    "channels left over": Case(20, 37, 6, 5, has_residual=True),
    "many blocks": Case(16, 80, 5, 14, has_residual=True),
    "stride and dilation": Case(16, 16, 17, 15, stride=(2, 2), dilation=(2, 1), pre=(2, 0), post=(1, 1)),
    "dilated rows": Case(16, 16, 17, 15, dilation=(1, 2), pre=(0, 2), post=(0, 2)),
    "five taps": Case(16, 16, 9, 20, (1, 5), pre=(0, 2), post=(0, 2)),
    "first layer": Case(3, 32, 21, 40, (7, 7), stride=(2, 2), pre=(3, 3), post=(3, 3)),
    "groups of blocks": Case(64, 96, 8, 8, groups=2),
}
UNIT = cpu_device("cpu-amx")
_LOWER = "convert-fused-to-kernel{vector_bits=512 features=amx-int8,amx-tile},map-parallel-to-workers{vector_bits=512}"


def _lowered(case: Case, tactic: str) -> Layer:
    layer = Layer(case)
    run_passes(layer.module, layer.ctx, "assign-layouts{lanes=16}")
    for op in layer.module.walk():
        if isinstance(op, ConvolutionOp) and tactic:
            op.attributes[TACTIC] = StringAttr(tactic)
    run_passes(layer.module, layer.ctx, _LOWER)
    check_ir(layer.module)
    return layer


@pytest.mark.parametrize("name", CASES)
def test_a_convolution_gives_what_it_means(name: str) -> None:
    reference = Layer(CASES[name])
    want = interpret(reference.module, reference.ctx, reference.inputs)
    layer = _lowered(CASES[name], "cpu_amx")
    assert any(isinstance(op, AmxDotAddOp) for op in layer.module.walk())
    assert features_of(layer.module) == AMX
    text = str(layer.module)
    assert str(Parser(layer.ctx, text).parse_module()) == text
    if not cpu_target().special >= AMX:
        pytest.skip("this processor has no matrix unit to run the kernel on")
    plan = CompiledPlan(layer.module, layer.ctx, 512, has_special=True)
    for workers in (1, 2, 3):
        got = plan.run(layer.inputs, workers)
        for key, array in want.items():
            np.testing.assert_array_equal(got[key], array)


def test_it_is_chosen_where_it_gains() -> None:
    wide, narrow = Case(64, 64, 28, 28), Case(16, 16, 3, 3)
    symbolic = Case(64, 64, 28, 28, is_symbolic=True)
    for case, is_chosen in ((wide, True), (narrow, False), (symbolic, False)):
        layer = _lowered(case, "")
        assert any(isinstance(op, AmxDotAddOp) for op in layer.module.walk()) == is_chosen


def test_tiles_fit_the_registers_and_the_row() -> None:
    for length in (1, 7, 14, 49, 56, 112, 3136):
        for blocks in (1, 2, 3, 4, 16, 32):
            tile, cycles = choose_matrix_tile(length, blocks, 48, UNIT)
            assert tile.rows * tile.columns + tile.rows + tile.columns <= 8
            assert tile.length <= length
            assert tile.columns <= blocks
            assert cycles > 0
            assert tile.length % piece_of(tile) == 0
    assert choose_matrix_tile(56, 4, 48, UNIT)[0] == MatrixTile(2, 2, 14)


def test_neighbouring_taps_are_taken_at_once() -> None:
    assert [taps_at_once(taps, 16, 1) for taps in (1, 2, 3, 4, 5, 6)] == [1, 2, 3, 4, 1, 3]
    assert taps_at_once(7, 4, 1) == 7
    assert taps_at_once(3, 16, 2) == 1
