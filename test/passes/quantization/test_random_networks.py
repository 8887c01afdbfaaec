"""Random quantised networks compute the same once their layers work on integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from converted_layer import NetworkBuilder, compare
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.pooling import PoolingKind, PoolingOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.passes.phases import find_phase, specs_of

SIZE = 4
# Scales are powers of two, so that float32 and integers compute the same sums and no rounding is near a tie of another.
SCALES = (0.25, 0.5, 1.0)


class Growth:
    """A network of layers of 1 x 4 x 4 x 4 that grows by one layer at a time."""

    def __init__(self, net: NetworkBuilder, draw: st.DataObject) -> None:
        self.net, self.draw = net, draw
        rng = np.random.default_rng(draw.draw(st.integers(0, 2**16)))
        shape = (1, SIZE, SIZE, SIZE)
        self.rng = rng
        self.values = [net.input(rng.integers(-30, 30, shape).astype(np.float32) / 4) for _ in range(2)]

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.draw.draw(st.integers(0, len(options) - 1))]

    def value(self) -> SSAValue:
        return self.pick(self.values)

    def pair(self, value: SSAValue) -> SSAValue:
        """Rounded to a scale, with a zero point."""
        dtype = self.pick([np.int8, np.uint8])
        zero = self.pick([0, 3, 127]) if dtype is np.uint8 else self.pick([0, -5])
        scale, point = (
            self.net.constant(np.array(self.pick(SCALES), np.float32)),
            self.net.constant(np.array(zero, dtype)),
        )
        (rounded,) = self.net.layer(QuantizeOp, [value, scale, point])
        return self.net.layer(DequantizeOp, [rounded, scale, point])[0]

    def weights(self, *shape: int) -> SSAValue:
        stored = self.net.constant(self.rng.integers(-3, 4, shape, np.int8))
        return self.net.layer(DequantizeOp, [stored, self.net.constant(np.array(0.25, np.float32))])[0]

    def grow(self) -> None:
        x, net = self.value(), self.net
        made = {
            "pair": lambda: self.pair(x),
            "convolution": lambda: net.layer(
                ConvolutionOp, [x, self.weights(SIZE, SIZE, 3, 3)], pre_padding=[1, 1], post_padding=[1, 1]
            )[0],
            "product": lambda: net.layer(MatrixMultiplyOp, [x, self.weights(1, 1, SIZE, SIZE)])[0],
            "relu": lambda: net.layer(ActivationOp, [x], kind=ActivationKind.RELU)[0],
            "clip": lambda: net.layer(ActivationOp, [x], kind=ActivationKind.CLIP, alpha=0.0, beta=6.0)[0],
            "pooling": lambda: net.layer(
                PoolingOp, [x], kind=PoolingKind.MAX, window=[3, 3], pre_padding=[1, 1], post_padding=[1, 1]
            )[0],
            "transposition": lambda: net.layer(ShuffleOp, [x], first_transpose=[0, 2, 3, 1])[0],
            "sum": lambda: net.layer(ElementwiseOp, [x, self.value()], kind=ElementwiseKind.SUM)[0],
            "greater": lambda: net.layer(ElementwiseOp, [x, self.value()], kind=ElementwiseKind.MAX)[0],
            "halves": lambda: self._halves(x, self.value()),
        }
        self.values.append(made[self.pick(sorted(made))]())

    def _halves(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Half of the channels of one tensor, and half of another."""
        size = DimsAttr.of([1, SIZE // 2, SIZE, SIZE])
        parts = [
            self.net.layer(SliceOp, [v], start=DimsAttr.of([0, k, 0, 0]), size=size, stride=[1] * 4)[0]
            for v, k in ((x, 0), (y, 2))
        ]
        return self.net.layer(ConcatenationOp, parts, axis=1)[0]


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@settings(max_examples=15)
@given(draw=st.data())
def test_the_phase_keeps_results(target: str, draw: st.DataObject) -> None:
    def build(net: NetworkBuilder) -> list[SSAValue]:
        growth = Growth(net, draw)
        for _ in range(draw.draw(st.integers(3, 12))):
            growth.grow()
        return [growth.pair(growth.values[-1]), growth.value()]

    specs = [one for one in specs_of(find_phase("quantization"), target) if not one.startswith("verify")]
    compare(build, ",".join(specs), rtol=0, atol=0)
