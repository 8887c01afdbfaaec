"""Generic kernels with windows: pooling, convolution and deconvolution, also on blocked tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from fused_network import Network, access, check, dim, random_array, summing, t
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.tensor_types import element_type, tensor

F32 = element_type("float32")
RNG = np.random.default_rng(0)
# (pads before, pads after, output lengths) of a 3 x 2 window with strides 2 and dilations 1 and 2 over h x 6.
PADDED = [
    ((0, 0), (0, 0), ("(h - 3)//2 + 1", 2)),
    ((1, 2), (1, 1), ("(h - 1)//2 + 1", 3)),
    ((1, 1), (0, 0), ("(h + 1)//2", 3)),
    ((1, 0), (1, 3), (4, 5)),
]


@pytest.mark.parametrize(
    ("kind", "element", "padded", "includes"),
    list(product(WindowKind, ["float32", "int32", "uint8"], PADDED, [False, True])),
)
def test_windows(
    kind: WindowKind,
    element: str,
    padded: tuple[tuple[int, int], tuple[int, int], tuple[int | str, int]],
    includes: bool,
) -> None:
    pre, post, lengths = padded

    def build(network: Network) -> list[SSAValue]:
        op = WindowOp(
            kind,
            network.inputs[0],
            t(element, "n", 2, *lengths),
            identity_region(element_type(element)),
            window=(3, 2),
            stride=(2, 2),
            dilation=(1, 2),
            pre_padding=pre,
            post_padding=post,
            count_include_padding=includes,
        )
        return [network.add(op)]

    check([t(element, "n", 2, "h", 6)], build, [random_array(RNG, element, (2, 2, 7, 6))])


def test_window_over_channels_with_an_epilogue() -> None:
    def build(network: Network) -> list[SSAValue]:
        x, scale = network.inputs
        op = WindowOp(
            WindowKind.ADD,
            x,
            t("float32", "n", 7, "h", 6),
            summing(2),
            window=(3,),
            stride=(1,),
            dilation=(1,),
            pre_padding=(1,),
            post_padding=(1,),
            axis=1,
            extras=[scale],
            access=[access("d1")],
        )
        return [network.add(op)]

    arrays = [random_array(RNG, "float32", (2, 7, 3, 6)), random_array(RNG, "float32", (7,))]
    check([t("float32", "n", 7, "h", 6), t("float32", 7)], build, arrays)


def test_pads_that_depend_on_the_shape() -> None:
    def build(network: Network) -> list[SSAValue]:
        op = WindowOp(
            WindowKind.MAX,
            network.inputs[0],
            t("float32", "n", "(h + 1)//2"),
            identity_region(F32),
            window=(3,),
            stride=(2,),
            dilation=(1,),
            pre_padding=(dim("h % 2"),),
            post_padding=(1,),
            axis=1,
        )
        return [network.add(op)]

    for length in (7, 8):
        check([t("float32", "n", "h")], build, [random_array(RNG, "float32", (2, length))])


Spatial = Sequence[tuple[int, int, int, int]]


def _convolve(
    x: list[int], kernel: list[int], lengths: list[int], spatial: Spatial, groups: int, transposed: bool
) -> None:
    """Check a convolution with a bias; batch and the first spatial lengths are symbolic."""
    outputs = kernel[1] * groups if transposed else kernel[0]
    stride, dilation, pre, post = zip(*spatial, strict=True)

    def build(network: Network) -> list[SSAValue]:
        data, weights, bias = network.inputs
        op = ConvolutionOp(
            data,
            weights,
            t("float32", "n", outputs, *lengths),
            summing(2),
            stride=stride,
            dilation=dilation,
            pre_padding=pre,
            post_padding=post,
            groups=groups,
            transposed=transposed,
            extras=[bias],
            access=[access("d1")],
        )
        return [network.add(op)]

    arrays = [random_array(RNG, "float32", shape) for shape in (x, kernel, [outputs])]
    types = [t("float32", "n", *x[1:]), t("float32", *kernel), t("float32", outputs)]
    check(types, build, arrays, rtol=1e-4, atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_convolutions(data: st.DataObject) -> None:
    rank, groups = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))
    transposed = data.draw(st.booleans())
    lengths = [data.draw(st.integers(3, 6)) for _ in range(rank)]
    window = [data.draw(st.integers(1, 3)) for _ in range(rank)]
    spatial = [
        (
            data.draw(st.integers(1, 3)),
            data.draw(st.integers(1, 2)),
            data.draw(st.integers(-3 if transposed else 0, 1)),
            data.draw(st.integers(-2 if transposed else 0, 2)),
        )
        for _ in range(rank)
    ]
    outputs: list[int] = []
    for length, size, (stride, dilation, pre, post) in zip(lengths, window, spatial, strict=True):
        reach = dilation * (size - 1) + 1
        usual = (length + pre + post - reach) // stride + 1
        outputs.append((length - 1) * stride + reach - pre - post if transposed else usual)
    if min(outputs) < 1:
        return
    channels, per_group = 2 * groups, data.draw(st.integers(1, 3))
    kernel = [channels, per_group, *window] if transposed else [per_group * groups, 2, *window]
    _convolve([2, channels, *lengths], kernel, outputs, spatial, groups, transposed)


def test_symbolic_spatial_lengths() -> None:
    def build(network: Network) -> list[SSAValue]:
        op = ConvolutionOp(
            *network.pair,
            t("int32", "n", 6, "(h - 2)//2 + 1", "w"),
            identity_region(element_type("int32")),
            stride=(2, 1),
            dilation=(1, 1),
            pre_padding=(1, 1),
            post_padding=(0, 1),
        )
        return [network.add(op)]

    arrays = [random_array(RNG, "int8", (2, 4, 6, 7)), random_array(RNG, "int8", (6, 4, 3, 3))]
    check([t("int8", "n", 4, "h", "w"), t("int8", 6, 4, 3, 3)], build, arrays)


def any_int8(element: str, shape: Sequence[int]) -> np.ndarray:
    """Bytes from the whole range of a type."""
    limits = np.iinfo(element)
    return RNG.integers(limits.min, limits.max, shape, np.dtype(element), endpoint=True)


@pytest.mark.parametrize(("element", "padding"), [("uint8", 128), ("uint8", 3), ("int8", -7), ("uint8", 0)])
@pytest.mark.parametrize(("groups", "height"), [(1, 6), (2, "h")])
def test_bytes_with_a_zero_point_around_them(element: str, padding: int, groups: int, height: int | str) -> None:
    """Sums of int8 are exact, and cells beyond the border take part with the padding value."""

    def build(network: Network) -> list[SSAValue]:
        op = ConvolutionOp(
            *network.pair,
            t("int32", "n", 6, *lengths),
            identity_region(element_type("int32")),
            stride=(2, 1),
            dilation=(1, 2),
            pre_padding=(1, 2),
            post_padding=(0, 1),
            groups=groups,
            padding_value=padding,
        )
        return [network.add(op)]

    lengths = ("(h - 2)//2 + 1" if height == "h" else 3, 6)
    arrays = [any_int8(element, (2, 4, 6, 7)), any_int8("int8", (6, 4 // groups, 3, 3))]
    check([t(element, "n", 4, height, 7), t("int8", 6, 4 // groups, 3, 3)], build, arrays)


@pytest.mark.parametrize("left", ["uint8", "int8"])
def test_products_of_int8(left: str) -> None:
    def build(network: Network) -> list[SSAValue]:
        result = t("int32", "n", 5, 7)
        op = MatmulOp(*network.pair, result, identity_region(element_type("int32")), transpose_rhs=True)
        return [network.add(op)]

    arrays = [any_int8(left, (2, 5, 300)), any_int8("int8", (1, 7, 300))]
    check([t(left, "n", 5, 300), t("int8", 1, 7, 300)], build, arrays)


def test_blocked_tensors_with_halos() -> None:
    """Plain to blocked, a convolution between blocked tensors, a pooling, and back."""
    indices = access("d0", "d1", "d2", "d3", "d4")

    def build(network: Network) -> list[SSAValue]:
        x, kernel = network.inputs
        blocked = tensor(F32, [dim("n"), 2, 6, 5, 4], channels=8, halo=(1, 1))
        wide = tensor(F32, [dim("n"), 3, 6, 5, 4], channels=12, halo=(2, 1))
        small = tensor(F32, [dim("n"), 3, 3, 3, 4], channels=12, halo=(1, 1))
        value = network.add(PointwiseOp([x], [access("d0", "4*d1 + d4", "d2", "d3")], [blocked], identity_region(F32)))
        value = network.add(
            ConvolutionOp(
                value,
                kernel,
                wide,
                identity_region(F32),
                stride=(1, 1),
                dilation=(1, 1),
                pre_padding=(1, 1),
                post_padding=(1, 1),
            )
        )
        value = network.add(
            WindowOp(
                WindowKind.MAX,
                value,
                small,
                identity_region(F32),
                window=(2, 2),
                stride=(2, 2),
                dilation=(1, 1),
                pre_padding=(0, 0),
                post_padding=(0, 1),
            )
        )
        return [network.add(PointwiseOp([value], [indices], [t("float32", "n", 3, 3, 3, 4)], identity_region(F32)))]

    arrays = [random_array(RNG, "float32", (2, 8, 6, 5)), random_array(RNG, "float32", (12, 8, 3, 3))]
    check([t("float32", "n", 8, 6, 5), t("float32", 12, 8, 3, 3)], build, arrays, rtol=1e-4, atol=1e-4)
