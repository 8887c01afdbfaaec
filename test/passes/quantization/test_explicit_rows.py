"""Explicit quantisation, row by row (sections 10 and 26): what is one launch, of which types, with equal results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from converted_layer import Array, NetworkBuilder, compare, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp as FusedConvolutionOp
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.quantization_notes import notes_in
from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.pooling import PoolingKind, PoolingOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.scale import ScaleMode, ScaleOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.phases import phase_names, pipeline_for

LAUNCHES = (FusedConvolutionOp, MatmulOp, PointwiseOp, ReductionOp, WindowOp)
Build = Callable[["Net"], Sequence[SSAValue]]


class Net(NetworkBuilder):
    """A network of layers of 1 x 4 x 6 x 6, whose scales are powers of two: so float32 computes the sums exactly."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(7)

    def image(self) -> SSAValue:
        return self.input((4 * self.rng.standard_normal((1, 4, 6, 6))).astype(np.float32))

    def number(self, value: float, dtype: type[Any] = np.float32) -> SSAValue:
        return self.constant(np.array(value, dtype))

    def quantized(self, value: SSAValue, scale: float = 0.125, zero: int = 0, dtype: type[Any] = np.int8) -> SSAValue:
        return self.layer(QuantizeOp, [value, self.number(scale), self.number(zero, dtype)])[0]

    def dequantized(self, value: SSAValue, scale: float = 0.125, zero: int = 0, dtype: type[Any] = np.int8) -> SSAValue:
        return self.layer(DequantizeOp, [value, self.number(scale), self.number(zero, dtype)])[0]

    def rounded(self, value: SSAValue, scale: float = 0.125, zero: int = 0, dtype: type[Any] = np.int8) -> SSAValue:
        """A pair of conversions."""
        return self.dequantized(self.quantized(value, scale, zero, dtype), scale, zero, dtype)

    def integers(self, *shape: int) -> Array:
        return self.rng.integers(-127, 128, shape, np.int8)

    def weights(self, *shape: int) -> SSAValue:
        return self.dequantized(self.constant(self.integers(*shape)), 2.0**-7)

    def convolution(self, value: SSAValue, kernel: SSAValue | None = None, bias: SSAValue | None = None) -> SSAValue:
        weights = self.weights(4, 4, 3, 3) if kernel is None else kernel
        return self.layer(ConvolutionOp, [value, weights, bias], pre_padding=[1, 1], post_padding=[1, 1])[0]

    def relu(self, value: SSAValue) -> SSAValue:
        return self.layer(ActivationOp, [value], kind=ActivationKind.RELU)[0]

    def sum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.layer(ElementwiseOp, [a, b], kind=ElementwiseKind.SUM)[0]


def compiled(build: Build, steps: float = 0, target: str = "cpu", precision: str = "fp32") -> ModuleOp:
    """The module after the phase fusion; its integers differ from those before by at most so many steps."""
    phases = pipeline_for(target, precision, first="cleanup", last="fusion")
    pipeline = ",".join(spec for _, specs in phases for spec in specs)

    def made(net: NetworkBuilder) -> Sequence[SSAValue]:
        own = Net()
        own.block, own.ctx, own.inputs = net.block, net.ctx, net.inputs
        return build(own)

    return compare(made, pipeline, rtol=0, atol=steps)


def launches(module: ModuleOp) -> list[str]:
    """What runs: `convolution i8 > i8` for each launch, in order."""
    return [
        f"{op.name.removeprefix('fused.')} {element_of(op.operands[0].type)} > {element_of(op.results[0].type)}"
        for op in module.walk()
        if isinstance(op, LAUNCHES)
    ]


BYTES = "convolution ui8 > ui8"


def test_only_what_the_network_dictates_10_2() -> None:
    def build(net: Net) -> Sequence[SSAValue]:
        real = net.constant(net.rng.standard_normal((4, 4, 3, 3)).astype(np.float32))
        behind = net.convolution(net.convolution(net.rounded(net.image())), real)
        return [net.relu(behind)]

    assert launches(compiled(build, 1e-4)) == ["pointwise f32 > ui8", "convolution ui8 > f32", "convolution f32 > f32"]


