"""Products of float32 by matrix units: operands are rounded to the nearest TF32, so that errors do not add up.

Matrix units cut off the lower 13 bits of the mantissa, and so does the interpreter. Operands that nobody has rounded
get smaller by 3.5e-4 on average, their products by 7e-4, all in the same direction.
"""

from __future__ import annotations

import re
from typing import Any

import gpu_kernels
import numpy as np
import pytest
from contractions import PROBLEMS, Problem, channels_last_text, convolution_text, product_text
from gpu_kernels import lower_to_threads
from lowered_network import parse_module
from xdsl.dialects.builtin import StringAttr

from mlirt.builder.tactics.sites import find_sites
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.interpreter_tensor_copies import as_tf32
from mlirt.dialects.kernel.matrix_unit import MmaKind, MmaOp
from mlirt.dialects.kernel.tensor_copy import CopyOp, map_type
from mlirt.dialects.kernel.warpgroup import WarpgroupMmaOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.dialects.target import Target
from mlirt.kernels.convolution.cuda import wgmma_boxes as cuda_wgmma_boxes
from mlirt.kernels.convolution.cuda import wgmma_row_boxes as cuda_wgmma_row_boxes
from mlirt.passes.pipeline import PassError

Array = np.ndarray[Any, np.dtype[Any]]

_SHRUNK = 1e-4
"""How much smaller or larger results may be on average; operands that are cut off make them 7e-4 smaller."""


def check_size_of_results(text: str, tactic: str, inputs: dict[str, Array]) -> None:
    """Results are as large as exact ones are, on average, and read TF32."""
    module, context = parse_module(text)
    want = interpret(module, context, inputs)["y"].astype(np.float64)
    lowered = lower_to_threads(module, context, tactic, "tf32")
    assert any(isinstance(op, WarpgroupMmaOp) and op.kind.data is MmaKind.TF32 for op in lowered.walk())
    got = run_plan(lowered, context, inputs)["y"].astype(np.float64)
    assert abs(np.vdot(got, want) / np.vdot(want, want) - 1) < _SHRUNK
    assert not np.array_equal(got, want)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-3 * np.abs(want).max())


@pytest.mark.parametrize("choice", ["64x64s3", "128x64s3", "64x64s2c2", "64x64s3t", "128x64s3d"])
@pytest.mark.parametrize("known", [False, True])
def test_long_sums_of_positive_numbers(choice: str, known: bool) -> None:
    """Two operands that only a run knows, or one and weights."""
    noise = np.random.default_rng(0)
    shapes = {"x": (72, 392), "w": (88, 392)}
    inputs: dict[str, Array] = {name: noise.random(shape, np.float32) for name, shape in shapes.items()}
    text = product_text(shapes["x"], shapes["w"], (72, 88), "f32", (False, True))
    if known:
        weights = f'dense<"0x{inputs["w"].tobytes().hex().upper()}">'
        constant = f"%w = trt.constant {{value = {weights} : tensor<88x392xf32>}} : tensor<88x392xf32>\n"
        text = text.replace('%w: tensor<88x392xf32> {trt.name = "w"}, ', "", 1)
        text = text.replace("%y = fused", f"{constant} %y = fused", 1)
        del inputs["w"]
    check_size_of_results(text, f"cuda_wgmma:{choice}", inputs | {"b": np.zeros(88, np.float32)})


