"""Which layers get scales, what is said where one does not, and what their weights become."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.source_parser import parse_source
from mlirt.errors import InvalidInputError
from mlirt.passes.pipeline import run_passes
from mlirt.passes.quantization.tensor_ranges import set_ranges
from mlirt.passes.quantization.weight_rounding import rounded_weights
from mlirt.tools.input_files import new_context

IMAGE = "tensor<1x1x4x4xf32>"
KERNEL = "tensor<1x1x1x1xf32>"
LAYERS = f"""
  %w = trt.constant {{value = dense<1.0> : {KERNEL}}} : {KERNEL}
  %a = trt.convolution %x, %w : ({IMAGE}, {KERNEL}) -> {IMAGE} loc("first")
  %b = trt.convolution %a, %w : ({IMAGE}, {KERNEL}) -> {IMAGE} loc("second")
"""
ALL = {"x": 1.0, "a": 1.0, "b": 1.0, "c": 1.0, "y": 1.0}


def with_scales(body: str, ranges: dict[str, float], attributes: str = "", results: str = f"%y : {IMAGE}") -> ModuleOp:
    types = results.partition(":")[2]
    text = f"""builtin.module attributes {{{attributes}}} {{
      func.func @main(%x: {IMAGE}) -> ({types}) {{ {body} func.return {results} }}
    }}"""
    ctx = new_context()
    module, _ = parse_source(ctx, text, "network.mlir")
    set_ranges(module, ranges)
    run_passes(module, ctx, "insert-scales")
    return module


def count(module: ModuleOp, name: str) -> int:
    return sum(op.name == name for op in module.walk())


def test_weights_are_rounded_to_nearest_with_ties_up() -> None:
    """tensorrt-features.md#9.2, 10.17: per output channel, in [-127, 127]."""
    weights = np.array([[127.0, 0.5, -0.5, 1.5, -1.5], [-254.0, 1.0, -1.0, 3.0, 0.0]], np.float32)
    integers, scales = rounded_weights(weights, 0)
    assert scales.tolist() == [1.0, 2.0]
    assert integers.tolist() == [[127, 1, 0, 2, -1], [-127, 1, 0, 2, 0]]
    assert rounded_weights(weights.T.copy(), 1)[0].T.tolist() == integers.tolist()


def test_weights_of_zeros_and_of_the_smallest_numbers_have_a_scale() -> None:
    integers, scales = rounded_weights(np.array([[0.0, 0.0], [1e-45, 0.0], [3e38, -3e38]], np.float32), 0)
    assert (scales > 0).all()
    assert np.isfinite(scales).all()
    assert integers[0].tolist() == [0, 0]
    assert integers[2].tolist() == [127, -127]


def test_a_missing_range_makes_its_readers_and_maker_fall_back() -> None:
    """tensorrt-features.md#9.4, 9.21."""
    body = f"{LAYERS} %y = trt.convolution %b, %w : ({IMAGE}, {KERNEL}) -> {IMAGE}"
    with pytest.warns(UserWarning, match="Missing scale and zero-point for tensor b, expect fall back to non-int8"):
        module = with_scales(body, {"x": 1.0, "a": 1.0})
    assert count(module, "trt.quantize") == 1, "only the first layer has all its ranges"


def test_ranges_that_follow_need_not_be_given() -> None:
    body = f"""{LAYERS}
      %r = trt.activation relu %b : ({IMAGE}) -> {IMAGE}
      %y = trt.convolution %r, %w : ({IMAGE}, {KERNEL}) -> {IMAGE}"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = with_scales(body, {"x": 1.0, "a": 1.0, "b": 1.0})
    assert count(module, "trt.quantize") == 3


def test_ranges_of_another_network_are_refused() -> None:
    """tensorrt-features.md#31.7."""
    with pytest.raises(InvalidInputError, match="Could not find scales for tensor 'x'"):
        with_scales(f"{LAYERS} %y = trt.unary neg %b : ({IMAGE}) -> {IMAGE}", {"other": 1.0})


def test_a_uniformly_zero_tensor_has_some_scale() -> None:
    """tensorrt-features.md#9.22."""
    module = with_scales(f"{LAYERS} %y = trt.unary neg %b : ({IMAGE}) -> {IMAGE}", ALL | {"x": 0.0})
    assert count(module, "trt.quantize") == 2