@pytest.mark.parametrize("scale", [1.0, 2.0**-7])
def test_weights_are_stored_as_bytes_10_3_10_4(scale: float) -> None:
    """Also those that are quantised in steps of 1, and scaled behind that; all of -128 to 127 occurs."""

    def build(net: Net) -> Sequence[SSAValue]:
        real = np.linspace(-130, 130, 4 * 4 * 9).reshape(4, 4, 3, 3).astype(np.float32) * scale
        stored = net.quantized(net.constant(real), scale)
        return [net.quantized(net.convolution(net.rounded(net.image()), net.dequantized(stored, 2.0**-7)), 1.0)]

    module = compiled(build)
    assert launches(module) == ["pointwise f32 > ui8", "convolution ui8 > i8"]
    (kernel,) = (op.kernel.owner for op in module.walk() if isinstance(op, FusedConvolutionOp))
    assert isinstance(kernel, ConstantOp)
    assert str(element_of(kernel.output.type)) == "i8"


def test_one_scale_per_kernel_10_5() -> None:
    def build(net: Net) -> Sequence[SSAValue]:
        scales = net.constant(np.array([0.5, 0.25, 2.0, 1.0], np.float32) / 64)
        (kernel,) = net.layer(DequantizeOp, [net.constant(net.integers(4, 4, 3, 3)), scales], axis=0)
        return [net.quantized(net.convolution(net.rounded(net.image()), kernel), 1.0)]

    assert launches(compiled(build)) == ["pointwise f32 > ui8", "convolution ui8 > i8"]


def test_scales_per_channel_of_activations_are_explained_10_5() -> None:
    def build(net: Net) -> Sequence[SSAValue]:
        scales = net.constant(np.array([0.5, 0.25, 2.0, 1.0], np.float32))
        (rounded,) = net.layer(QuantizeOp, [net.image(), scales], axis=1)
        (image,) = net.layer(DequantizeOp, [rounded, scales], axis=1)
        return [net.convolution(image)]

    (note,) = (note for name, note in notes_in(compiled(build, 1e-3)).items() if "convolution" in name)
    assert note == "stays f32: its input has one scale per slice of axis 1; products need one for all"


@pytest.mark.parametrize(("operation", "axis"), [(MatrixOperation.TRANSPOSE, 0), (MatrixOperation.NONE, 1)])
def test_one_scale_per_column_10_6(operation: MatrixOperation, axis: int) -> None:
    def build(net: Net) -> Sequence[SSAValue]:
        scales = net.constant(np.array([0.5, 0.25, 2.0, 1.0], np.float32) / 64)
        (weights,) = net.layer(DequantizeOp, [net.constant(net.integers(4, 4)), scales], axis=axis)
        x = net.rounded(net.input(net.rng.standard_normal((3, 4)).astype(np.float32)))
        return [net.quantized(net.layer(MatrixMultiplyOp, [x, weights], rhs_op=operation)[0])]

    assert launches(compiled(build)) == ["pointwise f32 > ui8", "matmul ui8 > i8"]


def test_weights_that_are_transposed_behind_their_scale_10_6() -> None:
    def build(net: Net) -> Sequence[SSAValue]:
        scales = net.constant(np.array([0.5, 0.25, 2.0, 1.0], np.float32) / 64)
        (stored,) = net.layer(DequantizeOp, [net.constant(net.integers(4, 5)), scales], axis=0)
        (weights,) = net.layer(ShuffleOp, [stored], first_transpose=[1, 0])
        x = net.rounded(net.input(net.rng.standard_normal((3, 5)).astype(np.float32)))
        return [net.quantized(net.layer(MatrixMultiplyOp, [x, weights])[0])]

    assert launches(compiled(build)) == ["pointwise f32 > ui8", "matmul ui8 > i8"]


def residual(net: Net, other: SSAValue) -> SSAValue:
    """Rectified sum of a convolution and another tensor, quantised."""
    total = net.sum(net.convolution(net.rounded(net.image())), other)
    return net.quantized(net.relu(total), 1.0, 0, np.uint8)


