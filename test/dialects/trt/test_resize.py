"""Resampling (tensorrt-features.md#1.31a-1.31c): the reference against ONNX's own reference and ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnx.reference.ops.op_resize import Resize
from trt_layers import Array, layer, onnx_node, random, run
from xdsl.dialects.builtin import DenseArrayBase, f64

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.interpolation import Coordinate, ResizeKind, Rounding, Selector
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.resize import ResizeOp

ROUNDINGS = {
    Rounding.HALF_DOWN: "round_prefer_floor",
    Rounding.HALF_UP: "round_prefer_ceil",
    Rounding.FLOOR: "floor",
    Rounding.CEIL: "ceil",
}
# ONNX has tf_half_pixel_for_nn in opset 11 only.
COORDINATES = [c for c in Coordinate if c not in (Coordinate.TF_HALF_PIXEL_FOR_NN, Coordinate.TF_CROP_AND_RESIZE)]


def floats(values: list[float]) -> DenseArrayBase[Any]:
    return DenseArrayBase.from_list(f64, values)


def expected_by_onnx(x: Array, scales: list[float] | None, sizes: list[int] | None, **attributes: Any) -> Array:
    """What ONNX's reference implementation computes."""
    settings: dict[str, Any] = {
        "antialias": 0,
        "axes": None,
        "coordinate_transformation_mode": "half_pixel",
        "cubic_coeff_a": -0.75,
        "exclude_outside": 0,
        "extrapolation_value": 0.0,
        "keep_aspect_ratio_policy": "stretch",
        "mode": "nearest",
        "nearest_mode": "round_prefer_floor",
        **attributes,
    }
    roi = settings.pop("roi", None)
    given = None if scales is None else np.array(scales, np.float64)
    wanted = None if sizes is None else np.array(sizes, np.int64)
    run_onnx: Any = getattr(Resize, "_run")
    return np.asarray(run_onnx(None, x, roi, given, wanted, **settings)[0])


@pytest.mark.parametrize("coordinate", COORDINATES)
@pytest.mark.parametrize("rounding", list(Rounding))
@pytest.mark.parametrize("size", [1, 3, 7, 11])
def test_nearest_1_31c(coordinate: Coordinate, rounding: Rounding, size: int) -> None:
    x = random((2, 5))
    expected = expected_by_onnx(
        x, None, [2, size], coordinate_transformation_mode=coordinate.value, nearest_mode=ROUNDINGS[rounding]
    )
    (y,) = run(
        ResizeOp,
        [x],
        {0: "n,5"},
        kind=ResizeKind.NEAREST,
        output_dims=DimsAttr.of([parse("n"), size]),
        coordinate=coordinate,
        rounding=rounding,
    )
    assert_array_equal(y, expected)


@pytest.mark.parametrize("coordinate", COORDINATES)
@pytest.mark.parametrize("kind", [ResizeKind.LINEAR, ResizeKind.CUBIC])
@pytest.mark.parametrize("scales", [[1.0, 2.0], [0.6, 1.7], [0.5, 0.45]], ids=str)
@pytest.mark.parametrize(("antialias", "exclude"), [(False, False), (True, False), (False, True)])
def test_linear_and_cubic_1_31c(
    coordinate: Coordinate, kind: ResizeKind, scales: list[float], antialias: bool, exclude: bool
) -> None:
    x = random((4, 5))
    expected = expected_by_onnx(
        x,
        scales,
        None,
        coordinate_transformation_mode=coordinate.value,
        mode=kind.value,
        antialias=int(antialias),
        exclude_outside=int(exclude),
    )
    (y,) = run(
        ResizeOp,
        [x],
        kind=kind,
        scales=floats(scales),
        coordinate=coordinate,
        antialias=antialias,
        exclude_outside=exclude,
    )
    assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", list(ResizeKind))
def test_against_onnxruntime_1_31a(kind: ResizeKind) -> None:
    x = random((1, 2, 6, 8))
    scales = np.array([1, 1, 1.5, 2], np.float32)
    (expected,) = onnx_node("Resize", [x, None, scales], mode=kind.value, coordinate_transformation_mode="half_pixel")
    (y,) = run(
        ResizeOp,
        [x],
        {0: "n,2,h,w"},
        kind=kind,
        scales=floats(scales.tolist()),
        coordinate=Coordinate.HALF_PIXEL,
        rounding=Rounding.HALF_DOWN,
    )
    assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_crop_and_resize() -> None:
    x = random((8,))
    roi = [0.4, 1.2]
    expected = expected_by_onnx(
        x,
        None,
        [5],
        coordinate_transformation_mode="tf_crop_and_resize",
        mode="linear",
        roi=np.array(roi),
        extrapolation_value=10.0,
    )
    (y,) = run(
        ResizeOp,
        [x],
        kind=ResizeKind.LINEAR,
        output_dims=DimsAttr.of([5]),
        coordinate=Coordinate.TF_CROP_AND_RESIZE,
        roi=floats(roi),
        extrapolation_value=10.0,
    )
    assert_allclose(y, expected, rtol=1e-6)


def test_run_time_shape_1_31a() -> None:
    x = random((2, 4))
    (y,) = run(ResizeOp, [x, np.array([2, 6])], kind=ResizeKind.LINEAR, coordinate=Coordinate.HALF_PIXEL)
    (z,) = run(ResizeOp, [x], kind=ResizeKind.LINEAR, coordinate=Coordinate.HALF_PIXEL, output_dims=DimsAttr.of([2, 6]))
    assert_array_equal(y, z)


@pytest.mark.parametrize(("scale", "length"), [(2.0, "2*n"), (0.5, "n//2"), (1.5, "3*n//2"), (0.1, "n//10")])
def test_symbolic_lengths_are_floored_1_31a(scale: float, length: str) -> None:
    op = layer(ResizeOp, [random((20,))], {0: "n"}, kind=ResizeKind.NEAREST, scales=floats([float(np.float32(scale))]))
    assert dims(op.results[0].type) == (parse(length),)


def test_selector_of_a_single_sample_1_31c() -> None:
    x = np.arange(4, dtype=np.float32)
    found = {
        selector: run(
            ResizeOp,
            [x],
            kind=ResizeKind.NEAREST,
            output_dims=DimsAttr.of([1]),
            coordinate=Coordinate.HALF_PIXEL,
            rounding=Rounding.FLOOR,
            selector=selector,
        )[0].tolist()
        for selector in Selector
    }
    assert found == {Selector.FORMULA: [1], Selector.UPPER: [0]}


def test_eight_axes_nearest_and_three_linear_1_31b() -> None:
    x = random((1, 2, 1, 2, 1, 2, 1, 2))
    (y,) = run(ResizeOp, [x], kind=ResizeKind.NEAREST, scales=floats([2.0] * 8))
    expected = x
    for axis in range(8):
        expected = expected.repeat(2, axis)
    assert_array_equal(y, expected)
    z = random((2, 3, 4))
    (linear,) = run(ResizeOp, [z], kind=ResizeKind.LINEAR, scales=floats([2.0] * 3), coordinate=Coordinate.HALF_PIXEL)
    assert_allclose(linear, expected_by_onnx(z, [2.0] * 3, None, mode="linear"), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float16"])
def test_element_types(dtype: str) -> None:
    x = random((4,), dtype=dtype)
    (y,) = run(ResizeOp, [x], kind=ResizeKind.NEAREST, scales=floats([2.0]))
    assert_array_equal(y, x.repeat(2))