CONVOLUTIONS = {
    "3 x 3": (Problem((2, 64, 9, 7), (40, 64, 3, 3), pre=(1,), post=(1,)), "cuda_wgmma:64x64s3", True),
    "turns": (Problem((2, 64, 9, 7), (40, 64, 3, 3), pre=(1,), post=(1,)), "cuda_wgmma:64x64s3t", True),
    "stride": (Problem((2, 72, 9, 7), (40, 72, 3, 3), stride=(2,), pre=(1,)), "cuda_wgmma:64x64s3c2", True),
    "pixels as rows": (Problem((3, 64, 5, 7), (64, 64, 1, 1)), "cuda_wgmma:128x64s3", True),
    "one dimension": (Problem((2, 16, 60), (40, 16, 5), pre=(2,), post=(2,)), "cuda_wgmma:64x32s3", True),
    "three dimensions": (Problem((1, 8, 5, 6, 7), (40, 8, 2, 3, 2)), "cuda_wgmma:64x32s3", True),
    "few channels": (
        Problem((1, 3, 23, 21), (40, 3, 7, 7), stride=(2,), pre=(3,), post=(3,)),
        "cuda_wgmma_rows:64x64s3",
        False,
    ),
    "boxes": (Problem((2, 64, 9, 7), (40, 64, 3, 3), pre=(1,), post=(1,)), "cuda_wgmma_boxes:8x8n32g1s1", True),
    "boxes of few channels": (
        Problem((1, 3, 23, 21), (40, 3, 7, 7), stride=(2,), pre=(3,), post=(3,)),
        "cuda_wgmma_row_boxes:8x8n32g1s1",
        False,
    ),
}


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolutions(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cuda_wgmma_boxes, cuda_wgmma_row_boxes):  # not offered, as nobody has measured them
        monkeypatch.setattr(module, "MEASURED", frozenset({MmaKind.TF32}))
    monkeypatch.setattr(gpu_kernels, "DEVICE", "h200+processors=3")
    problem, tactic, last = CONVOLUTIONS[kind]
    text = (channels_last_text if last else convolution_text)(problem, "f32")
    text = text.replace("{stride", f'{{fused.tactic = "{tactic}", stride', 1)
    noise = np.random.default_rng(0)
    x = noise.random(problem.input, np.float32)
    check_size_of_results(text, "", {"x": x, "r": np.zeros(problem.output, np.float32)})


PRODUCTS = {
    "product": product_text((72, 136), (88, 136), (72, 88), "f32", (False, True)),
    "right by columns": product_text((72, 136), (136, 88), (72, 88), "f32", (False, False)),
    "left by columns": product_text((136, 72), (88, 136), (72, 88), "f32", (True, True)),
    "batch": product_text((3, 72, 64), (3, 88, 64), (3, 72, 88), "f32", (False, True)),
    "few rows": product_text((4, 136), (88, 136), (4, 88), "f32", (False, True)),
}
TEXTS = {
    **PRODUCTS,
    **{f"{name}, plain": convolution_text(problem, "f32") for name, problem in PROBLEMS.items()},
    **{f"{name}, channels last": channels_last_text(problem, "f32") for name, problem in PROBLEMS.items()},
}


@pytest.mark.parametrize("text", TEXTS)
def test_every_tactic_that_is_offered_rounds_what_matrix_units_read(text: str) -> None:
    module, context = parse_module(TEXTS[text])
    sites = find_sites(module, context, Target("cuda", features=frozenset({"tf32"})), 1)
    for site in sites:
        kinds = {re.sub(r"\d+", "", one.name): one.name for one in site.candidates}
        for name in kinds.values():
            twin = module.clone()
            ops, copies = list(module.walk()), list(twin.walk())
            for op in site.ops:
                copies[ops.index(op)].attributes["fused.tactic"] = StringAttr(name)
            try:
                lowered = lower_to_threads(twin, context, features="tf32")
            except PassError as error:
                if "does not lower" not in str(error):
                    raise
                continue
            for op in lowered.walk():
                assert not (isinstance(op, MmaOp) and op.kind.data is MmaKind.TF32)
                if isinstance(op, WarpgroupMmaOp) and op.kind.data is MmaKind.TF32:
                    users = [use.operation for tile in (op.left, op.right) for use in tile.uses]
                    written = [user for user in users if not isinstance(user, WarpgroupMmaOp)]
                    assert written
                    assert all(isinstance(one, CopyOp) and map_type(one.map).rounds for one in written)


def test_rounding_to_the_nearest_ties_to_even() -> None:
    one, step = np.float32(1), np.float32(2**-10)
    given = [0.0, -0.0, one, one + step / 2, one + 3 * step / 2, one + step * 0.51, -(one + step * 0.49), 3.4028235e38]
    want = [0.0, -0.0, one, one, one + 2 * step, one + step, -one, np.inf]
    found = as_tf32(np.array(given, np.float32))
    assert found.tobytes() == np.array(want, np.float32).tobytes()
    special = np.array([np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(as_tf32(special), special)
    many = np.random.default_rng(0).standard_normal(1 << 16).astype(np.float32)
    scale = np.exp2(10 - np.floor(np.log2(np.abs(many.astype(np.float64)))))
    np.testing.assert_array_equal(as_tf32(many).astype(np.float64), np.rint(many * scale) / scale)
