"""Int8 products on a GPU against the reference, bit by bit."""

from __future__ import annotations

import pytest
from contractions import constant
from gpu_kernels import check_on_threads
from quantized_contractions import quantized_product_text, random_bytes


@pytest.mark.parametrize(
    ("element", "residual", "result"), [("i8", "", "i8"), ("ui8", "i8", "f32"), ("i8", "ui8", "ui8")]
)
@pytest.mark.parametrize(
    "tactic", ["cuda_wgmma:64x64s3", "cuda_wgmma:128x64s3", "cuda_tiles:64x64", "cuda_tiles:32x32p2", "generic"]
)
def test_tactics(tactic: str, element: str, residual: str, result: str) -> None:
    left, columns = (70, 144), 88
    text = quantized_product_text(left, columns, element, result, residual=residual, tactic=tactic)
    inputs = {"x": random_bytes(left, element), "r": random_bytes((left[0], columns), residual or "i8", 1)}
    module = check_on_threads(text, inputs)
    unit = {"cuda_wgmma": "kernel.warpgroup_mma", "cuda_tiles": "kernel.mma"}.get(tactic.partition(":")[0], "kernel.")
    assert unit in str(module)


@pytest.mark.parametrize("depth", [20, 37])
def test_depths_that_are_no_whole_vectors(depth: int) -> None:
    text = quantized_product_text((40, depth), 24, tactic="cuda_tiles:32x32")
    check_on_threads(text, {"x": random_bytes((40, depth), "i8"), "r": random_bytes((40, 24), "i8")})


def test_known_matrices_of_a_batch_are_packed_along_the_depth() -> None:
    weights = constant(random_bytes((3, 40, 24), "i8"), "i8")
    x, w, y = "tensor<3x33x40xi8>", "tensor<3x40x24xi8>", "tensor<3x33x24xi32>"
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({y} {{trt.name = "y"}}) {{
      %w = {weights} : {w}
      %y = fused.matmul %x, %w {{fused.tactic = "cuda_tiles:32x32"}} : ({x}, {w}) -> {y} {{
      ^bb0(%acc: i32):
        fused.yield %acc : i32
      }}
      func.return %y : {y}
    }}"""
    check_on_threads(text, {"x": random_bytes((3, 33, 40), "i8", 1)})
