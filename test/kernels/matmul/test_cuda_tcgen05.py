"""Products into tensor memory against the reference on the SIMT interpreter, and their machine code."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import gpu_kernels
import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, constant, product_text, tensor
from gpu_kernels import check_on_threads, kernel_names, lower_to_threads, run_on_threads
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lowered_network import parse_module
from quantized_contractions import quantized_product_text, random_bytes

from mlirt.builder.machine_code.check import faults_of
from mlirt.builder.machine_code.disassembler import disassemble
from mlirt.builder.numba_cuda import compile_kernels
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.dialects.float8 import rounded
from mlirt.dialects.interpreter import interpret
from mlirt.passes.pipeline import run_passes

TILES = ("128x32s3", "128x64s2", "128x96s3", "128x128s4", "128x160s2", "128x192s3", "128x256s2")


@pytest.fixture(autouse=True)
def few_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block has several tiles, so that both tiles of accumulators are used again."""
    monkeypatch.setattr(gpu_kernels, "DEVICE", "b200+processors=2")


def forced(text: str, choice: str) -> str:
    """The network with its tactic chosen."""
    name = f"cuda_tcgen05:{choice}" if choice else "cuda_tcgen05"
    return text.replace("{transpose_lhs", f'{{fused.tactic = "{name}", transpose_lhs')


def check(
    sizes: tuple[int, int, int],
    choice: str = "",
    element: str = "f16",
    flips: tuple[bool, bool] = (False, True),
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    features: str = "",
    tolerance: float | None = None,
) -> None:
    """Compare a product of (rows, columns, depth) in one configuration."""
    rows, columns, depth = sizes
    left = (*batch[0], *((depth, rows) if flips[0] else (rows, depth)))
    right = (*batch[1], *((columns, depth) if flips[1] else (depth, columns)))
    result = (*np.broadcast_shapes(*batch), rows, columns)
    rng = np.random.default_rng(0)
    shapes = {"x": left, "w": right, "b": (columns,)}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    text = forced(product_text(left, right, result, element, flips), choice)
    module = check_on_threads(text, inputs, tolerance=tolerance or TOLERANCE[element], features=features)
    assert kernel_names(module) == ["matmul"]
    assert "kernel.tensor_mma" in str(module)


@pytest.mark.parametrize(("element", "left", "right"), list(product(("f16", "bf16"), (False, True), (False, True))))
def test_every_orientation_of_both_operands(element: str, left: bool, right: bool) -> None:
    check((136, 72, 200), "128x64s3", element, (left, right))


@pytest.mark.parametrize("choice", TILES)
def test_every_tile_with_several_tiles_a_block(choice: str) -> None:
    check((700, 300, 136), choice)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.tuples(st.integers(5, 300), st.integers(5, 140), st.integers(1, 40).map(lambda eights: 8 * eights)),
    st.sampled_from(TILES),
)
def test_any_sizes(sizes: tuple[int, int, int], choice: str) -> None:
    check(sizes, choice)


