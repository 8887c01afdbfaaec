"""What is known of the channels of a tensor makes int8 products more exact, and costs no launch."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of
from xdsl.dialects.builtin import ModuleOp

import mlirt
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.trt.quantize import QuantizeOp
from mlirt.errors import InvalidInputError
from mlirt.passes.pipeline import run_passes
from mlirt.passes.quantization.channel_statistics import (
    MIN_SHARE,
    ChannelStatistics,
    channels_in,
    shares_of,
)
from mlirt.tools.input_files import new_context

Array = np.ndarray[Any, np.dtype[Any]]
SPREAD = np.array([1.0, 0.02, 3.0, 0.1, 0.5, 0.3, 0.07, 2.0], np.float32)


def statistics(least: list[float], greatest: list[float]) -> ChannelStatistics:
    ends = np.array(least, np.float32), np.array(greatest, np.float32)
    return ChannelStatistics(*ends, np.zeros_like(ends[0]))


def test_shares_are_limited() -> None:
    needs = statistics([0.0, -0.25, -1.0, 0.0], [0.0, 0.0, 1.0, 2.0]).needs(1.0, 0) * 127
    assert needs.tolist() == [0.0, 0.25, 1.0, 1.0], "what lies beyond the range is clipped"
    found = shares_of(needs)
    assert found is not None
    assert found.tolist() == [MIN_SHARE, 0.25, 1.0, 1.0]


@pytest.mark.parametrize("needs", [[0.6, 0.9, 1.0], [0.0, 0.0, 0.0]])
def test_channels_that_are_all_alike_have_one_scale(needs: list[float]) -> None:
    assert shares_of(np.array(needs)) is None


@pytest.mark.parametrize(
    ("least", "greatest", "zero"),
    [([0.0, 0.0], [1.0, 3.0], -128), ([-1.0, -2.0], [1.0, 2.0], 0), ([-5.0], [0.0], 127), ([-0.375], [5.0], -110)],
)
def test_zero_points_that_waste_no_bytes(least: list[float], greatest: list[float], zero: int) -> None:
    known = statistics(least, greatest)
    assert known.best_zero(10.0) == zero
    assert (known.needs(10.0, zero) <= known.needs(10.0, 0)).all()


@pytest.mark.parametrize("text", ["1 : i64", "{x = 1 : i64}", "{x = [dense<1.0> : tensor<2xf32>]}"])
def test_attributes_that_are_no_statistics(text: str) -> None:
    module, _ = parse_source(new_context(), f"builtin.module attributes {{trt.channels = {text}}} {{}}", "a.mlir")
    with pytest.raises(InvalidInputError, match=r"trt\.channels: "):
        channels_in(module)


def network(seed: int = 0) -> Any:
    """Two products whose channels differ by a factor of 150, so that one step for all is as large as some of them."""
    rng = np.random.default_rng(seed)
    weights = {
        "w1": (rng.standard_normal((8, 3, 3, 3)) * SPREAD.reshape(-1, 1, 1, 1)).astype(np.float32),
        "w2": (rng.standard_normal((4, 8, 1, 1)) / SPREAD.reshape(1, -1, 1, 1)).astype(np.float32),
        "w3": rng.standard_normal((4, 4, 1, 1)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="conv1"),
        helper.make_node("Relu", ["c1"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "w2"], ["c2"], name="conv2"),
        helper.make_node("Conv", ["c2", "w3"], ["y"], name="conv3"),
    ]
    return model_of(nodes, {"x": ("float32", [2, 3, 8, 8])}, ["y"], weights)


def error(found: Array, exact: Array) -> float:
    return float(np.sqrt(np.square(found - exact).mean() / np.square(exact).mean()))


def test_products_of_uneven_channels_are_several_times_more_exact() -> None:
    samples = np.random.default_rng(1).standard_normal((8, 3, 8, 8)).astype(np.float32)
    exact = mlirt.compile(network(), "cpu").run({"x": samples[:2]})["y"]
    errors: list[float] = []
    for channels in (True, False):
        calibration = mlirt.calibrate(network(), samples, "minmax", target="cpu", channels=channels)
        assert bool(calibration.channels) is channels
        engine = mlirt.compile(network(), "cpu", "int8", calibration=calibration.to_bytes())
        errors.append(error(engine.run({"x": samples[:2]})["y"], exact))
    assert errors[0] < 0.25 * errors[1]
    assert errors[0] < 0.03


def compiled(attributes: str, body: str, pipeline: str) -> ModuleOp:
    text = f"""builtin.module attributes {{{attributes}}} {{
      func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {{ {body} func.return %y : tensor<1x2x4x4xf32> }}
    }}"""
    ctx = new_context()
    module, _ = parse_source(ctx, text, "network.mlir")
    run_passes(module, ctx, pipeline)
    return module


RANGES = "trt.ranges = {x = 1.0 : f64, c = 127.0 : f64, y = 1.0 : f64}"
ENDS = "dense<[-127.0, -31.75]> : tensor<2xf32>, dense<[127.0, 31.75]> : tensor<2xf32>"
CHANNELS = f"trt.channels = {{c = [{ENDS}, dense<[0.0, 4.0]> : tensor<2xf32>]}}"
KERNEL = "tensor<2x2x1x1xf32>"
IMAGE = "tensor<1x2x4x4xf32>"
TWO = f"""
  %w = trt.constant {{value = dense<[[[[1.0]], [[0.3]]], [[[2.0]], [[0.0]]]]> : {KERNEL}}} : {KERNEL}
  %c = trt.convolution %x, %w : ({IMAGE}, {KERNEL}) -> {IMAGE}
  %y = trt.convolution %c, %w : ({IMAGE}, {KERNEL}) -> {IMAGE}