def residuals(module: ModuleOp) -> list[str]:
    """The element types of what the convolution reads besides bias and factors."""
    (op,) = (op for op in module.walk() if isinstance(op, FusedConvolutionOp))
    return [str(element_of(extra.type)) for extra in op.extras if not isinstance(extra.owner, ConstantOp)]


def test_residual_of_int8_10_10() -> None:
    """Bytes come in on both sides, and bytes go out of one launch."""

    def build(net: Net) -> Sequence[SSAValue]:
        return [residual(net, bytes_in(net, 0.25))]

    module = compiled(build)
    assert launches(module) == ["pointwise f32 > ui8", BYTES]
    assert residuals(module) == ["i8"]


def test_residual_of_numbers_10_10() -> None:
    """A residual in float32 is read as it is; that the result is rounded all the same needs no launch of its own."""
    module = compiled(lambda net: [residual(net, net.image())])
    assert launches(module) == ["pointwise f32 > ui8", BYTES]
    assert residuals(module) == ["f32"]


def test_a_pair_between_convolution_and_sum_costs_a_rounding_10_11() -> None:
    """It is computed, in the launch of the convolution."""

    def build(net: Net) -> Sequence[SSAValue]:
        total = net.sum(net.rounded(net.convolution(net.rounded(net.image())), 1.0), net.image())
        return [net.quantized(total, 1.0)]

    assert launches(compiled(build)) == ["pointwise f32 > ui8", "convolution ui8 > i8"]


def test_normalisation_keeps_its_place_10_12() -> None:
    """Weights that are rounded take no other scale; the epilogue multiplies in the order of the network."""

    def build(net: Net) -> Sequence[SSAValue]:
        factors, shifts = (net.constant(np.array(array, np.float32)) for array in ([1, 2, 0.5, 4], [1, -1, 0, 3]))
        convolved = net.convolution(net.rounded(net.image()))
        (normalized,) = net.layer(ScaleOp, [convolved, shifts, factors, None], mode=ScaleMode.CHANNEL, channel_axis=1)
        return [net.quantized(net.relu(normalized), 1.0)]

    assert launches(compiled(build)) == ["pointwise f32 > ui8", "convolution ui8 > i8"]


def test_a_sum_that_is_not_rounded_is_float_10_13() -> None:
    module = compiled(lambda net: [net.sum(net.rounded(net.image()), net.rounded(net.image()))])
    assert launches(module) == ["pointwise f32 > f32"]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("zero", [0, 3, 100])
def test_zero_points_10_15(dtype: type[Any], zero: int) -> None:
    """TensorRT refuses others than 0; here they are exact, in the cells of padding too."""

    def build(net: Net) -> Sequence[SSAValue]:
        convolved = net.convolution(net.rounded(net.image(), 0.125, zero, dtype))
        return [net.quantized(convolved, 1.0, zero, dtype)]

    assert launches(compiled(build)) == [
        "pointwise f32 > ui8",
        f"convolution ui8 > {'i8' if dtype is np.int8 else 'ui8'}",
    ]


def test_the_integers_are_those_of_the_definition_9_26() -> None:
    """sat(round(relu(sum of products * s_x s_w / s_y + bias / s_y))), in NumPy's integers."""
    net = Net()
    x = net.integers(1, 4, 6, 6)
    kernel, bias = net.integers(3, 4, 1, 1), net.rng.integers(-9000, 9000, 3).astype(np.int32)
    steps = (0.25, 0.0625, 0.75)
    total = np.einsum("nchw,kc->nkhw", x.astype(np.int64), kernel[:, :, 0, 0].astype(np.int64)) + bias[:, None, None]
    factor = np.float32(np.float32(steps[0] * steps[1]) / np.float32(steps[2]))
    expected = np.clip(np.rint(np.maximum(total.astype(np.float32) * factor, 0)), -128, 127).astype(np.int8)
    weights = net.dequantized(net.constant(kernel), steps[1])
    units = net.dequantized(net.constant(bias), steps[0] * steps[1], 0, np.int32)
    (made,) = net.layer(ConvolutionOp, [net.dequantized(net.input(x), steps[0]), weights, units])
    module = net.module([net.quantized(net.relu(made), steps[2])])
    run_passes(module, net.ctx, "fuse-quantized-convolution,dce")
    np.testing.assert_array_equal(net.run(module)[0], expected)


