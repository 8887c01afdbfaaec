"""Products by warpgroups against the reference, without races, deadlocks or bad indices."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import gpu_kernels
import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, constant, product_text, tensor
from gpu_kernels import check_on_threads, kernel_names, lower_to_threads
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lowered_network import parse_module

from mlirt.builder.numba_cuda import compile_kernels
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import StoreFragmentOp
from mlirt.kernels.lib.cuda.warpgroups import group_product
from mlirt.passes.pipeline import run_passes

HALF = ("f16", "bf16")


def check(
    sizes: tuple[int, int, int],
    choice: str = "",
    element: str = "f16",
    flips: tuple[bool, bool] = (False, True),
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
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
    assert kernel_names(check_on_threads(text, inputs, tolerance=TOLERANCE[element])) == ["matmul"]


def forced(text: str, choice: str) -> str:
    """The network with its tactic chosen."""
    name = f"cuda_wgmma:{choice}" if choice else "cuda_wgmma"
    return text.replace("{transpose_lhs", f'{{fused.tactic = "{name}", transpose_lhs')


@pytest.mark.parametrize(("element", "left", "right"), list(product(HALF, (False, True), (False, True))))
@pytest.mark.parametrize("choice", ["64x64s2", "128x64s3"])
def test_every_orientation_of_both_operands(element: str, left: bool, right: bool, choice: str) -> None:
    check((136, 72, 200), choice, element, (left, right))


@pytest.mark.parametrize(
    ("sizes", "choice"),
    [
        ((64, 64, 512), "64x64s2c4"),
        ((100, 80, 264), "64x32s4c4"),
        ((49, 40, 1032), "64x64s3c8"),
        ((130, 130, 136), "64x128s2c2"),
    ],
)
def test_the_blocks_of_a_cluster_share_a_sum(sizes: tuple[int, int, int], choice: str) -> None:
    check(sizes, choice)


@pytest.mark.parametrize("choice", ["128x64s2", "64x64s3t"])
def test_blocks_that_stay_take_several_tiles(choice: str) -> None:
    check((1100, 1000, 72), choice)


@pytest.mark.parametrize(("sizes", "choice"), [((64, 64, 64), "64x64s2t"), ((130, 300, 200), "64x128s3t")])
def test_warpgroups_take_turns(sizes: tuple[int, int, int], choice: str) -> None:
    check(sizes, choice)


@pytest.mark.parametrize("depth", [64, 200, 448])
@pytest.mark.parametrize("rows", [64, 300, 600])
@pytest.mark.parametrize("turns", ["t", "t3", "t4"])
def test_stages_go_round_while_warpgroups_take_turns(
    turns: str, depth: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_kernels, "DEVICE", "h200+processors=2")
    check((rows, 72, depth), f"64x64s3{turns}")


@pytest.mark.parametrize(("rows", "divides"), [(500, False), (1024, False), (600, True)])
def test_groups_of_rows_of_tiles_are_taken_column_by_column(
    rows: int, divides: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of a group, whole groups, and a group and a part: only the last one divides by the height of a group."""
    monkeypatch.setattr(gpu_kernels, "DEVICE", "h200+processors=2")
    check((rows, 72, 24), "64x64s3t")
    text = forced(product_text((rows, 24), (72, 24), (rows, 72), "f16", (False, True)), "64x64s3t")
    (source,) = sources_of(lower_to_threads(*parse_module(text))).values()
    assert ("height" in source.text) == divides


BIASED = """
func.func @main(%x: tensor<1024x256xf16>, %b: tensor<768xf16>) -> tensor<1024x768xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<256x768xf16>} : tensor<256x768xf16>
  %y = fused.matmul %x, %w, %b {fused.tactic = "cuda_wgmma:CHOICE", access = [#fused.access<["d1"]>]}
      : (tensor<1024x256xf16>, tensor<256x768xf16>, tensor<768xf16>) -> tensor<1024x768xf16> {
  ^bb0(%sum: f32, %bias: f16):
    %wide = arith.extf %bias : f16 to f32
    %biased = arith.addf %sum, %wide : f32
    %zero = arith.constant 0.0 : f32
    %above = arith.maximumf %biased, %zero : f32
    %result = arith.truncf %above : f32 to f16
    fused.yield %result : f16
  }
  func.return %y : tensor<1024x768xf16>
}
"""