def test_explicit_networks_are_left_alone() -> None:
    """tensorrt-features.md#10.1."""
    body = f"""{LAYERS} %s = trt.constant {{value = dense<1.0> : tensor<f32>}} : tensor<f32>
      %q = trt.quantize %b, %s : ({IMAGE}, tensor<f32>) -> tensor<1x1x4x4xi8>
      %y = trt.dequantize %q, %s : (tensor<1x1x4x4xi8>, tensor<f32>) -> {IMAGE}"""
    with pytest.warns(UserWarning, match="Calibrator won't be used in explicit precision mode"):
        module = with_scales(body, ALL)
    assert count(module, "trt.quantize") == 1


# What lies behind the last product: an addition that could read bytes, read by nobody but the output.
BEHIND = f"""{LAYERS}
  %c = trt.convolution %a, %w : ({IMAGE}, {KERNEL}) -> {IMAGE} loc("third")
  %s = trt.elementwise sum %b, %c : ({IMAGE}, {IMAGE}) -> {IMAGE} loc("sum")
"""


def test_behind_the_last_product_all_is_float() -> None:
    """tensorrt-features.md#9.24, the heuristic."""
    module = with_scales(f"{BEHIND} %y = trt.unary neg %s : ({IMAGE}) -> {IMAGE}", ALL)
    assert count(module, "trt.quantize") == 2, "the input and a; the operands of the addition stay float32"


def test_an_output_of_int8_needs_no_smoothing() -> None:
    """tensorrt-features.md#9.24, exception: the output is INT8."""
    body = f"""{BEHIND} %f = trt.constant {{value = dense<1.0> : tensor<f32>}} : tensor<f32>
      %y = trt.quantize %s, %f : ({IMAGE}, tensor<f32>) -> tensor<1x1x4x4xi8>"""
    module = with_scales(body, ALL, results="%y : tensor<1x1x4x4xi8>")
    assert count(module, "trt.quantize") == 4, "also b, which the addition reads, and the output"


def test_a_layer_that_is_asked_to_be_int8_is_not_smoothed() -> None:
    """tensorrt-features.md#9.24, exception: a layer on the way is constrained."""
    body = BEHIND.replace("sum %b, %c :", 'sum %b, %c {trt.precision = "int8"} :')
    module = with_scales(f"{body} %y = trt.unary neg %s : ({IMAGE}) -> {IMAGE}", ALL)
    assert count(module, "trt.quantize") == 3


def test_a_way_without_products_is_not_smoothed() -> None:
    """tensorrt-features.md#9.24, exception: the output is not made by a product, though it is read by one."""
    body = f"""{LAYERS} %p = trt.pooling average %x {{window = array<i64: 1, 1>}} : ({IMAGE}) -> {IMAGE}
      %y = trt.convolution %p, %w : ({IMAGE}, {KERNEL}) -> {IMAGE}"""
    module = with_scales(body, ALL | {"p": 1.0}, results=f"%y, %p : {IMAGE}, {IMAGE}")
    assert count(module, "trt.quantize") == 3, "the input, a, and what the average gives to the product"


@pytest.mark.parametrize("name", ["first", "second"])
def test_layers_stay_float_by_name(name: str) -> None:
    """tensorrt-features.md#4.11: a layer that is asked to compute in float32 reads float32."""
    body = f"{LAYERS} %y = trt.unary neg %b : ({IMAGE}) -> {IMAGE}"
    module = with_scales(body, ALL, f'trt.layer_precisions = {{"{name}" = "fp32"}}')
    assert count(module, "trt.quantize") == 1


def test_depthwise_convolutions_stay_float() -> None:
    """tensorrt-features.md#9.5: bytes only where they are faster."""
    images, one_each = "tensor<1x4x4x4xf32>", "tensor<4x1x1x1xf32>"
    text = f"""func.func @main(%x: {images}) -> {images} {{
      %w = trt.constant {{value = dense<1.0> : {one_each}}} : {one_each}
      %y = trt.convolution %x, %w {{num_groups = 4 : i64}} : ({images}, {one_each}) -> {images}
      func.return %y : {images}
    }}"""
    ctx = new_context()
    module, _ = parse_source(ctx, text, "network.mlir")
    set_ranges(module, {"x": 1.0})
    run_passes(module, ctx, "insert-scales")
    assert count(module, "trt.quantize") == 0
