"""Convolutions of blocked tensors on register tiles, compiled, against the meaning of the op on plain tensors."""

from __future__ import annotations

import platform
import re
from typing import cast

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from convolution_layer import Case, Layer
from cpu_kernel_runs import widths
from xdsl.dialects.builtin import VectorType

from mlirt.builder.machine_texts import machine_text
from mlirt.dialects.device_files import cpu_device
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.tile import TileForEachOp
from mlirt.dialects.kernel.tile_products import TileMultiplyAddLanesOp, TileMultiplyAddOp
from mlirt.dialects.symbolic import sym
from mlirt.kernels.convolution.cpu.packing import pack, pack_depthwise
from mlirt.kernels.convolution.cpu.tile_choice import choose_tile, lines_for_each
from mlirt.passes.pipeline import check_ir, run_passes

CASES = {
    "point": Case(32, 48, 7, 9, (1, 1), pre=(0, 0), post=(0, 0)),
    "point of one pixel": Case(64, 64, 1, 1, (1, 1), pre=(0, 0), post=(0, 0), batch=3),
    "three by three": Case(32, 32, 9, 13, batch=2),
    "channels left over": Case(20, 37, 6, 5, has_residual=True),
    "many blocks": Case(16, 80, 5, 14, has_residual=True),
    "stride and dilation": Case(16, 16, 17, 15, stride=(2, 2), dilation=(2, 1), pre=(2, 0), post=(1, 1)),
    "first layer": Case(3, 32, 21, 30, (7, 7), stride=(2, 2), pre=(3, 3), post=(3, 3), is_first=True),
    "first layer without pads": Case(1, 24, 12, 12, (3, 5), pre=(0, 0), post=(0, 0), is_first=True),
    "groups of blocks": Case(64, 96, 8, 8, groups=2),
    "depthwise": Case(48, 48, 10, 11, groups=48, has_residual=True),
    "depthwise with channels left over": Case(24, 24, 13, 9, (5, 5), stride=(2, 1), pre=(2, 2), post=(2, 2), groups=24),
    "depthwise of one block": Case(16, 16, 6, 29, groups=16),
    "one column": Case(32, 48, 23, 1, (5, 1), pre=(1, 0), post=(2, 0), has_residual=True, batch=2),
    "one column with steps": Case(32, 32, 40, 1, (3, 1), stride=(3, 2), pre=(0, 0), post=(0, 0)),
    "one column with borders": Case(16, 16, 19, 1, pre=(1, 1), post=(1, 1)),
    "one row": Case(32, 64, 1, 61, (1, 5), pre=(0, 2), post=(0, 2), has_residual=True),
    "windows of a column": Case(16, 32, 11, 6, (3, 1), pre=(1, 0), post=(1, 0), has_residual=True),
    "depthwise column": Case(32, 32, 30, 1, (7, 1), pre=(3, 0), post=(3, 0), groups=32),
    "symbolic windows of a column": Case(32, 32, 9, 7, (3, 1), pre=(1, 0), post=(1, 0), is_symbolic=True),
    "scaled by channel": Case(32, 32, 7, 7, (1, 1), pre=(0, 0), post=(0, 0), has_scale=True, batch=2),
    "symbolic": Case(32, 48, 11, 19, is_symbolic=True, has_residual=True, batch=2),
    "symbolic point": Case(32, 32, 6, 10, (1, 1), pre=(0, 0), post=(0, 0), is_symbolic=True),
    "dilated beyond the image": Case(32, 48, 5, 7, dilation=(6, 9), pre=(6, 9), post=(6, 9), batch=5),
    "dilated across the image": Case(16, 64, 16, 16, dilation=(12, 12), pre=(12, 12), post=(12, 12), has_residual=True),
    "more padding than windows": Case(16, 16, 4, 30, (2, 2), stride=(3, 1), pre=(7, 9), post=(5, 20)),
    "symbolic dilated": Case(16, 32, 9, 21, dilation=(5, 4), pre=(5, 4), post=(5, 4), is_symbolic=True, batch=2),
    "depthwise dilated": Case(
        32, 32, 6, 20, (5, 5), stride=(2, 1), dilation=(3, 7), pre=(6, 14), post=(6, 14), groups=32
    ),
    "symbolic depthwise": Case(32, 32, 9, 21, groups=32, is_symbolic=True, stride=(2, 2)),
}
_NARROW = ("three by three", "channels left over", "first layer", "depthwise", "symbolic")


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("name", CASES)
def test_a_convolution_gives_what_it_means(name: str, bits: int) -> None:
    if bits != max(widths()) and name not in _NARROW:
        pytest.skip("tried at the widest vectors")
    layer = Layer(CASES[name])
    want = interpret(layer.module, layer.ctx, layer.inputs)
    _lower(layer, bits)
    check_ir(layer.module)
    steps = [op for op in layer.module.walk() if isinstance(op, TileMultiplyAddOp | TileMultiplyAddLanesOp)]
    assert steps
    assert any(isinstance(op, TileMultiplyAddLanesOp) for op in steps) == ("depthwise" in name)
    plan = CompiledPlan(layer.module, layer.ctx, bits)
    for workers in (1, 2, 3):
        got = plan.run(layer.inputs, workers)
        for key, array in want.items():
            np.testing.assert_allclose(got[key], array, rtol=1e-4, atol=1e-5)


