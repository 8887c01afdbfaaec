"""Every family of kernels on a GPU against the reference; the same networks as for the SIMT interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from attentions import SMALL, Attention
from contractions import (
    DTYPES,
    PROBLEMS,
    TOLERANCE,
    Problem,
    channels_last_text,
    convolution_text,
    planes_text,
    product_text,
)
from deconvolutions import DECONVOLUTIONS
from device_engine import engine_of
from long_rows import long_rows_text
from lowered_network import parse_module
from quantized_contractions import quantized_convolution_text, quantized_product_text, random_bytes
from repeated_runs import differing_runs

from mlirt.dialects.interpreter import interpret

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, np.dtype[Any]]


def check(text: str, inputs: Mapping[str, Array], tolerance: float, tactic: str = "") -> None:
    """Assert that the engine gives what the reference gives, and the same bits every time."""
    module, context = parse_module(text)
    expected = interpret(module, context, inputs)
    engine = engine_of(text, tactic)
    found = engine.run(inputs)
    for name, want in expected.items():
        wide = want.astype(np.float64)
        bound = tolerance * max(1.0, float(np.abs(wide).max(initial=0)))
        np.testing.assert_allclose(found[name].astype(np.float64), wide, rtol=0, atol=bound)
    assert differing_runs(engine, inputs, 6) == []


def random(shapes: Mapping[str, tuple[int, ...]], element: str) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}


@pytest.mark.parametrize(("element", "left", "right"), list(product(DTYPES, (False, True), (False, True))))
def test_products(element: str, left: bool, right: bool) -> None:
    rows, columns, depth = 200, 264, 328
    shapes = {
        "x": (depth, rows) if left else (rows, depth),
        "w": (columns, depth) if right else (depth, columns),
        "b": (columns,),
    }
    text = product_text(shapes["x"], shapes["w"], (rows, columns), element, (left, right))
    check(text, random(shapes, element), TOLERANCE[element])


@pytest.mark.parametrize("tile", ["128x128", "64x64", "32x32", "128x128c2", "64x64p3"])
@pytest.mark.parametrize("flips", list(product((False, True), (False, True))))
def test_products_of_floats_in_every_tile(flips: tuple[bool, bool], tile: str) -> None:
    for rows, columns, depth in ((389, 290, 517), (256, 384, 512)):
        left = (5, *((depth, rows) if flips[0] else (rows, depth)))
        right = (5, *((columns, depth) if flips[1] else (depth, columns)))
        text = product_text(left, right, (5, rows, columns), "f32", flips)
        text = text.replace("{transpose_lhs", f'{{fused.tactic = "cuda_tiles:{tile}", transpose_lhs', 1)
        check(text, random({"x": left, "w": right, "b": (columns,)}, "f32"), TOLERANCE["f32"])


@pytest.mark.parametrize(("length", "element"), [(258_064, "f32"), (258_064, "f16"), (70_001, "f32"), (66_666, "f16")])
def test_normalisations_of_rows_of_clusters(length: int, element: str) -> None:
    """More rows than there are places for clusters."""
    inputs = random({"x": (9, 5, length), "w": (5,)}, element)
    inputs["w"] = inputs["w"].astype(np.float32)
    check(long_rows_text((9, 5), length, element), inputs, TOLERANCE[element])


@pytest.mark.parametrize("choice", ["128x128s6", "64x64s3t", "64x256s5t", "64x96s5", "64x64s6c4"])
def test_products_give_the_same_bits_a_hundred_times(choice: str) -> None:
    """Blocks have several tiles, whose steps go round the stages."""
    rows, columns, depth = 4992, 2056, 712
    text = product_text((rows, depth), (columns, depth), (rows, columns), "f16", (False, True))
    engine = engine_of(text.replace("{transpose_lhs", f'{{fused.tactic = "cuda_wgmma:{choice}", transpose_lhs'))
    inputs = random({"x": (rows, depth), "w": (columns, depth), "b": (columns,)}, "f16")
    found = engine.run(inputs)["y"]
    want = inputs["x"].astype(np.float32) @ inputs["w"].astype(np.float32).T + inputs["b"].astype(np.float32)
    np.testing.assert_allclose(found, np.maximum(want, 0), rtol=0, atol=TOLERANCE["f16"] * np.abs(want).max())
    assert differing_runs(engine, inputs) == []


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(("rows", "columns", "depth"), [(1, 1000, 2048), (7, 33, 5), (2048, 1536, 96), (64, 64, 4096)])
def test_products_of_other_shapes(element: str, rows: int, columns: int, depth: int) -> None:
    shapes = {"x": (rows, depth), "w": (depth, columns), "b": (columns,)}
    text = product_text(shapes["x"], shapes["w"], (rows, columns), element, (False, False))
    check(text, random(shapes, element), TOLERANCE[element])


@pytest.mark.parametrize("tactic", ["cuda", "generic"])
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_convolutions(name: str, element: str, tactic: str) -> None:
    problem = PROBLEMS[name]
    inputs = random({"x": problem.input, "r": problem.output}, element)
    check(convolution_text(problem, element), inputs, TOLERANCE[element], tactic)


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_convolutions_of_floats_that_are_rounded_as_they_are_read(name: str, element: str) -> None:
    problem, rng = PROBLEMS[name], np.random.default_rng(0)
    residual = rng.standard_normal(problem.output).astype(DTYPES[element])
    inputs = {"x": rng.standard_normal(problem.input, np.float32), "r": residual}
    check(convolution_text(problem, element, "f32"), inputs, TOLERANCE[element], "cuda_implicit_gemm")


@pytest.mark.parametrize("left", [False, True])
def test_products_of_floats_that_are_rounded_as_they_are_read(left: bool) -> None:
    rows, columns, depth = 200, 264, 328
    shapes = {"x": (depth, rows) if left else (rows, depth), "w": (depth, columns), "b": (columns,)}
    inputs = random(shapes, "f16")
    inputs["x"] = np.random.default_rng(1).standard_normal(shapes["x"], np.float32)
    text = product_text(shapes["x"], shapes["w"], (rows, columns), "f16", (left, False), "f32")
    check(text, inputs, TOLERANCE["f16"], "cuda_tiles")


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("choice", ["32x32c2", "64x64c3", "64x64c4", "32x32c6", "64x64c8"])
def test_parts_of_sums_in_a_cluster(choice: str, element: str) -> None:
    problem = Problem((2, 192, 15, 13), (72, 192, 3, 3), pre=(1,), post=(1,), residual=True)
    text = convolution_text(problem, element)
    text = text.replace("groups = ", f'fused.tactic = "cuda_implicit_gemm:{choice}", groups = ')
    check(text, random({"x": problem.input, "r": problem.output}, element), TOLERANCE[element])


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (2, 3)])
def test_deconvolutions_with_strides(sizes: tuple[int, int], element: str) -> None:
    problem = Problem((2, 48, 21, 17), (48, 20, 4, 3), sizes, pre=(1,), post=(1, 0), transposed=True, residual=True)
    inputs = random({"x": problem.input, "r": problem.output}, element)
    check(convolution_text(problem, element), inputs, TOLERANCE[element], "cuda_phases")


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("choice", ["128x128s3", "64x64s3", "128x64s3d", "64x64s3t"])
@pytest.mark.parametrize("name", DECONVOLUTIONS)
def test_deconvolutions_by_warpgroups(name: str, choice: str, element: str) -> None:
    """All remainders in one launch, of images whose channels are innermost."""
    problem = DECONVOLUTIONS[name]
    inputs = random({"x": problem.input, "r": problem.output}, element)
    text = channels_last_text(problem, element)
    text = text.replace("{stride", f'{{fused.tactic = "cuda_wgmma_phases:{choice}", stride', 1)
    check(text, inputs, TOLERANCE[element])


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(
    "problem",
    [
        Problem((1, 256, 14, 14), (1024, 256, 1, 1), residual=True),
        Problem((8, 64, 56, 56), (64, 64, 3, 3), pre=(1,), post=(1,), residual=True),
        Problem((1, 512, 7, 7), (512, 512, 3, 3), pre=(1,), post=(1,)),
        Problem((2, 3, 224, 224), (64, 3, 7, 7), stride=(2,), pre=(3,), post=(3,)),
    ],
)
def test_convolutions_of_networks(problem: Problem, element: str) -> None:
    inputs = random({"x": problem.input, "r": problem.output}, element)
    check(convolution_text(problem, element), inputs, TOLERANCE[element])


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("flips", list(product((False, True), (False, True))))
@pytest.mark.parametrize("choice", ["64x64s6", "64x64s4c4", "64x128s7", "128x128s6", "128x256s4"])
def test_products_by_warpgroups(choice: str, flips: tuple[bool, bool], element: str) -> None:
    rows, columns, depth = 200, 264, 1032
    shapes = {
        "x": (depth, rows) if flips[0] else (rows, depth),
        "w": (columns, depth) if flips[1] else (depth, columns),
        "b": (columns,),
    }
    text = product_text(shapes["x"], shapes["w"], (rows, columns), element, flips)
    text = text.replace("{transpose_lhs", f'{{fused.tactic = "cuda_wgmma:{choice}", transpose_lhs')
    check(text, random(shapes, element), TOLERANCE[element])


WINDOWS = {
    "64x64s3": Problem((2, 72, 19, 17), (40, 72, 3, 3), stride=(2,), pre=(1,)),
    "128x64s3": Problem((1, 16, 22, 20), (72, 16, 3, 2), (1, 2), (2, 1), pre=(1, 0), post=(2, 1), residual=True),
    "64x32s3": Problem((1, 8, 5, 6, 7), (9, 8, 2, 3, 2), stride=(1, 2, 1), pre=(0, 1, 1), post=(1, 1, 0)),
    "64x64s6c8": Problem((1, 512, 7, 7), (512, 512, 3, 3), pre=(1,), post=(1,), residual=True),
    "64x64s6": Problem((2, 32, 19, 17), (40, 32, 3, 3), pre=(1,)),
    "128x64s8": Problem((2, 96, 19, 17), (40, 96, 3, 3), pre=(1,), residual=True),
    "64x128s7te2": Problem((9, 16, 57, 55), (200, 16, 1, 1), residual=True),
    "64x64s11t4e2": Problem((9, 16, 28, 27), (200, 16, 3, 3), pre=(1,), post=(1,), residual=True),
    "128x64s2e2d": Problem((9, 16, 57, 55), (200, 16, 1, 1), residual=True),
}


@pytest.mark.parametrize("choice", WINDOWS)
def test_convolutions_by_warpgroups(choice: str) -> None:
    problem = WINDOWS[choice]
    inputs = random({"x": problem.input, "r": problem.output}, "f16")
    text = channels_last_text(problem, "f16")
    text = text.replace("{stride", f'{{fused.tactic = "cuda_wgmma:{choice}", stride', 1)
    check(text, inputs, TOLERANCE["f16"])


PLANES = {
    "64x256s5t": Problem((5, 64, 30, 28), (128, 64, 3, 3)),
    "128x128s6": Problem((3, 72, 29, 28), (200, 72, 3, 3), pre=(1,), post=(1,), residual=True),
    "128x64s4d": Problem((9, 64, 57, 54), (72, 64, 1, 1), residual=True),
    "64x64s6c4": Problem((2, 512, 14, 14), (512, 512, 3, 3), pre=(1,), post=(1,)),
    "64x192s7t": Problem((4, 16, 9, 20), (40, 16, 3, 2), (1, 2), (2, 1), pre=(1, 0), post=(2, 1)),
    "64x32s8": Problem((1, 8, 5, 6, 8), (9, 8, 2, 3, 2), pre=(0, 1, 1), post=(1, 1, 0)),
}


@pytest.mark.parametrize("choice", PLANES)
def test_convolutions_to_planes_by_warpgroups(choice: str) -> None:
    problem = PLANES[choice]
    inputs = random({"x": problem.input, "r": problem.output}, "f16")
    text = planes_text(problem, "f16")
    text = text.replace("{stride", f'{{fused.tactic = "cuda_wgmma_planes:{choice}", stride', 1)
    check(text, inputs, TOLERANCE["f16"])


PLANE_TILES = {
    "32x64": Problem((5, 8, 61, 66), (64, 8, 3, 3), residual=True),
    "16x32": Problem((3, 3, 12, 32, 30), (24, 3, 3, 3, 3)),
    "16x64": Problem((3, 40, 31, 35), (130, 40, 3, 3), pre=(1,), post=(1,), residual=True),
    "32x16": Problem((2, 1, 224, 224), (16, 1, 7, 7), (2,), pre=(3,), post=(3,)),
    "32x32": Problem((3, 40, 17, 45), (40, 50, 4, 4), (2,), pre=(1,), post=(1,), transposed=True, residual=True),
    "16x16": Problem((2, 24, 3, 14, 33), (24, 16, 3, 3, 3), (2,), pre=(1,), post=(0,), transposed=True),
}


@pytest.mark.parametrize("choice", PLANE_TILES)
def test_convolutions_from_planes_to_planes_by_warps(choice: str) -> None:
    problem = PLANE_TILES[choice]
    inputs = random({"x": problem.input, "r": problem.output}, "f16")
    text = convolution_text(problem, "f16")
    text = text.replace("{stride", f'{{fused.tactic = "cuda_plane_tiles:{choice}", stride', 1)
    check(text, inputs, TOLERANCE["f16"])


PLANE_BOXES = {
    "128x2x128l128s1k9": Problem((5, 64, 128, 128), (128, 64, 3, 3), residual=True),
    "64x2x128l128s2k4": Problem((5, 64, 61, 128), (64, 64, 4, 4), (2,), pre=(1,), transposed=True, residual=True),
    "128x2x64l128s1k4": Problem((2, 72, 30, 65), (72, 136, 4, 4), (2,), pre=(1,), post=(1,), transposed=True),
    "64x2x32l64s2k4": Problem((2, 16, 3, 9, 33), (16, 40, 3, 2, 5), (2, 3, 4), pre=(1, 0, 2), transposed=True),
    "128x2x64l128s2k4": Problem((3, 72, 57, 66), (136, 72, 3, 3), pre=(1,), post=(1,)),
    "128x4x64l64s2k5": Problem((3, 40, 31, 61), (100, 40, 3, 2), pre=(1,), post=(1,), residual=True),
    "64x4x128l64s2k4": Problem((2, 32, 5, 40, 130), (64, 32, 3, 3, 3), pre=(1,), post=(1,)),
    "64x2x256l64s2k8": Problem((5, 16, 61, 257), (17, 16, 1, 5), pre=(0, 2), post=(0, 2)),
    "64x8x32l64s2k4": Problem((5, 24, 45, 83), (64, 24, 3, 3), (2,), pre=(1,), post=(1,)),
    "64x16x32l64s1k4": Problem((2, 64, 61, 47), (40, 64, 3, 3), dilation=(2, 3), pre=(2, 5), post=(1, 4)),
}


@pytest.mark.parametrize("choice", PLANE_BOXES)
def test_convolutions_from_planes_to_planes_by_warpgroups(choice: str) -> None:
    problem = PLANE_BOXES[choice]
    inputs = random({"x": problem.input, "r": problem.output}, "f16")
    text = convolution_text(problem, "f16")
    text = text.replace("{stride", f'{{fused.tactic = "cuda_wgmma_plane_boxes:{choice}", stride', 1)
    check(text, inputs, TOLERANCE["f16"])


BOXES = {
    "8x8n64g4s2": Problem((3, 64, 29, 27), (40, 64, 3, 3), pre=(1,), post=(1,), residual=True),
    "7x7n64g2ts1": Problem((9, 64, 9, 7), (40, 64, 3, 3), pre=(1,), post=(1,)),
    "8x8n64g2s1": Problem((2, 72, 19, 17), (40, 72, 3, 3), stride=(2,), pre=(1,)),
    "8x8n32g3s1": Problem((1, 16, 22, 20), (72, 16, 3, 2), (1, 2), (2, 1), pre=(1, 0), post=(2, 1), residual=True),
    "1x64n64g3s2e2": Problem((3, 72, 57, 55), (136, 72, 1, 1), residual=True),
}


@pytest.mark.parametrize("choice", BOXES)
def test_convolutions_on_boxes_of_pixels(choice: str) -> None:
    problem = BOXES[choice]
    inputs = random({"x": problem.input, "r": problem.output}, "f16")
    text = channels_last_text(problem, "f16")
    text = text.replace("{stride", f'{{fused.tactic = "cuda_wgmma_boxes:{choice}", stride', 1)
    check(text, inputs, TOLERANCE["f16"])


@pytest.mark.parametrize(
    "problem",
    [
        Problem((2, 3, 45, 41), (40, 3, 7, 7), stride=(2,), pre=(3,), post=(3,)),
        Problem((2, 12, 29, 22), (24, 12, 3, 5), stride=(1, 2), pre=(1,), post=(1,)),
    ],
)
def test_convolutions_of_few_channels_by_warpgroups(problem: Problem) -> None:
    inputs = random({"x": problem.input, "r": problem.output}, "f16")
    text = convolution_text(problem, "f16")
    text = text.replace("{stride", '{fused.tactic = "cuda_wgmma_rows:64x32s4", stride', 1)
    check(text, inputs, TOLERANCE["f16"])


@pytest.mark.parametrize(
    "problem",
    [
        Problem((2, 3, 45, 43), (40, 3, 7, 7), stride=(2,), pre=(3,), post=(2, 4)),
        Problem((2, 12, 29, 22), (24, 12, 3, 5), stride=(1, 2), pre=(1,), post=(1,), residual=True),
    ],
)
def test_convolutions_of_few_channels_to_planes_by_warpgroups(problem: Problem) -> None:
    inputs = random({"x": problem.input, "r": problem.output}, "f16")
    text = convolution_text(problem, "f16")
    text = text.replace("{stride", '{fused.tactic = "cuda_wgmma_row_planes:64x64s4", stride', 1)
    check(text, inputs, TOLERANCE["f16"])


BYTE_WINDOWS = {
    "cuda_wgmma:64x64s3": Problem((2, 80, 19, 17), (40, 80, 3, 3), stride=(2,), pre=(1,)),
    "cuda_wgmma:64x96s3": Problem((2, 48, 19, 17), (40, 48, 3, 3), stride=(2,), pre=(1,)),
    "cuda_wgmma:128x64s8": Problem((4, 64, 28, 28), (64, 64, 3, 3), pre=(1,), post=(1,)),
    "cuda_wgmma:128x128s4": Problem((2, 256, 14, 14), (136, 256, 1, 1)),
    "cuda_wgmma:64x64s6c8": Problem((1, 512, 7, 7), (512, 512, 3, 3), pre=(1,), post=(1,)),
    "cuda_wgmma:64x256s4te1": Problem((9, 16, 56, 56), (256, 16, 1, 1)),
    "cuda_wgmma:128x128s5e1": Problem((9, 32, 28, 28), (512, 32, 1, 1)),
    "cuda_wgmma:64x64s13t3": Problem((9, 32, 28, 28), (128, 32, 3, 3), pre=(1,), post=(1,)),
    "cuda_wgmma:64x64s12t4e1": Problem((9, 16, 57, 55), (208, 16, 1, 1)),
    "cuda_wgmma:128x64s4d": Problem((11, 16, 56, 56), (64, 16, 1, 1)),
    "cuda_wgmma:128x64s3e1d": Problem((9, 16, 57, 55), (208, 16, 1, 1)),
    "cuda_wgmma_rows:64x32s4": Problem((2, 3, 45, 41), (40, 3, 7, 7), stride=(2,), pre=(3,), post=(3,)),
    "cuda_int8_tiles:128x128": Problem((2, 80, 19, 17), (136, 40, 3, 3), stride=(2,), pre=(1,), groups=2),
    "cuda_int8_tiles:32x32p4": Problem((1, 20, 9, 9), (24, 20, 5, 5), pre=(2,), post=(2,)),
}


@pytest.mark.parametrize(
    "tactic", ["cuda_wgmma:64x64s4", "cuda_wgmma:128x256s4", "cuda_tiles:64x64", "cuda_tiles:32x32p2"]
)
@pytest.mark.parametrize(("element", "result"), [("i8", "i8"), ("ui8", "f16")])
def test_products_of_int8(tactic: str, element: str, result: str) -> None:
    left, columns = (200, 272), 264
    inputs = {"x": random_bytes(left, element), "r": random_bytes((left[0], columns), "i8", 1)}
    check(quantized_product_text(left, columns, element, result, residual="i8", tactic=tactic), inputs, 0.0)


def test_padding_of_int8_with_a_value() -> None:
    problem = Problem((2, 32, 19, 17), (40, 32, 3, 3), pre=(1,), post=(2,))
    inputs = {"x": random_bytes(problem.input, "ui8"), "r": random_bytes(problem.output, "i8", 1)}
    check(quantized_convolution_text(problem, "ui8", padding_value=113), inputs, 0.0)


@pytest.mark.parametrize(
    ("element", "residual", "result"), [("i8", "", "i8"), ("ui8", "i8", "ui8"), ("i8", "ui8", "f32")]
)
@pytest.mark.parametrize("tactic", BYTE_WINDOWS)
def test_convolutions_of_int8(tactic: str, element: str, residual: str, result: str) -> None:
    problem = BYTE_WINDOWS[tactic]
    inputs = {"x": random_bytes(problem.input, element), "r": random_bytes(problem.output, residual or "i8", 1)}
    check(quantized_convolution_text(problem, element, result, residual=residual, tactic=tactic), inputs, 0.0)


@pytest.mark.parametrize("element", ["f32", "f16", "f64"])
@pytest.mark.parametrize("shape", [(1, 1000), (3, 70), (4096, 33), (300, 5000), (2, 70000), (3, 300004), (2, 600000)])
def test_softmax(shape: tuple[int, int], element: str) -> None:
    x = f"tensor<{shape[0]}x{shape[1]}x{element}>"
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({x} {{trt.name = "y"}}) {{
      %y = fused.softmax %x {{axis = 1 : i64}} : ({x}) -> {x}
      func.return %y : {x}
    }}"""
    dtype = np.dtype({"f32": np.float32, "f16": np.float16, "f64": np.float64}[element])
    inputs = {"x": np.random.default_rng(0).standard_normal(shape).astype(dtype)}
    check(text, inputs, 1e-3 if element == "f16" else 1e-6)