"""


def test_the_factor_of_a_product_takes_the_scales_of_the_channels_behind_it() -> None:
    """Between two int8 products there are bytes, and one multiplication for each sum."""
    passes = "insert-scales,fuse-quantized-convolution"
    text = str(compiled(f"{RANGES}, {CHANNELS}", TWO, passes))
    assert text.count("-> tensor<1x2x4x4xi32>") == 2
    assert text.count("trt.elementwise prod") == 2
    assert "axis = 1" not in text


def test_what_rounding_changes_in_the_mean_is_added_to_the_bias() -> None:
    """0.3 * 0.25 becomes 10 / 127, so that a mean of 4 would come out as 4 * (10 / 127 - 0.3 * 0.25) / 0.25 more."""
    text = str(compiled(f"{RANGES}, {CHANNELS}", TWO, "insert-scales"))
    (bias,) = re.findall(r"dense<\[(\S+), 0\.0+e\+00\]> : tensor<2xf32>", text)
    assert float(bias) == pytest.approx((0.3 * 0.25 - 10 / 127) * 4 / 0.25, rel=1e-4)


WIDE = "tensor<1x4x4x4xf32>"
JOINED = f"""
  %r = trt.activation relu %x : ({IMAGE}) -> {IMAGE}
  %c = trt.concatenation %x, %r {{axis = 1 : i64}} : ({IMAGE}, {IMAGE}) -> {WIDE}
  %w = trt.constant {{value = dense<1.0> : tensor<2x4x1x1xf32>}} : tensor<2x4x1x1xf32>
  %y = trt.convolution %c, %w : ({WIDE}, tensor<2x4x1x1xf32>) -> {IMAGE}