def _lower(layer: Layer, bits: int) -> None:
    run_passes(layer.module, layer.ctx, f"assign-layouts{{lanes={bits // 32}}}")
    layer.use("cpu_tiles")
    tail = f"convert-fused-to-kernel{{vector_bits={bits}}},map-parallel-to-workers{{vector_bits={bits}}}"
    run_passes(layer.module, layer.ctx, tail)


def test_kernels_are_shared_between_sizes() -> None:
    """Two layers of different size and the same structure have one kernel: sizes are arguments."""
    names: list[set[str]] = []
    for height, channels in ((28, 32), (56, 64)):
        layer = Layer(Case(channels, channels, height, height))
        _lower(layer, 512)
        kernels = [op for op in layer.module.ops if op.name == "kernel.func"]
        names.append(
            {str(op.properties["sym_name"]) for op in kernels if any(isinstance(i, TileForEachOp) for i in op.walk())}
        )
    assert names[0] == names[1]


def test_packed_weights_lie_panel_by_panel() -> None:
    kernel = np.arange(40 * 20 * 3, dtype=np.float32).reshape(40, 20, 1, 3)
    packed = pack(kernel, 1, 2, 16, 16)
    assert packed.shape == (1, 2, 2, 1, 3, 16, 32)
    assert packed[0, 0, 1, 0, 2, 3, 5] == kernel[5, 19, 0, 2]
    assert packed[0, 1, 0, 0, 1, 7, 7] == kernel[39, 7, 0, 1]
    assert not packed[0, 1, :, :, :, :, 8:].any()
    assert not packed[:, :, 1, :, :, 4:, :].any()
    depthwise = np.arange(20 * 6, dtype=np.float32).reshape(20, 1, 2, 3)
    assert pack_depthwise(depthwise, 16)[1, 1, 2, 3] == depthwise[19, 0, 1, 2]
    assert not pack_depthwise(depthwise, 16)[1, ..., 4:].any()


@pytest.mark.parametrize(("device", "registers"), [("cpu-avx512", 32), ("cpu-avx2", 16), ("cpu-128", 16)])
def test_tiles_leave_registers_for_the_factors(device: str, registers: int) -> None:
    for length in (1, 7, 14, 49, 56, 400, sym("w")):
        for blocks in (1, 2, 3, 4, 5, 16):
            shape = choose_tile(length, blocks, cpu_device(device))
            assert shape.pixels * shape.blocks + shape.blocks + 2 <= registers
            assert shape.blocks <= blocks
            assert not isinstance(length, int) or shape.pixels <= length


def test_few_pixels_do_not_wait_for_weights_that_no_near_cache_keeps() -> None:
    """Tiles of two pixels would leave no pixel of 34 over, but read eight vectors of weights in each step."""
    cpu = cpu_device("cpu-avx512")
    assert choose_tile(34, 8, cpu, 2, steps=20).pixels == 2
    assert choose_tile(34, 8, cpu, 2, steps=1600).pixels > 2


def test_tiles_together_ask_for_all_lines_of_the_next_panel() -> None:
    assert [lines_for_each(8, tiles) for tiles in (1, 3, 4, 7, 8, 100, None)] == [8, 4, 2, 2, 1, 1, 1]
    assert lines_for_each(12, 1) >= 12


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads the assembly of x86-64")
@pytest.mark.parametrize("blocks", [2, 3, 6])
def test_accumulators_stay_in_registers(blocks: int) -> None:
    """No step of the sum goes through the stack: with one register too few, each waits for a store and its load.

    Tiles of one block wait for the loads of their pixels, which hide those of the stack.
    """
    bits = max(widths())
    layer = Layer(Case(32, blocks * bits // 32, 12, 40))
    _lower(layer, bits)
    parts = re.split(r"^\S+:.*$", machine_text(layer.module, "asm"), flags=re.MULTILINE)
    steps = [part for part in parts if part.count("vfmadd") >= 16]
    assert steps
    assert not [line for part in steps for line in part.splitlines() if "(%rsp)" in line and "mm" in line]


@pytest.mark.parametrize("name", ["one column", "depthwise column"])
def test_a_column_is_one_row(name: str) -> None:
    """Its pixels lie behind each other: a tile has some of them, not the one of a row."""
    layer = Layer(CASES[name])
    _lower(layer, max(widths()))
    steps = [op for op in layer.module.walk() if isinstance(op, TileMultiplyAddOp | TileMultiplyAddLanesOp)]
    assert all(cast("VectorType", op.results[0].type).get_shape()[0] > 1 for op in steps)
