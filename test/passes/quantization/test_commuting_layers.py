"""tensorrt-features.md#10.7, 10.8: layers that move or compare give the same integers in front of and behind a
rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from converted_layer import NetworkBuilder, compare
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.indexing import GatherMode, ScatterMode
from mlirt.dialects.slicing import PadMode
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.pooling import PoolingKind, PoolingOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.resize import ResizeKind, ResizeOp
from mlirt.dialects.trt.scatter import ScatterOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceMode, SliceOp

Layer = Callable[[NetworkBuilder, SSAValue, SSAValue], SSAValue]


def _of_one(op_class: Any, **properties: Any) -> Layer:
    return lambda net, x, _: net.layer(op_class, [x], **properties)[0]


def _of_two(op_class: Any, **properties: Any) -> Layer:
    return lambda net, x, y: net.layer(op_class, [x, y], **properties)[0]


def _slice(mode: SliceMode) -> Layer:
    start, size = DimsAttr.of([0, 0, -1, 1]), DimsAttr.of([1, 2, 5, 4])
    return _of_one(SliceOp, start=start, size=size, stride=[1, 1, 1, 1], mode=mode)


def _gather(net: NetworkBuilder, x: SSAValue, _: SSAValue) -> SSAValue:
    return net.layer(GatherOp, [x, net.constant(np.array([1, 0, 1]))], mode=GatherMode.DEFAULT, axis=2)[0]


def _select(net: NetworkBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    return net.layer(SelectOp, [net.constant(np.array([True, False]).reshape(1, 2, 1, 1)), x, y])[0]


def _scatter(net: NetworkBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    places = net.constant(np.random.default_rng(1).integers(0, 2, (1, 2, 4, 4)))
    return net.layer(ScatterOp, [x, places, y], mode=ScatterMode.ELEMENT, axis=1)[0]


def _padding(mode: PadMode) -> Layer:
    return _of_one(PaddingOp, pre=[0, 0, 1, 0], post=[0, 0, 2, 1], mode=mode)


LAYERS: dict[str, Layer] = {
    "max pooling": _of_one(
        PoolingOp, kind=PoolingKind.MAX, window=[3, 2], stride=[2, 1], pre_padding=[1, 0], post_padding=[1, 1]
    ),
    "transposition": _of_one(ShuffleOp, first_transpose=[0, 2, 3, 1]),
    "reshape": _of_one(ShuffleOp, reshape_dims=DimsAttr.of([2, 16])),
    "concatenation": lambda net, x, y: net.layer(ConcatenationOp, [x, y], axis=1)[0],
    "gather": _gather,
    "select": _select,
    "scatter": _scatter,
    "nearest resize": _of_one(ResizeOp, kind=ResizeKind.NEAREST, output_dims=DimsAttr.of([1, 2, 7, 3])),
    "greatest along axes": _of_one(ReduceOp, kind=ReduceKind.MAX, axes=[2, 3], keep_dims=False),
    "least along an axis": _of_one(ReduceOp, kind=ReduceKind.MIN, axes=[1]),
    "greater of two": _of_two(ElementwiseOp, kind=ElementwiseKind.MAX),
    "less of two": _of_two(ElementwiseOp, kind=ElementwiseKind.MIN),
    **{f"padding {mode}": _padding(mode) for mode in PadMode},
    **{f"slice {mode}": _slice(mode) for mode in SliceMode if mode is not SliceMode.STRICT_BOUNDS},
}
SHAPE = (1, 2, 4, 4)


def before_return(module: ModuleOp) -> Operation:
    """The layer that makes the output."""
    owner = next(op for op in module.walk() if isinstance(op, ReturnOp)).operands[0].owner
    assert isinstance(owner, Operation)
    return owner


scales = st.floats(2.0**-20, 2.0**20, width=32).map(np.float32)
zeros = st.integers(-128, 127).map(np.int8) | st.integers(0, 255).map(np.uint8)
# Numbers at and around the borders between two integers tell roundings apart.
borders = st.lists(st.integers(-600, 600), min_size=8, max_size=8)
shifts = st.lists(st.sampled_from([0.0, 1e-7, -1e-7, 0.1]), min_size=3, max_size=3)


@pytest.mark.parametrize("name", LAYERS)
@settings(max_examples=20)
@given(scale=scales, zero=zeros, steps=borders, shifts=shifts)
def test_quantised_in_front_10_8(
    name: str, scale: np.float32, zero: np.int8 | np.uint8, steps: list[int], shifts: list[float]
) -> None:
    numbers = np.array([step / 2 * scale * (1 + shift) for step in steps for shift in shifts], np.float32)

    def build(net: NetworkBuilder) -> list[SSAValue]:
        x, y = (net.input(np.resize(array, SHAPE)) for array in (numbers, numbers[::-1]))
        pair = [net.constant(np.asarray(number)) for number in (scale, zero)]
        return net.layer(QuantizeOp, [LAYERS[name](net, x, y), *pair])

    module = compare(build, "propagate-quantization,verify-scales", rtol=0, atol=0)
    assert not isinstance(before_return(module), QuantizeOp)


@pytest.mark.parametrize("name", LAYERS)
@settings(max_examples=20)
@given(scale=scales, zero=zeros, seed=st.integers(0, 2**16))
def test_dequantised_behind_10_7(name: str, scale: np.float32, zero: np.int8 | np.uint8, seed: int) -> None:
    limits = np.iinfo(zero.dtype)

    def build(net: NetworkBuilder) -> list[SSAValue]:
        rng = np.random.default_rng(seed)
        pair = [net.constant(np.asarray(number)) for number in (scale, zero)]
        x, y = (net.input(rng.integers(limits.min, limits.max, SHAPE, zero.dtype, endpoint=True)) for _ in range(2))
        return [LAYERS[name](net, *(net.layer(DequantizeOp, [value, *pair])[0] for value in (x, y)))]

    module = compare(build, "propagate-quantization,verify-scales", rtol=0, atol=0)
    assert isinstance(before_return(module), DequantizeOp)
