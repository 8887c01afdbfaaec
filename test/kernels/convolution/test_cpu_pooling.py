"""Convolutions that pool their own results, compiled, against the meaning of a convolution and a pooling behind it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from convolution_layer import Case, Layer
from cpu_kernel_runs import widths

from mlirt.dialects.device_files import cpu_device
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.tile import TileTransformOp
from mlirt.dialects.kernel.tile_pooling import TilePoolOp
from mlirt.kernels.convolution.cpu import winograd as cpu_winograd
from mlirt.kernels.convolution.cpu.tile_choice import choose_tile
from mlirt.kernels.convolution.cpu.winograd_choice import Cut, Image, choose_cut
from mlirt.kernels.convolution.cpu.winograd_transforms import SCHEMES, Scheme
from mlirt.kernels.lib.tile import RegisterTile
from mlirt.passes.pipeline import check_ir, run_passes

WIDE = cpu_device("cpu-avx512")

BY_ROWS = {
    "three by three": Case(32, 32, 8, 14, pool=(2, 2), batch=2),
    "rows and pixels left over": Case(20, 37, 7, 31, pool=(2, 2)),
    "many blocks": Case(16, 80, 4, 14, pool=(2, 2)),
    "strips": Case(16, 32, 6, 37, pool=(1, 4)),
    "columns": Case(32, 16, 9, 5, (1, 1), pre=(0, 0), post=(0, 0), pool=(4, 1)),
    "points": Case(32, 48, 6, 10, (1, 1), pre=(0, 0), post=(0, 0), pool=(2, 2), pool_kind=WindowKind.AVERAGE),
    "accumulators": Case(16, 24, 8, 9, pool=(2, 4), pool_kind=WindowKind.ADD, has_scale=True),
    "first layer": Case(3, 32, 21, 30, (7, 7), stride=(2, 2), pre=(3, 3), post=(3, 3), is_first=True, pool=(2, 2)),
    "groups of blocks": Case(64, 96, 8, 8, groups=2, pool=(2, 2)),
    "depthwise": Case(48, 48, 10, 11, groups=48, pool=(2, 2)),
    "symbolic": Case(32, 48, 11, 19, is_symbolic=True, pool=(2, 2), batch=2),
    "dilated rows": Case(32, 32, 11, 19, dilation=(2, 1), pool=(1, 4)),
}
BY_PATCHES = {
    "whole patches": Case(32, 64, 8, 12, pool=(2, 2)),
    "patches that reach beyond": Case(48, 32, 7, 13, batch=2, pool=(2, 2)),
    "channels left over": Case(40, 37, 9, 6, has_scale=True, pool=(2, 1)),
    "means": Case(32, 32, 10, 11, pre=(0, 0), post=(0, 0), pool=(2, 2), pool_kind=WindowKind.AVERAGE),
    "sizes known at run time": Case(32, 48, 11, 19, is_symbolic=True, pool=(1, 2), batch=2),
    "dilated rows": Case(32, 48, 11, 19, dilation=(2, 1), is_symbolic=True, pool=(1, 4), batch=2),
}
SMALL, LARGE = SCHEMES


def check(layer: Layer, bits: int, tactic: str = "") -> None:
    """Assert that the pooled convolution gives what the layers mean one by one."""
    want = interpret(layer.module, layer.ctx, layer.inputs)
    run_passes(layer.module, layer.ctx, f"assign-layouts{{lanes={bits // 32}}},fuse-convolution-pooling")
    assert not any(isinstance(op, WindowOp) for op in layer.module.walk())
    meant = interpret(layer.module, layer.ctx, layer.inputs)
    if tactic:
        layer.use(tactic)
    tail = f"convert-fused-to-kernel{{vector_bits={bits}}},map-parallel-to-workers{{vector_bits={bits}}}"
    run_passes(layer.module, layer.ctx, tail)
    check_ir(layer.module)
    assert any(isinstance(op, TilePoolOp) for op in layer.module.walk()) == (tactic != "generic")
    plan = CompiledPlan(layer.module, layer.ctx, bits)
    for workers in (1, 3):
        got = plan.run(layer.inputs, workers)
        for key, array in want.items():
            np.testing.assert_allclose(meant[key], array, rtol=1e-4, atol=2e-5)
            np.testing.assert_allclose(got[key], array, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", BY_ROWS)
def test_rows_of_windows(name: str) -> None:
    check(Layer(BY_ROWS[name]), max(widths()), "cpu_tiles")


@pytest.mark.parametrize("bits", [bits for bits in widths() if bits != max(widths())])
def test_narrow_vectors(bits: int) -> None:
    check(Layer(BY_ROWS["rows and pixels left over"]), bits, "cpu_tiles")


@pytest.mark.parametrize(
    ("name", "scheme"), [("patches that reach beyond", SMALL), *((name, LARGE) for name in BY_PATCHES)]
)
def test_windows_of_patches(name: str, scheme: Scheme, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = 2 if max(widths()) == 512 else 1

    def cut(image: Image, *_: object) -> Cut:
        """Several tasks by two panels each, whatever the model of cycles says."""
        return Cut(scheme, 4, RegisterTile(2, blocks), -(-image.blocks_out // blocks), 1, False)

    monkeypatch.setattr(cpu_winograd, "choose_cut", cut)
    layer = Layer(BY_PATCHES[name])
    check(layer, max(widths()), "cpu_winograd")
    assert any(isinstance(op, TileTransformOp) for op in layer.module.walk())


@pytest.mark.parametrize("name", ["points", "rows and pixels left over"])
def test_loops_that_take_all(name: str) -> None:
    check(Layer(BY_ROWS[name]), max(widths()), "generic")


def test_tiles_hold_whole_windows() -> None:
    """Only patches of 4 x 4 pixels have windows of 4; tiles of a row have a multiple of 4 pixels."""
    image = Image(1, 16, 16, 16, 16, 16)
    free, pooled = choose_cut(image, WIDE, 2), choose_cut(replace(image, window=(1, 4)), WIDE, 2)
    assert free is not None
    assert free.scheme.result == 2
    assert pooled is None or pooled.scheme.result == 4
    assert all(choose_tile(length, 4, WIDE, 4).pixels % 4 == 0 for length in (4, 8, 28, 56))
