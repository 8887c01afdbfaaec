"""Every layer, in every element type that it takes, computes the same after it has become fused ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from converted_layer import Array, NetworkBuilder, compare, layers_of, run_passes
from xdsl.dialects.builtin import DenseArrayBase, f64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.grid_sampling import SampleMode
from mlirt.dialects.indexing import GatherMode, ScatterMode, ScatterReduction
from mlirt.dialects.interpolation import Coordinate, ResizeKind
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.running_totals import CumulativeKind
from mlirt.dialects.slicing import PadMode, SliceMode
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_type, numpy_dtype
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.cumulative import CumulativeOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.einsum import EinsumOp
from mlirt.dialects.trt.elementwise import INTEGER_ONLY, LOGICAL, ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.fill import FillKind, FillOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.grid_sample import GridSampleOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.lrn import LrnOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.multiply_add import MultiplyAddOp
from mlirt.dialects.trt.non_zero import NonZeroOp
from mlirt.dialects.trt.one_hot import OneHotOp
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.parametric_relu import ParametricReluOp
from mlirt.dialects.trt.pooling import PoolingKind, PoolingOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.dialects.trt.random import RandomKind, RandomOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.resize import ResizeOp
from mlirt.dialects.trt.scale import ScaleMode, ScaleOp
from mlirt.dialects.trt.scatter import ScatterOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shape import ShapeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.topk import TopkKind, TopkOp
from mlirt.dialects.trt.unary import TESTS, UnaryKind, UnaryOp
from mlirt.dialects.window_arithmetic import PaddingMode
from mlirt.errors import UnsupportedError

PASS = "convert-trt-to-fused"
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2}
SPECIAL = np.array([[np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 100.0, -100.0, 0.5]], np.float32)
INTEGERS = [f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def numbers(shape: Sequence[int], element: str = "float32", seed: int = 0) -> Array:
    """Reproducible numbers: floats of a normal distribution, integers from -5 or 0 to 5, booleans."""
    rng, dtype = np.random.default_rng(seed), numpy_dtype(element_type(element))
    if dtype.kind == "b":
        return np.asarray(rng.random(tuple(shape)) < 0.5)
    if dtype.kind in "iu":
        return rng.integers(-5 if dtype.kind == "i" else 0, 6, tuple(shape)).astype(dtype)
    return np.asarray(3 * rng.standard_normal(tuple(shape))).astype(dtype)


def check(
    op_class: type[TensorOp],
    inputs: Sequence[Array | None],
    tolerance: float = 1e-5,
    results: int = 1,
    **properties: Any,
) -> None:
    """The layer computes the same as a fused op."""

    def build(net: NetworkBuilder) -> list[SSAValue]:
        operands = [None if array is None else net.input(array) for array in inputs]
        return net.layer(op_class, operands, results, **properties)

    module = compare(build, PASS, tolerance, tolerance)
    assert not [op for op in layers_of(module) if op.dialect_name() == "trt" and op.name != "trt.constant"]


@pytest.mark.parametrize("kind", ActivationKind)
@pytest.mark.parametrize("element", FLOATS)
def test_activation(kind: ActivationKind, element: str) -> None:
    check(ActivationOp, [numbers([4, 5], element)], TOLERANCE.get(element, 1e-5), kind=kind, alpha=0.5, beta=1.5)


@pytest.mark.parametrize("kind", [ActivationKind.RELU, ActivationKind.CLIP, ActivationKind.LEAKY_RELU])
@pytest.mark.parametrize("element", ["int32", "uint8"])
def test_activation_of_integers(kind: ActivationKind, element: str) -> None:
    check(ActivationOp, [numbers([4, 5], element)], kind=kind, alpha=0.5, beta=1.5)


@pytest.mark.parametrize("kind", ActivationKind)
def test_activation_at_the_edges(kind: ActivationKind) -> None:
    """Infinities and not-a-number come out as NumPy has them; nothing overflows on the way."""
    check(ActivationOp, [SPECIAL], kind=kind, alpha=0.5, beta=1.5)


ON_INTEGERS = (UnaryKind.ABS, UnaryKind.NEG, UnaryKind.SIGN, UnaryKind.CEIL, UnaryKind.FLOOR, UnaryKind.ROUND)


@pytest.mark.parametrize("kind", [kind for kind in UnaryKind if kind not in (UnaryKind.NOT, UnaryKind.BITWISE_NOT)])
def test_unary(kind: UnaryKind) -> None:
    check(UnaryOp, [numbers([4, 5])], kind=kind)
    check(UnaryOp, [numbers([4, 5], "float16")], 2e-3, kind=kind)
    check(UnaryOp, [SPECIAL], kind=kind)


@pytest.mark.parametrize("kind", ON_INTEGERS)
@pytest.mark.parametrize("element", ["int32", "int8", "uint8"])
def test_unary_on_integers(kind: UnaryKind, element: str) -> None:
    check(UnaryOp, [numbers([4, 5], element)], kind=kind)


def test_unary_on_bits() -> None:
    check(UnaryOp, [numbers([4, 5], "bool")], kind=UnaryKind.NOT)
    check(UnaryOp, [numbers([4, 5], "int16")], kind=UnaryKind.BITWISE_NOT)
    check(UnaryOp, [numbers([4, 5], "uint32")], kind=UnaryKind.BITWISE_NOT)
    assert TESTS


DIVISIONS = (ElementwiseKind.DIV, ElementwiseKind.MOD, ElementwiseKind.FMOD, ElementwiseKind.FLOOR_DIV)
SHIFTS = (ElementwiseKind.SHIFT_LEFT, ElementwiseKind.SHIFT_RIGHT)


def takes(kind: ElementwiseKind, element: str) -> bool:
    """Whether an operation is defined for elements of a type."""
    if element == "bool":
        return kind in LOGICAL or kind is ElementwiseKind.EQUAL
    return kind not in LOGICAL and (kind not in INTEGER_ONLY or "int" in element)


ELEMENTS = ("float32", "float16", "int8", "uint8", "int32", "int64", "bool")
CASES = [(kind, element) for kind in ElementwiseKind for element in ELEMENTS if takes(kind, element)]


@pytest.mark.parametrize(("kind", "element"), CASES)
def test_elementwise(kind: ElementwiseKind, element: str) -> None:
    left, right = numbers([4, 1, 5], element), numbers([1, 3, 5], element, seed=1)
    if kind is ElementwiseKind.POW:
        left, right = np.abs(left), np.abs(right)
    if kind in SHIFTS:
        right = np.abs(right)
    if kind in DIVISIONS and "int" in element:
        right = np.where(right == 0, right.dtype.type(3), right)
    check(ElementwiseOp, [left, right], TOLERANCE.get(element, 1e-5), kind=kind)


@pytest.mark.parametrize("kind", DIVISIONS)
def test_division_by_integer_zero_gives_zero(kind: ElementwiseKind) -> None:
    check(ElementwiseOp, [np.array([5, 0, 7], np.int32), np.zeros(3, np.int32)], kind=kind)


def test_integer_powers() -> None:
    base = np.array([2, 3, 0, 0, -1, 1, -2], np.int64)
    check(ElementwiseOp, [base, np.array([62, 5, 0, 70, 101, 99, 3], np.int64)], kind=ElementwiseKind.POW)


def test_shift_by_the_width_or_more() -> None:
    for kind in SHIFTS:
        check(ElementwiseOp, [np.array([1, -8], np.int32), np.array([40, 32], np.int32)], kind=kind)


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("target", [*FLOATS, *INTEGERS, "bool"])
def test_identity(source: str, target: str) -> None:
    def build(net: NetworkBuilder) -> list[SSAValue]:
        return net.layer(IdentityOp, [net.input(numbers([4, 5], source))], element=element_type(target))

    compare(build, PASS)


def test_select() -> None:
    condition = numbers([4, 5], "bool")
    check(SelectOp, [condition, numbers([4, 5]), numbers([1, 5], seed=1)])
    check(SelectOp, [condition, numbers([4, 1], "uint8"), numbers([1, 5], "uint8", 1)])


def test_multiply_add() -> None:
    check(MultiplyAddOp, [numbers([2, 3]), numbers([1, 3], seed=1), numbers([2, 1], seed=2)], 0.0)


def test_parametric_relu() -> None:
    check(ParametricReluOp, [numbers([2, 3, 4]), numbers([1, 3, 1], seed=1)])


@pytest.mark.parametrize(
    ("mode", "shape"), [(ScaleMode.CHANNEL, (3,)), (ScaleMode.UNIFORM, ()), (ScaleMode.ELEMENTWISE, (3, 4))]
)
def test_scale(mode: ScaleMode, shape: tuple[int, ...]) -> None:
    arrays = [np.abs(numbers(size, seed=k)) for k, size in enumerate([(2, 3, 4), shape, shape, shape])]
    check(ScaleOp, arrays, mode=mode)


@pytest.mark.parametrize("zero", ["int8", "uint8", "int16"])
def test_quantization(zero: str) -> None:
    scale = np.abs(numbers([4])) + np.float32(0.1)
    check(QuantizeOp, [10 * numbers([3, 4]), scale[0].reshape(()), numbers([], zero)])
    check(QuantizeOp, [10 * numbers([3, 4]), scale, numbers([4], zero)], axis=1)
    check(DequantizeOp, [numbers([3, 4], zero), scale[:3], numbers([3], zero, 1)], axis=0)
    check(DequantizeOp, [numbers([3, 4], zero), scale[0].reshape(()).astype(np.float16)], 2e-3)


def test_quantization_saturates_and_rounds_ties_to_even() -> None:
    x = np.array([1e9, -1e9, 0.5, 1.5, 2.5, -0.5, np.nan], np.float32)
    check(QuantizeOp, [x, np.array(1, np.float32)])


@pytest.mark.parametrize("kind", [ConvolutionOp, DeconvolutionOp])
@pytest.mark.parametrize("lead", [(2,), (2, 3)])
@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("mode", PaddingMode)
def test_convolution(kind: type[TensorOp], lead: tuple[int, ...], spatial: int, mode: PaddingMode) -> None:
    kernel = [4, 3, 3, 2, 2] if kind is DeconvolutionOp else [6, 2, 3, 2, 2]
    image, weights = [*lead, 4, *[7, 6, 5][:spatial]], kernel[: spatial + 2]
    properties: dict[str, Any] = {
        "stride": [2, 1, 2][:spatial],
        "dilation": [1, 2, 1][:spatial],
        "pre_padding": [1] * spatial,
        "num_groups": 2,
        "padding_mode": mode,
    }
    if kind is DeconvolutionOp:
        properties["output_padding"] = [1] + [0] * (spatial - 1)
    check(kind, [numbers(image), numbers(weights, seed=1), numbers([6], seed=2)], 1e-4, **properties)


@pytest.mark.parametrize("element", ["float16", "int16"])
def test_convolution_of_short_numbers(element: str) -> None:
    arrays = [numbers([1, 2, 5, 5], element), numbers([3, 2, 2, 2], element, 1), numbers([3], element, 2)]
    check(ConvolutionOp, arrays, 1e-2)


@pytest.mark.parametrize("element", ["int8", "uint8"])
def test_products_of_int8(element: str) -> None:
    bias = numbers([3], "int32", 2)
    arrays = [numbers([1, 2, 5, 5], element), numbers([3, 2, 2, 2], "int8", 1), bias]
    check(ConvolutionOp, arrays, pre_padding=[1, 0], post_padding=[1, 2], padding_value=5)
    check(MatrixMultiplyOp, [numbers([4, 7], element), numbers([7, 3], "int8", 1)])
    check(FullyConnectedOp, [numbers([4, 2, 3, 1], element), numbers([3, 6], "int8", 1), bias])


@pytest.mark.parametrize(
    ("left", "right", "lhs_op", "rhs_op"),
    [
        ((2, 3, 4), (2, 4, 5), "none", "none"),
        ((2, 4, 3), (1, 5, 4), "transpose", "transpose"),
        ((4,), (4, 5), "vector", "none"),
        ((3, 4), (4,), "none", "vector"),
        ((4,), (4,), "vector", "vector"),
        ((2, 4), (2, 5, 4), "vector", "transpose"),
    ],
)
def test_matrix_multiply(left: Sequence[int], right: Sequence[int], lhs_op: str, rhs_op: str) -> None:
    operations: dict[str, Any] = {"lhs_op": MatrixOperation(lhs_op), "rhs_op": MatrixOperation(rhs_op)}
    check(MatrixMultiplyOp, [numbers(left), numbers(right, seed=1)], 1e-4, **operations)
    check(MatrixMultiplyOp, [numbers(left, "int32"), numbers(right, "int32", 1)], **operations)


def test_fully_connected() -> None:
    check(FullyConnectedOp, [numbers([2, 3, 4, 4]), numbers([10, 48], seed=1), numbers([10], seed=2)], 1e-4)
    check(FullyConnectedOp, [numbers([2, 5, 3, 4, 4]), numbers([10, 48], seed=1)], 1e-4)


@pytest.mark.parametrize("kind", [PoolingKind.MAX, PoolingKind.AVERAGE])
@pytest.mark.parametrize("mode", PaddingMode)
@pytest.mark.parametrize("excludes", [True, False])
@pytest.mark.parametrize("element", ["float32", "float16", "int8", "uint8", "int32"])
def test_pooling(kind: PoolingKind, mode: PaddingMode, excludes: bool, element: str) -> None:
    window: dict[str, Any] = {"window": [3, 2], "stride": [2, 2], "pre_padding": [1, 0], "post_padding": [1, 1]}
    extra: dict[str, Any] = {"padding_mode": mode, "average_count_excludes_padding": excludes}
    check(PoolingOp, [numbers([2, 3, 7, 6], element)], 2e-3, kind=kind, **window, **extra)


def test_pooling_blend() -> None:
    properties: dict[str, Any] = {"kind": PoolingKind.MAX_AVERAGE_BLEND, "window": [2, 2], "blend_factor": 0.25}
    check(PoolingOp, [numbers([2, 3, 7, 6])], **properties)
    with pytest.raises(UnsupportedError, match="floating-point"):
        check(PoolingOp, [numbers([2, 3, 7, 6], "int32")], **properties)


@pytest.mark.parametrize("window", [3, 4, 5])
def test_lrn(window: int) -> None:
    properties: dict[str, Any] = {"window": window, "alpha": 0.3, "beta": 0.75, "k": 1.0}
    check(LrnOp, [numbers([2, 7, 4, 4])], **properties)
    check(LrnOp, [numbers([7, 4, 4], "float16")], 2e-3, **properties)


@pytest.mark.parametrize("kind", [ReduceKind.MAX, ReduceKind.MIN])
def test_reduce_booleans(kind: ReduceKind) -> None:
    for axes in ([1], [0, 2], []):
        check(ReduceOp, [numbers([3, 4, 5], "bool")], kind=kind, axes=axes, keep_dims=True)


@pytest.mark.parametrize("kind", ReduceKind)
@pytest.mark.parametrize("element", ["float32", "float16", "int8", "uint8", "int32", "uint64"])
def test_reduce(kind: ReduceKind, element: str) -> None:
    for axes in ([1], [0, 2], [], [2, 1, 0]):
        for keep in (True, False):
            check(ReduceOp, [numbers([3, 4, 5], element)], 4e-3, kind=kind, axes=axes, keep_dims=keep)


@pytest.mark.parametrize("log", [True, False])
def test_softmax(log: bool) -> None:
    check(SoftmaxOp, [numbers([3, 4, 5])], axis=1, log=log)
    check(SoftmaxOp, [numbers([3, 4], "float16")], 2e-3, axis=0, log=log)


@pytest.mark.parametrize("kind", CumulativeKind)
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_cumulative(kind: CumulativeKind, exclusive: bool, reverse: bool) -> None:
    for element in ("float32", "int32"):
        check(CumulativeOp, [numbers([3, 4], element)], kind=kind, axis=1, exclusive=exclusive, reverse=reverse)


def test_concatenation() -> None:
    check(ConcatenationOp, [numbers([3, 4]), numbers([3, 2], seed=1), numbers([3, 0])], axis=1)


def dims_of(*lengths: int) -> Attribute:
    return DimsAttr.of(lengths)


@pytest.mark.parametrize(
    "properties",
    [
        {"first_transpose": [2, 0, 1]},
        {"reshape_dims": dims_of(6, -1)},
        {"first_transpose": [2, 0, 1], "reshape_dims": dims_of(0, -1), "second_transpose": [1, 0]},
        {"second_transpose": [1, 0, 2]},
    ],
)
def test_shuffle(properties: dict[str, Any]) -> None:
    check(ShuffleOp, [numbers([2, 3, 4])], **properties)


@pytest.mark.parametrize("mode", SliceMode)
def test_slice(mode: SliceMode) -> None:
    start, stride = ((1, 1), [-1, 3]) if mode is SliceMode.STRICT_BOUNDS else ((1, -2), [-1, 3])
    properties: dict[str, Any] = {"start": dims_of(*start), "size": dims_of(2, 3), "stride": stride, "mode": mode}
    check(SliceOp, [numbers([3, 8])], **properties)


@pytest.mark.parametrize("mode", PadMode)
def test_padding(mode: PadMode) -> None:
    check(PaddingOp, [numbers([3, 8])], pre=[1, -1], post=[0, 3], mode=mode)
    if mode is PadMode.CONSTANT:
        check(PaddingOp, [numbers([3, 8]), np.array(7, np.float32)], pre=[1, -1], post=[0, 3])


@pytest.mark.parametrize("places", [1, [0, 2, 4], [-1, -3], [0, 1, 5], [9, 0], [[0, 1], [2, 3]]])
@pytest.mark.parametrize("known", [True, False])
def test_gather(places: Any, known: bool) -> None:
    def build(net: NetworkBuilder) -> list[SSAValue]:
        array = np.array(places, np.int64)
        indices = net.constant(array) if known else net.input(array)
        return net.layer(GatherOp, [net.input(numbers([2, 8, 3])), indices], axis=1)

    compare(build, PASS)


def test_gather_elements_and_coordinates() -> None:
    data, places = numbers([3, 5]), np.array([[0, 3], [-1, 2]])
    check(GatherOp, [data, places], mode=GatherMode.ELEMENT, axis=1)
    check(GatherOp, [data, places], mode=GatherMode.ND)


@pytest.mark.parametrize("reduction", ScatterReduction)
def test_scatter(reduction: ScatterReduction) -> None:
    data, places = numbers([3, 5]), np.array([[0, 3], [-1, 2]])
    update = numbers([2, 2], seed=1)
    check(ScatterOp, [data, places, update], mode=ScatterMode.ELEMENT, axis=1, reduction=reduction)
    check(ScatterOp, [data, places, update[0]], mode=ScatterMode.ND, reduction=reduction)


@pytest.mark.parametrize("kind", TopkKind)
def test_topk(kind: TopkKind) -> None:
    check(TopkOp, [numbers([3, 5])], results=2, kind=kind, k=2, axis=1)


@pytest.mark.parametrize("kind", ResizeKind)
@pytest.mark.parametrize("coordinate", [one for one in Coordinate if one is not Coordinate.TF_CROP_AND_RESIZE])
def test_resize(kind: ResizeKind, coordinate: Coordinate) -> None:
    scales = DenseArrayBase.from_list(f64, [1.0, 1.0, 2.0, 0.5])
    check(ResizeOp, [numbers([1, 2, 5, 6])], kind=kind, coordinate=coordinate, output_dims=dims_of(1, 2, 9, 4))
    check(ResizeOp, [numbers([1, 2, 5, 6])], kind=kind, coordinate=coordinate, scales=scales)


def test_a_resize_to_the_same_lengths_reads_nothing() -> None:
    """What is in front of it has no reader left, not even one that is in no block."""
    net = NetworkBuilder()
    x = net.input(numbers([1, 2, 5, 6]))
    (y,) = net.layer(ResizeOp, [x], kind=ResizeKind.LINEAR, output_dims=dims_of(1, 2, 5, 6))
    module = net.module([y])
    run_passes(module, net.ctx, PASS)
    (argument,) = entry_function(module).body.block.args
    assert [use.operation.name for use in argument.uses] == ["func.return"]


EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("bij,bkj->bki", [(2, 3, 4), (2, 5, 4)]),
    ("ij->ji", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("...ij,...jk", [(2, 3, 4), (1, 4, 5)]),
    ("bhqd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 3, 5)]),
    ("i,i", [(4,), (4,)]),
    ("i,j->ij", [(4,), (3,)]),
    ("abc,cd,de->ae", [(2, 3, 4), (4, 5), (5, 2)]),
    ("abij,cdij->abcd", [(2, 3, 4, 5), (1, 2, 4, 5)]),
    ("ij,ij->i", [(3, 4), (3, 4)]),
    ("k,ijk->ij", [(4,), (2, 3, 4)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
@pytest.mark.parametrize("element", ["float32", "int32"])
def test_einsum(equation: str, shapes: list[tuple[int, ...]], element: str) -> None:
    check(EinsumOp, [numbers(shape, element, k) for k, shape in enumerate(shapes)], 1e-4, equation=equation)


@pytest.mark.parametrize("element", ["float32", "int64", "int32"])
def test_fill(element: str) -> None:
    alpha, beta = numbers([], element), numbers([2], element, 1)
    check(FillOp, [None, alpha, beta], kind=FillKind.LINSPACE, output_dims=dims_of(3, 4))


@pytest.mark.parametrize("kind", RandomKind)
@pytest.mark.parametrize("element", ["float32", "float16", "float64"])
def test_random_numbers(kind: RandomKind, element: str) -> None:
    """Bit by bit where no logarithm is taken."""
    scales = [np.array(number, element) for number in (0.5, 2)]
    tolerance = 0 if kind is RandomKind.UNIFORM else 1e-6 if element != "float16" else 1e-3
    for run in (0, 1, 2**32 - 1, -5):
        check(RandomOp, [np.array(run), None, *scales], tolerance, kind=kind, seed=7, output_dims=dims_of(3, 5, 2))


def test_one_hot() -> None:
    def build(net: NetworkBuilder) -> list[SSAValue]:
        indices = net.input(np.array([[0, 1, 2, 3], [4, 5, -1, -5], [-6, 0, 0, 1]]))
        values, depth = net.input(np.array([1, 7], np.float32)), net.constant(np.array(5))
        return net.layer(OneHotOp, [indices, values, depth], axis=1)

    compare(build, PASS)


def test_shape() -> None:
    check(ShapeOp, [numbers([3, 8])])


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", list(SampleMode))
@pytest.mark.parametrize("kind", list(ResizeKind))
def test_grid_sample(kind: ResizeKind, mode: SampleMode, align_corners: bool) -> None:
    def build(net: NetworkBuilder) -> list[SSAValue]:
        grid = np.linspace(-1.7, 1.6, 2 * 3 * 4 * 2).reshape(2, 3, 4, 2).astype(np.float32)
        operands = [net.input(numbers([2, 3, 5, 1])), net.input(grid)]
        return net.layer(GridSampleOp, operands, kind=kind, mode=mode, align_corners=align_corners)

    compare(build, PASS, 1e-4, 1e-4)  # positions are float32, in the reference float64


def test_a_line_and_a_volume_are_sampled() -> None:
    check(GridSampleOp, [numbers([1, 2, 7]), numbers([1, 4, 1])], kind=ResizeKind.LINEAR)
    check(GridSampleOp, [numbers([1, 2, 3, 4, 2]), numbers([1, 2, 2, 2, 3])], kind=ResizeKind.LINEAR)


def test_what_cannot_be_converted_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"layer trt.non_zero_0: trt.non_zero cannot be compiled"):
        check(NonZeroOp, [numbers([3, 8])])
