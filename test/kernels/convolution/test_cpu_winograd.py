"""Winograd's convolutions, compiled, against the meaning of the op; and for which layers they are chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from convolution_layer import Case, Layer
from cpu_kernel_runs import widths

from mlirt.dialects.device_files import cpu_device
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.tile import TileTransformOp
from mlirt.dialects.kernel.worker import PARTS
from mlirt.dialects.symbolic import evaluate
from mlirt.kernels.convolution.cpu import winograd as cpu_winograd
from mlirt.kernels.convolution.cpu.winograd_choice import Cut, Image, choose_cut
from mlirt.kernels.convolution.cpu.winograd_plan import Plan
from mlirt.kernels.convolution.cpu.winograd_transforms import SCHEMES, pack_transformed, transform_kernel
from mlirt.kernels.lib.tile import RegisterTile
from mlirt.passes.pipeline import check_ir, run_passes

WIDE = cpu_device("cpu-avx512")

CASES = {
    "whole patches": Case(32, 64, 8, 12, has_residual=True),
    "patches that reach beyond": Case(48, 32, 7, 13, batch=2, has_residual=True),
    "channels left over": Case(40, 37, 9, 6, has_scale=True),
    "sizes known at run time": Case(32, 48, 11, 19, is_symbolic=True, has_residual=True, batch=2),
    "no pads": Case(32, 32, 10, 11, pre=(0, 0), post=(0, 0)),
    "every second row": Case(32, 32, 13, 11, dilation=(2, 1), has_residual=True),
    "dilated": Case(32, 48, 17, 20, dilation=(2, 3), pre=(2, 3), post=(2, 3), is_symbolic=True, batch=2),
    "dilated whole patches": Case(32, 32, 16, 24, dilation=(2, 3), pre=(2, 3), post=(2, 3), has_residual=True),
    "fewer rows than phases": Case(32, 32, 3, 9, dilation=(4, 2), pre=(4, 2), post=(4, 2)),
}
SMALL, LARGE = SCHEMES


@pytest.mark.parametrize("scheme", SCHEMES, ids=["2x2", "4x4"])
@pytest.mark.parametrize("is_shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("name", CASES)
def test_a_convolution_gives_what_it_means(
    name: str, is_shared: bool, scheme: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bits = max(widths())

    def cut(image: Image, *_: object) -> Cut:
        """Several tasks by two panels each, whatever the model of cycles says."""
        blocks = 2 if bits == 512 else 1
        return Cut(scheme, 4, RegisterTile(2, blocks), -(-image.blocks_out // blocks), 1, is_shared)

    monkeypatch.setattr(cpu_winograd, "choose_cut", cut)
    layer = Layer(CASES[name])
    want = interpret(layer.module, layer.ctx, layer.inputs)
    _lower(layer, bits, tactic="cpu_winograd")
    assert any(isinstance(op, TileTransformOp) for op in layer.module.walk())
    plan = CompiledPlan(layer.module, layer.ctx, bits)
    for workers in (1, 3):
        got = plan.run(layer.inputs, workers)
        for key, array in want.items():
            np.testing.assert_allclose(got[key], array, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("bits", [bits for bits in widths() if bits != max(widths())])
def test_narrow_vectors(bits: int) -> None:
    layer = Layer(CASES["patches that reach beyond"])
    want = interpret(layer.module, layer.ctx, layer.inputs)
    _lower(layer, bits, tactic="cpu_winograd")
    got = CompiledPlan(layer.module, layer.ctx, bits).run(layer.inputs, 2)
    for key, array in want.items():
        np.testing.assert_allclose(got[key], array, rtol=1e-4, atol=2e-5)


def _lower(layer: Layer, bits: int, tactic: str = "") -> None:
    run_passes(layer.module, layer.ctx, f"assign-layouts{{lanes={bits // 32}}}")
    if tactic:
        layer.use(tactic)
    tail = f"convert-fused-to-kernel{{vector_bits={bits}}},map-parallel-to-workers{{vector_bits={bits}}}"
    run_passes(layer.module, layer.ctx, tail)
    check_ir(layer.module)


def test_it_is_taken_where_it_pays_and_the_products_are_few() -> None:
    """Many pixels make up for the transforms; where weights are most of what is read, fewer of them count more."""
    many, some, few = Image(1, 56, 56, 4, 4, 16), Image(1, 14, 14, 16, 16, 16), Image(1, 7, 7, 32, 32, 16)
    schemes = [cut and cut.scheme.result for cut in (choose_cut(image, WIDE, 2) for image in (many, some, few))]
    assert schemes == [4, 2, None]
    assert choose_cut(few, WIDE, 2, least_gain=0.0) is not None


def test_other_convolutions_are_left_to_the_register_tiles() -> None:
    for case in (Case(32, 32, 57, 57, stride=(2, 2)), Case(16, 64, 56, 56), Case(64, 64, 56, 56, groups=2)):
        layer = Layer(case)
        _lower(layer, 512)
        assert not any(isinstance(op, TileTransformOp) for op in layer.module.walk())


@pytest.mark.parametrize("scheme", SCHEMES, ids=["2x2", "4x4"])
def test_transforms_make_a_convolution(scheme: Any) -> None:
    rng = np.random.default_rng(7)
    patch, kernel = rng.standard_normal((scheme.patch, scheme.patch)), rng.standard_normal((1, 1, 3, 3))
    before, after = np.array(scheme.input_matrix), np.array(scheme.output_matrix)
    points = transform_kernel(kernel, scheme).reshape(scheme.patch, scheme.patch)
    got = after @ (points * (before @ patch @ before.T)) @ after.T
    size = scheme.result
    want = sum(kernel[0, 0, r, s] * patch[r : r + size, s : s + size] for r in range(3) for s in range(3))
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_transforms_lose_few_bits() -> None:
    """With the points 0, 1, -1, 2 and -2 the error is 1.4e-6 of the result; direct sums have 2e-7."""
    rng = np.random.default_rng(0)
    patches = np.maximum(rng.standard_normal((64, 16, LARGE.patch, LARGE.patch)), 0).astype(np.float32)
    kernels = (rng.standard_normal((24, 64, 3, 3)) / 24).astype(np.float32)
    before, after = (np.array(matrix, np.float32) for matrix in (LARGE.input_matrix, LARGE.output_matrix))
    points = transform_kernel(kernels, LARGE).reshape(LARGE.patch, LARGE.patch, 24, 64)
    products = np.einsum("abkc,cnab->nkab", points, before @ patches @ before.T)
    got = after @ products @ after.T
    size, wide = LARGE.result, patches.astype(np.float64)
    want = np.zeros(got.shape)
    for r, s in np.ndindex(3, 3):
        tap = kernels[:, :, r, s].astype(np.float64)
        want += np.einsum("kc,cnab->nkab", tap, wide[:, :, r : r + size, s : s + size])
    assert got.dtype == np.float32
    assert np.sqrt(((got - want) ** 2).mean() / (want**2).mean()) < 1e-6


def test_packed_weights_lie_in_the_order_of_the_products() -> None:
    transformed = np.arange(16 * 40 * 20, dtype=np.float32).reshape(16, 40, 20)
    packed = pack_transformed(transformed, 1, 2, 16)
    assert packed.shape == (2, 16, 1, 32, 32)
    assert packed[1, 5, 0, 19, 7] == transformed[5, 39, 19]
    assert not packed[1, :, :, :, 8:].any()
    assert not packed[:, :, :, 20:].any()


def test_tasks_have_memory_of_their_own() -> None:
    """What tasks that are under way at once make is disjoint, and lies beside the input that they share."""
    image = Image(2, 9, 9, 2, 4, 16)
    cut = Cut(LARGE, 4, RegisterTile(4, 2), 2, 1)
    own, shared = (Plan(image, one, 2, 9, 9) for one in (cut, replace(cut, is_shared=True)))
    assert own.tasks == shared.tasks == 2 * 3 * 2
    assert own.task_size == 36 * (own.input_point + own.output_point)
    for parts, slots in ((1, 1), (4, 4), (32, 12)):
        assert evaluate(own.memory_size, {PARTS: parts}) == slots * own.task_size
        assert evaluate(shared.memory_size, {PARTS: parts}) == slots * shared.task_size + 2 * shared.input_size