@pytest.mark.parametrize("choice", ["128x192s5", "128x128s6", "128x64s4d", "64x128s9t", "64x64s13t3"])
def test_the_text_of_a_product_is_a_page(choice: str) -> None:
    """The pipeline state advances in two lines, and the columns of a thread are distances from its first one."""
    module, context = parse_module(BIASED.replace("CHOICE", choice))
    run_passes(module, context, "convert-fused-to-kernel{target=cuda},map-parallel-to-threads,canonicalize-kernels")
    (source,) = sources_of(module).values()
    assert len(source.text.splitlines()) < 90
    assert "next_stage" not in source.text
    assert " column_1 = " not in source.text


@pytest.mark.parametrize("depth", [0, 16])
@pytest.mark.parametrize("choice", ["64x64s2", "128x64s2", "64x64s2c2", "64x64s3t"])
def test_a_sum_may_have_no_terms(choice: str, depth: int) -> None:
    """Its length is determined by the run; no copy of a box is waited for then."""
    text = product_text((70, 16), (88, 16), (70, 88), "f16", (False, True))
    for rows in (70, 88):
        text = text.replace(f"tensor<{rows}x16xf16>", f'tensor<{rows}x?xf16, #trt.dims<["{rows}", "16*s"]>>')
    rng = np.random.default_rng(0)
    inputs = {name: rng.standard_normal((rows, depth)).astype(np.float16) for name, rows in (("x", 70), ("w", 88))}
    inputs["b"] = rng.standard_normal(88).astype(np.float16)
    assert kernel_names(check_on_threads(forced(text, choice), inputs, tolerance=1e-2)) == ["matmul"]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.tuples(st.integers(5, 200), st.integers(5, 140), st.integers(1, 40).map(lambda eights: 8 * eights)),
    st.sampled_from(["64x32s2", "64x64s3", "128x64s2", "128x128s4", "64x192s3t"]),
)
def test_any_sizes(sizes: tuple[int, int, int], choice: str) -> None:
    check(sizes, choice)


@pytest.mark.parametrize("batch", [((2, 3), (2, 3)), ((2, 1), (1, 3)), ((4,), (1,))])
@pytest.mark.parametrize("choice", ["64x64s2", "128x64s2"])
def test_batches_broadcast(batch: tuple[tuple[int, ...], tuple[int, ...]], choice: str) -> None:
    check((33, 24, 40), choice, batch=batch)


def test_a_batch_with_the_same_columns_is_more_rows() -> None:
    check((20, 24, 40), "64x64s2", batch=((2, 3), (1, 1)))
    text = product_text((5, 20, 64), (1, 24, 64), (5, 20, 24), "f16", (False, True))
    module, context = parse_module(forced(text, "64x64s2"))
    run_passes(module, context, "convert-fused-to-kernel{target=cuda}")
    assert 'sizes = ["100", "64"]' in str(module)


@pytest.mark.parametrize("choice", ["64x64s2", "128x256s2", "64x32s2t", "64x64s2c2"])
@pytest.mark.parametrize("flip", [False, True])
def test_known_operands_are_packed(flip: bool, choice: str) -> None:
    rng = np.random.default_rng(1)
    shape = (50, 72) if flip else (72, 50)
    weights = constant((rng.standard_normal(shape) / 8).astype(np.float16), "f16")
    text = forced(product_text((70, 72), shape, (70, 50), "f16", (False, flip)), choice)
    kind = tensor(shape, "f16")
    text = text.replace(f', %w: {kind} {{trt.name = "w"}}', "").replace(
        "%y = fused.matmul", f"%w = {weights} : {kind}\n      %y = fused.matmul"
    )
    inputs = {"x": rng.standard_normal((70, 72)).astype(np.float16), "b": np.ones(50, np.float16)}
    check_on_threads(text, inputs, tolerance=TOLERANCE["f16"])