def test_ties_go_to_the_even_number_10_17() -> None:
    x = np.arange(-9, 10, dtype=np.float32) / 2

    def build(net: Net) -> Sequence[SSAValue]:
        weights = net.quantized(net.constant(x), 1.0)
        return [net.quantized(net.input(x), 1.0), net.sum(net.dequantized(weights, 1.0), net.input(x))]

    compiled(build)


@pytest.mark.parametrize("quantized", [False, True])
def test_bias_in_units_of_both_scales_10_19(quantized: bool) -> None:
    def build(net: Net) -> Sequence[SSAValue]:
        units = np.array([1, -1000, 50, 7], np.int32)
        step = 0.125 * 2.0**-7
        bias = net.dequantized(net.constant(units), step, 0, np.int32) if quantized else None
        real = net.constant((units * step).astype(np.float32))
        return [net.quantized(net.convolution(net.rounded(net.image()), None, bias or real), 1.0)]

    assert launches(compiled(build)) == ["pointwise f32 > ui8", "convolution ui8 > i8"]


def test_remaining_layers_in_half_precision_10_20() -> None:
    """Bytes where the network says so, half precision elsewhere; what is rounded comes from float32 sums."""

    def build(net: Net) -> Sequence[SSAValue]:
        real = net.constant(net.rng.standard_normal((4, 4, 3, 3)).astype(np.float32))
        return [net.relu(net.convolution(net.convolution(net.rounded(net.image())), real))]

    module = compiled(build, 0.5, "cuda", "int8+fp16")
    assert launches(module)[:3] == ["pointwise f32 > i8", "convolution i8 > f16", "convolution f16 > f32"]


def _products(net: Net) -> dict[str, Callable[[SSAValue], SSAValue]]:
    return {
        "convolution": net.convolution,
        "fully connected": lambda x: net.layer(FullyConnectedOp, [x, net.weights(5, 144), None])[0],
        "product": lambda x: net.layer(MatrixMultiplyOp, [x, net.weights(1, 4, 6, 5)])[0],
    }


@pytest.mark.parametrize("name", ["convolution", "fully connected", "product"])
def test_layers_with_weights_between_int8_10_9_26_1(name: str) -> None:
    module = compiled(lambda net: [net.quantized(_products(net)[name](net.rounded(net.image())), 1.0)])
    assert len(launches(module)) == 2
    assert launches(module)[1].endswith(" ui8 > i8")