"""


@pytest.mark.parametrize(
    ("greatest", "has_shares"), [("100.0, 127.0, 20.0, 31.0", True), ("9.0, 127.0, 9.0, 32.0", False)]
)
def test_joined_tensors_have_one_step_unless_one_would_have_few_bits(greatest: str, has_shares: bool) -> None:
    """Bytes with one step are joined as they are; one step for a tensor that is a quarter as large wastes two bits."""
    least = "-127.0, -127.0, -1.0, -1.0"
    ends = ", ".join(f"dense<[{numbers}]> : tensor<4xf32>" for numbers in (least, greatest, "0.0, 0.0, 0.0, 0.0"))
    ranges = "trt.ranges = {x = 127.0 : f64, c = 127.0 : f64, y = 1.0 : f64}"
    module = compiled(f"{ranges}, trt.channels = {{c = [{ends}]}}", JOINED, "insert-scales")
    (narrow,) = (op for op in module.walk() if isinstance(op, QuantizeOp))
    assert (narrow.axis is not None) is has_shares


def test_what_is_joined_with_larger_numbers_keeps_its_accuracy() -> None:
    """A network's second part is 12 times smaller than its first, and matters as much: its steps must be smaller."""
    rng = np.random.default_rng(2)
    weights = {
        "small": np.full((1, 1, 1, 1), 0.1, np.float32),
        "w": (rng.standard_normal((8, 8, 1, 1)) * np.repeat([1.0, 10.0], 4).reshape(1, 8, 1, 1)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Mul", ["x", "small"], ["m"], name="mul"),
        helper.make_node("Sigmoid", ["z"], ["s"], name="sigmoid"),
        helper.make_node("Mul", ["s", "m"], ["t"], name="gate"),
        helper.make_node("Concat", ["x", "t"], ["j"], name="join", axis=1),
        helper.make_node("Conv", ["j", "w"], ["y"], name="conv"),
    ]
    shape: tuple[str, list[int]] = ("float32", [2, 4, 8, 8])
    model = model_of(nodes, {"x": shape, "z": shape}, ["y"], weights)
    samples = {name: rng.standard_normal((8, 4, 8, 8)).astype(np.float32) for name in "xz"}
    calibration = mlirt.calibrate(model, samples, "minmax", target="cpu")
    feeds = {name: array[:2] for name, array in samples.items()}
    exact = mlirt.compile(model, "cpu").run(feeds)["y"]
    assert error(mlirt.compile(model, "cpu", "int8", calibration=calibration).run(feeds)["y"], exact) < 0.03


GATE = """
  %m = trt.reduce avg %x {axes = array<i64: 2, 3>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x1x1xf32>
  %w = trt.constant {value = dense<1.0> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %e = trt.convolution %m, %w : (tensor<1x2x1x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x1x1xf32>
  %g = trt.activation sigmoid %e : (tensor<1x2x1x1xf32>) -> tensor<1x2x1x1xf32>
  %z = trt.elementwise prod %x, %g : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %y = trt.convolution %z, %w : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
"""


def test_factors_of_channels_stay_float() -> None:
    """tensorrt-features.md#9.5: a convolution of a single pixel gains nothing, and all pixels would have its error."""
    ranges = ", ".join(f"{name} = 1.0 : f64" for name in "xmegz")
    module = compiled(f"trt.ranges = {{{ranges}}}", GATE, "insert-scales")
    assert sum(op.name == "trt.quantize" for op in module.walk()) == 1


def test_small_products_stay_float() -> None:
    """tensorrt-features.md#9.5: a few channels at the beginning, whose sums are short; asked to be int8 they are."""
    images, wide = "tensor<1x2x64x64xf32>", "tensor<1x256x64x64xf32>"
    ranges = ", ".join(f"{name} = 1.0 : f64" for name in "xay")

    def quantisations(asked: str) -> int:
        text = f"""builtin.module attributes {{trt.ranges = {{{ranges}}}}} {{
          func.func @main(%x: {images}) -> {wide} {{
            %v = trt.constant {{value = dense<1.0> : tensor<64x2x1x1xf32>}} : tensor<64x2x1x1xf32>
            %w = trt.constant {{value = dense<1.0> : tensor<256x64x1x1xf32>}} : tensor<256x64x1x1xf32>
            %a = trt.convolution %x, %v {asked} : ({images}, tensor<64x2x1x1xf32>) -> tensor<1x64x64x64xf32>
            %y = trt.convolution %a, %w : (tensor<1x64x64x64xf32>, tensor<256x64x1x1xf32>) -> {wide}
            func.return %y : {wide}
          }}
        }}"""
        ctx = new_context()
        module, _ = parse_source(ctx, text, "network.mlir")
        run_passes(module, ctx, "insert-scales")
        return sum(op.name == "trt.quantize" for op in module.walk())

    assert quantisations("") == 1
    assert quantisations('{trt.precision = "int8"}') == 2