@pytest.mark.parametrize("batch", [((5,), (5,)), ((2, 1), (1, 3)), ((5,), (1,))])
def test_batches_broadcast(batch: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    check((133, 40, 72), "128x64s2", batch=batch)


def test_float32_where_the_target_may_round() -> None:
    check((136, 88, 136), "128x64s3", "f32", features="tf32", tolerance=1e-3)


@pytest.mark.parametrize(("element", "residual", "result"), [("i8", "", "i8"), ("ui8", "i8", "f32"), ("i8", "", "ui8")])
def test_int8_bit_by_bit(element: str, residual: str, result: str) -> None:
    left, columns = (150, 144), 88
    tactic = "cuda_tcgen05:128x64s3"
    text = quantized_product_text(left, columns, element, result, residual=residual, tactic=tactic)
    inputs = {"x": random_bytes(left, element), "r": random_bytes((left[0], columns), residual or "i8", 1)}
    assert f"kernel.tensor_mma {'u8' if element == 'ui8' else 's8'}" in str(check_on_threads(text, inputs))


def test_8_bit_floats() -> None:
    noise = np.random.default_rng(0)
    inputs: dict[str, Any] = {"x": rounded(noise.normal(size=(150, 272))), "w": rounded(noise.normal(size=(88, 272)))}
    x, w, y = "tensor<150x272xf8E4M3FN>", "tensor<88x272xf8E4M3FN>", "tensor<150x88xf32>"
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}, %w: {w} {{trt.name = "w"}}) -> ({y} {{trt.name = "y"}}) {{
      %y = fused.matmul %x, %w {{transpose_rhs = true, fused.tactic = "cuda_tcgen05:128x64s3"}} : ({x}, {w}) -> {y} {{
      ^bb0(%acc: f32):
        fused.yield %acc : f32
      }}
      func.return %y : {y}
    }}"""
    assert "kernel.tensor_mma e4m3" in str(check_on_threads(text, inputs))


@pytest.mark.parametrize("choice", ["128x64s2", "128x256s2"])
def test_known_operands_are_packed(choice: str) -> None:
    rng = np.random.default_rng(1)
    weights = constant((rng.standard_normal((72, 50)) / 8).astype(np.float16), "f16")
    text = forced(product_text((170, 72), (72, 50), (170, 50), "f16", (False, False)), choice)
    kind = tensor((72, 50), "f16")
    text = text.replace(f', %w: {kind} {{trt.name = "w"}}', "").replace(
        "%y = fused.matmul", f"%w = {weights} : {kind}\n      %y = fused.matmul"
    )
    inputs = {"x": rng.standard_normal((170, 72)).astype(np.float16), "b": np.ones(50, np.float16)}
    check_on_threads(text, inputs, tolerance=TOLERANCE["f16"])


@pytest.mark.parametrize("depth", [0, 16])
def test_a_sum_may_have_no_terms(depth: int) -> None:
    """Its length is determined by the run; nothing is loaded that no product has written."""
    text = product_text((170, 16), (88, 16), (170, 88), "f16", (False, True))
    for rows in (170, 88):
        text = text.replace(f"tensor<{rows}x16xf16>", f'tensor<{rows}x?xf16, #trt.dims<["{rows}", "16*s"]>>')
    rng = np.random.default_rng(0)
    inputs = {name: rng.standard_normal((rows, depth)).astype(np.float16) for name, rows in (("x", 170), ("w", 88))}
    inputs["b"] = rng.standard_normal(88).astype(np.float16)
    check_on_threads(forced(text, "128x64s2"), inputs, tolerance=1e-2)


def test_numbers_that_are_none_stay_in_their_rows() -> None:
    text = forced(product_text((150, 64), (72, 64), (150, 72), "f16", (False, True)), "128x64s2")
    x = np.ones((150, 64), np.float16)
    x[3, 5], x[140, 7] = np.nan, np.inf
    w, b = np.ones((72, 64), np.float16), np.zeros(72, np.float16)
    found = run_on_threads(text, {"x": x, "w": w, "b": b})
    (want,) = interpret(*parse_module(text), {"x": x, "w": w, "b": b}).values()
    np.testing.assert_array_equal(found, want)
    assert np.isnan(found[3]).all()
    assert np.isfinite(np.delete(found, [3, 140], 0)).all()


@pytest.mark.parametrize("device", ["h200", "rtx-5090", "a100"])
def test_other_architectures_do_without(device: str) -> None:
    arch = {"h200": "sm_90a", "rtx-5090": "sm_120", "a100": "sm_80"}[device]
    module, context = parse_module(product_text((512, 512), (512, 512), (512, 512), "f16", (False, True)))
    run_passes(module, context, f"convert-fused-to-kernel{{target=cuda arch={arch} device={device}}}")
    assert "kernel.tensor_mma" not in str(module)


def test_it_is_chosen_where_it_is_estimated_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_kernels, "DEVICE", "b200")
    for rows, is_chosen in ((4096, True), (3, False)):
        text = product_text((rows, 1024), (1024, 1024), (rows, 1024), "f16", (False, True))
        assert ("kernel.tensor_mma" in str(lower_to_threads(*parse_module(text)))) == is_chosen


KINDS = {
    "f16": ("UTCHMMA", product_text((256, 192), (136, 192), (256, 136), "f16", (False, True))),
    "bf16": ("UTCHMMA", product_text((256, 192), (136, 192), (256, 136), "bf16", (True, True))),
    "f32": ("UTCHMMA", product_text((256, 192), (136, 192), (256, 136), "f32", (False, True))),
    "i8": ("UTCIMMA", quantized_product_text((256, 192), 136)),
}


@pytest.mark.parametrize("choice", ["128x128s4", "128x256s4", "128x96s7"])
@pytest.mark.parametrize("element", KINDS)
def test_machine_code(element: str, choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The instructions are there, nothing is spilled, and the paths hold what the checks ask for."""
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    instruction, text = KINDS[element]
    module, context = parse_module(forced(text, choice))
    lowered = lower_to_threads(module, context, f"cuda_tcgen05:{choice}", "tf32" if element == "f32" else "")
    (cubins,) = compile_kernels(sources_of(lowered)).values()
    assert {name: cubin.spilled_bytes for name, cubin in cubins.items()} == {"sm_100a": 0}
    (listing,) = disassemble([cubins["sm_100a"].code])
    assert instruction in listing
    assert "LDTM.16dp256bit" in listing
    assert faults_of(cubins["sm_100a"].code) == []