def test_blocks_of_one_long_tile_let_the_next_launch_begin_after_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_product, "_LONG_STEPS", 2)
    check((70, 40, 264), "64x64s2")
    module, context = parse_module(
        forced(product_text((64, 264), (264, 64), (64, 64), "f16", (False, False)), "64x64s2")
    )
    run_passes(module, context, "convert-fused-to-kernel{target=cuda}")
    names = [op.name for op in module.walk()]
    assert names.index("kernel.warpgroup_mma") < names.index("kernel.launch_dependents")


@pytest.mark.parametrize("choice", ["64x64s2", "128x192s2", "64x32s2t", "64x64s2c2"])
@pytest.mark.parametrize("columns", [52, 50])
def test_wide_results_are_written_in_whole_sectors(columns: int, choice: str) -> None:
    """A thread has four neighbouring float32 columns, 16 bytes; where rows begin at 8 bytes it writes two at once."""
    rng = np.random.default_rng(1)
    weights = constant((rng.standard_normal((72, columns)) / 8).astype(np.float16), "f16")
    text = forced(
        f"""
    func.func @main(%x: tensor<70x72xf16> {{trt.name = "x"}}, %r: tensor<70x{columns}xf16> {{trt.name = "r"}})
        -> (tensor<70x{columns}xf32> {{trt.name = "y"}}) {{
      %w = {weights} : tensor<72x{columns}xf16>
      %y = fused.matmul %x, %w, %r {{transpose_lhs = false, access = [#fused.access<["d0", "d1"]>]}}
          : (tensor<70x72xf16>, tensor<72x{columns}xf16>, tensor<70x{columns}xf16>) -> tensor<70x{columns}xf32> {{
      ^bb0(%acc: f32, %0: f16):
        %wide = arith.extf %0 : f16 to f32
        %sum = arith.addf %acc, %wide : f32
        fused.yield %sum : f32
      }}
      func.return %y : tensor<70x{columns}xf32>
    }}""",
        choice,
    )
    inputs = {name: rng.standard_normal((70, size)).astype(np.float16) for name, size in (("x", 72), ("r", columns))}
    module = check_on_threads(text, inputs, tolerance=TOLERANCE["f16"])
    stores = [op for op in module.walk() if isinstance(op, StoreFragmentOp) and op.valid is not None]
    assert {op.group(op.buffer) for op in stores} == {4 if columns == 52 else 2}


@pytest.mark.parametrize(
    ("left", "right", "element", "target"),
    [
        ((64, 63), (64, 63), "f16", "cuda"),  # rows do not start at multiples of 16 bytes
        ((64, 64), (64, 64), "f32", "cuda"),
        ((2, 64), (64, 64), "f16", "cuda"),
        ((64, 64), (64, 64), "f16", "cuda arch=sm_80"),
    ],
)
def test_others_are_left_to_other_tactics(
    left: tuple[int, ...], right: tuple[int, ...], element: str, target: str
) -> None:
    module, context = parse_module(product_text(left, right, (left[0], right[0]), element, (False, True)))
    run_passes(module, context, f"convert-fused-to-kernel{{target={target}}}")
    ops = [op.name for func in module.body.block.ops if isinstance(func, FuncOp) for op in func.walk()]
    assert "kernel.warpgroup_mma" not in ops


def test_a_kernel_of_warpgroups_becomes_a_cubin_without_spills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    text = forced(product_text((256, 192), (136, 192), (256, 136), "f16", (False, True)), "128x128s4")
    module, context = parse_module(text)
    run_passes(module, context, "convert-fused-to-kernel{target=cuda},map-parallel-to-threads")
    (cubins,) = compile_kernels(sources_of(module)).values()
    assert {name: cubin.spilled_bytes for name, cubin in cubins.items()} == {"sm_90a": 0}