@pytest.mark.parametrize("extent", [(1, 1 << 20), (2048, 49), (64, 1000), (100000, 9)])
@pytest.mark.parametrize("kind", ["add", "max"])
def test_reductions(kind: str, extent: tuple[int, int]) -> None:
    rows, length = extent
    text = f"""
    func.func @main(%x: tensor<{rows}x{length}xf32> {{trt.name = "x"}}) -> (tensor<{rows}xf32> {{trt.name = "y"}}) {{
      %y = fused.reduction {kind}(%x) {{access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["{length}"]>}}
          : (tensor<{rows}x{length}xf32>) -> tensor<{rows}xf32> {{
      ^bb0(%e: f32):
        fused.yield %e : f32
      }} {{
      ^bb0(%acc: f32):
        fused.yield %acc : f32
      }}
      func.return %y : tensor<{rows}xf32>
    }}"""
    check(text, {"x": np.random.default_rng(0).standard_normal(extent).astype(np.float32)}, 1e-5)


@pytest.mark.parametrize("shape", [(3, 5, 7), (16, 64, 1024), (2, 3, 4097)])
def test_pointwise(shape: tuple[int, int, int]) -> None:
    x, b = f"tensor<{'x'.join(map(str, shape))}xf32>", f"tensor<{shape[1]}xf32>"
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}, %b: {b} {{trt.name = "b"}}) -> ({x} {{trt.name = "y"}}) {{
      %y = fused.pointwise %x, %b {{access = [#fused.access<["d0", "d1", "d2"]>, #fused.access<["d1"]>]}}
          : ({x}, {b}) -> {x} {{
      ^bb0(%0: f32, %1: f32):
        %2 = arith.addf %0, %1 : f32
        %3 = math.tanh %2 : f32
        fused.yield %3 : f32
      }}
      func.return %y : {x}
    }}"""
    check(text, random({"x": shape, "b": (shape[1],)}, "f32"), 1e-6)


@pytest.mark.parametrize("tactic", ["cuda_groups", "cuda_flash", "generic"])
@pytest.mark.parametrize("name", ["several blocks", "causal", "mask per key", "mask selects", "bfloat16"])
def test_attention(name: str, tactic: str) -> None:
    case = SMALL[name]
    check(case.text(), case.inputs(), TOLERANCE[case.element], tactic)


@pytest.mark.parametrize("parts", [1, 2, 8])
@pytest.mark.parametrize(
    "case",
    [
        Attention(1, 16, 1, 1025, 128, 128),
        Attention(3, 2, 4, 700, 64, 64, mask="add", full_mask=True),
        Attention(1, 2, 8, 5, 32, 32, "f32", last_key=-3, zero_masked=True),
    ],
    ids=["one query", "masked", "fewer keys than blocks"],
)
def test_attention_of_few_queries(case: Attention, parts: int) -> None:
    text = case.text().replace("reduced =", f'fused.tactic = "cuda_few_queries:parts{parts}", reduced =')
    check(text, case.inputs(), TOLERANCE[case.element])


@pytest.mark.parametrize(("element", "kind"), [("f32", "max"), ("f16", "max"), ("f16", "min")])
@pytest.mark.parametrize(("rows", "length", "count"), [(16, 4000, 1000), (3, 8400, 300)])
def test_rows_that_a_block_sorts(element: str, kind: str, rows: int, length: int, count: int) -> None:
    """Many elements are equal, and some are no numbers."""
    x = np.round(np.random.default_rng(2).standard_normal((rows, length)) * 50)
    x[:, ::1300] = np.nan
    found = f"tensor<{rows}x{count}x{element}>, tensor<{rows}x{count}xi64>"
    text = f"""
    func.func @main(%x: tensor<{rows}x{length}x{element}>) -> ({found}) {{
      %v, %i = fused.topk {kind} %x {{axis = 1 : i64}} : (tensor<{rows}x{length}x{element}>) -> ({found})
      func.return %v, %i : {found}
    }}
    """
    inputs = {"x": x.astype(np.float16 if element == "f16" else np.float32)}
    module, context = parse_module(text)
    engine = engine_of(text, "cuda_sort")
    results = engine.run(inputs)
    for name, right in interpret(module, context, inputs).items():
        np.testing.assert_array_equal(results[name], right, strict=True)
    assert differing_runs(engine, inputs, 6) == []
