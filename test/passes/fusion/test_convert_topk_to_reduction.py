"""The places of extreme elements by a reduction: equal elements, zeros of both signs, NaN and infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu_kernels import lower_to_threads
from lowered_network import parse_module
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.topk import ExtremeKind, TopkOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import run_passes

TYPES = ("float16", "float32", "int8", "int16", "int32")


def _rows(dtype: str, length: int) -> np.ndarray[Any, np.dtype[Any]]:
    rng = np.random.default_rng(length)
    if dtype.startswith("int"):
        most = np.iinfo(dtype)
        few = np.array([most.min, most.max, -1, 0, 1], dtype)
        return np.concatenate([rng.choice(few, (6, length, 3)), rng.integers(-5, 5, (6, length, 3)).astype(dtype)])
    few = np.array([0.0, -0.0, np.inf, -np.inf, 1.0, -1.0, 6e-8, -6e-8], dtype)
    with_nan = np.append(few, [np.nan, -np.nan]).astype(dtype)
    plain = rng.standard_normal((6, length, 3)).astype(dtype)
    return np.concatenate([rng.choice(few, (6, length, 3)), rng.choice(with_nan, (6, length, 3)), plain])


def _network(x: np.ndarray[Any, np.dtype[Any]], kind: ExtremeKind) -> tuple[ModuleOp, RtContext]:
    rows, length, columns = x.shape
    element = {"float16": "f16", "float32": "f32"}.get(x.dtype.name) or x.dtype.name.replace("int", "i")
    given, values = f"tensor<{rows}x{length}x{columns}x{element}>", f"tensor<{rows}x1x{columns}x{element}>"
    places = f"tensor<{rows}x1x{columns}xi64>"
    text = f"""func.func @main(%x: {given}) -> {places} {{
      %v, %i = fused.topk {kind} %x {{axis = 1 : i64}} : ({given}) -> ({values}, {places})
      func.return %i : {places}
    }}"""
    return parse_module(text)


@pytest.mark.parametrize("kind", ExtremeKind)
@pytest.mark.parametrize("length", [1, 7, 300])
@pytest.mark.parametrize("dtype", TYPES)
def test_places_are_those_of_the_layer(dtype: str, length: int, kind: ExtremeKind) -> None:
    x = _rows(dtype, length)
    module, context = _network(x, kind)
    (wanted,) = interpret(module, context, {"x": x}).values()
    run_passes(module, context, "convert-topk-to-reduction,eliminate-dead-layers")
    assert [type(op) for op in module.walk() if isinstance(op, TopkOp | ReductionOp)] == [ReductionOp]
    (found,) = interpret(module, context, {"x": x}).values()
    np.testing.assert_array_equal(found, wanted)


SHAPES = {"rows": (3, 1000, 1), "long rows": (2, 40001, 1), "columns": (2, 70, 33), "few": (5, 9, 1)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_kernels_find_them(dtype: str, shape: str) -> None:
    rows, length, columns = SHAPES[shape]
    x = np.random.default_rng(0).integers(-9, 9, (rows, length, columns)).astype(dtype)
    x[0, length // 2] = np.nan
    module, context = _network(x, ExtremeKind.MAX)
    run_passes(module, context, "convert-topk-to-reduction,eliminate-dead-layers")
    (wanted,) = interpret(module, context, {"x": x}).values()
    assert wanted[0, 0, 0] == length // 2
    (found,) = run_plan(lower_to_threads(module, context), context, {"x": x}).values()
    np.testing.assert_array_equal(found, wanted)