@pytest.mark.parametrize(
    ("size", "settings", "moves"),
    [
        (2, {"stride": 2}, 1),
        (3, {"pre_padding": 1, "post_padding": 1}, 0),
        (4, {"stride": 2, "pre_padding": 1, "post_padding": 1, "num_groups": 2}, 2),
        (3, {"stride": 2, "pre_padding": 1, "post_padding": 1, "output_padding": 1}, 1),
        (3, {"stride": 2, "dilation": 2, "pre_padding": 2, "post_padding": 2}, 2),
        (5, {"stride": 3, "post_padding": 2, "num_groups": 4}, 1),
    ],
)
@pytest.mark.parametrize("channels", [False, True])
def test_deconvolutions_between_int8_26_1(size: int, settings: dict[str, int], moves: int, channels: bool) -> None:
    """One convolution to int8, whose results are put into place and cropped; scales are one or one for each channel."""
    groups = settings.get("num_groups", 1)

    def build(net: Net) -> Sequence[SSAValue]:
        weights = net.constant(net.integers(4, 4 // groups, size, size))
        if channels:
            scales = net.constant((2.0 ** -np.arange(6, 6 + 4 // groups)).astype(np.float32))
            (kernel,) = net.layer(DequantizeOp, [weights, scales, None], axis=1)
        else:
            kernel = net.dequantized(weights, 2.0**-7)
        bias = net.constant(net.rng.integers(-8, 8, 4).astype(np.float32))
        given: dict[str, Any] = {name: n if name == "num_groups" else [n, n] for name, n in settings.items()}
        (made,) = net.layer(DeconvolutionOp, [net.rounded(net.image(), 0.125, 3), kernel, bias], **given)
        return [net.quantized(net.relu(made), 1.0)]

    found = launches(compiled(build))
    assert found == ["pointwise f32 > ui8", "convolution ui8 > i8", *["pointwise i8 > i8"] * moves]


def test_deconvolutions_say_why_not_26_1() -> None:
    def build(net: Net) -> Sequence[SSAValue]:
        return net.layer(DeconvolutionOp, [net.rounded(net.image()), net.weights(4, 2, 2, 2)], stride=[2, 2])

    notes = notes_in(compiled(build, 1e-5)).values()
    assert "stays f32: no quantization with one scale reads its result alone" in notes


def bytes_in(net: Net, scale: float) -> SSAValue:
    """A dequantised input of bytes."""
    return net.dequantized(net.input(net.integers(1, 4, 6, 6)), scale)


def test_sums_between_int8_26_2() -> None:
    def build(net: Net) -> Sequence[SSAValue]:
        return [net.quantized(net.relu(net.sum(bytes_in(net, 0.125), bytes_in(net, 0.25))), 0.25)]

    assert launches(compiled(build)) == ["pointwise i8 > i8"]


def test_means_between_int8_26_2() -> None:
    """Over an image it is one launch of int8; windows that slide are summed in float32, and give bytes."""

    def build(net: Net) -> Sequence[SSAValue]:
        (mean,) = net.layer(ReduceOp, [bytes_in(net, 0.125)], kind=ReduceKind.AVG, axes=[2, 3])
        (pooled,) = net.layer(PoolingOp, [bytes_in(net, 0.125)], kind=PoolingKind.AVERAGE, window=[2, 2])
        return [net.quantized(mean, 0.25), net.quantized(pooled, 0.25)]

    assert launches(compiled(build)) == ["pointwise i8 > f32", "reduction i8 > i8", "window f32 > i8"]


def test_without_a_quantisation_behind_the_result_is_float_26_3() -> None:
    assert launches(compiled(lambda net: [net.convolution(net.rounded(net.image()))])) == [
        "pointwise f32 > ui8",
        "convolution ui8 > f32",
    ]


def test_a_pooling_in_between_compares_bytes_26_4_26_5() -> None:
    """Nothing is written around the maximum, yet the convolution behind it multiplies bytes."""

    def build(net: Net) -> Sequence[SSAValue]:
        (pooled,) = net.layer(PoolingOp, [net.rounded(net.image())], kind=PoolingKind.MAX, window=[3, 3])
        return [net.quantized(net.convolution(pooled), 1.0)]

    assert launches(compiled(build)) == ["pointwise f32 > ui8", "window ui8 > ui8", "convolution ui8 > i8"]


def test_pairs_that_undo_each_other_go_26_6() -> None:
    once = compiled(lambda net: [net.convolution(net.rounded(net.image()))])
    twice = compiled(lambda net: [net.convolution(net.rounded(net.rounded(net.image())))])
    assert launches(once) == launches(twice)


def test_what_is_behind_a_product_joins_it_26_7() -> None:
    """x sigmoid(x) of a convolution's result, in float32, rounded: one launch of int8."""

    def build(net: Net) -> Sequence[SSAValue]:
        made = net.convolution(net.rounded(net.image()))
        gate = net.layer(ActivationOp, [made], kind=ActivationKind.SIGMOID)[0]
        return [net.quantized(net.layer(ElementwiseOp, [made, gate], kind=ElementwiseKind.PROD)[0], 1.0)]

    assert launches(compiled(build, 1)) == ["pointwise f32 > ui8", "convolution ui8 > i8"]


def test_scales_are_joined_before_other_layers_26_8() -> None:
    assert phase_names().index("quantization") < phase_names().index("fusion")
