"""Products of int8 give the same sums once the bytes are unsigned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from converted_layer import NetworkBuilder, compare
from xdsl.dialects.builtin import i8
from xdsl.ir import SSAValue

from mlirt.dialects.slicing import PadMode
from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.padding import PaddingOp

Build = Sequence[SSAValue]


def integers(*shape: int, seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    return np.random.default_rng(seed).integers(-128, 128, shape, np.int8)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("right", ["none", "transpose", "vector"])
@pytest.mark.parametrize("left", ["none", "transpose", "vector"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_products(constant: bool, right: str, left: str, batch: tuple[int, ...]) -> None:
    shapes = {"none": ((3, 4), (4, 5)), "transpose": ((4, 3), (5, 4)), "vector": ((4,), (4,))}

    def build(net: NetworkBuilder) -> Build:
        lhs = net.input(integers(*batch, *shapes[left][0]))
        array = integers(*batch, *shapes[right][1], seed=1)
        rhs = net.constant(array) if constant else net.input(array)
        return net.layer(MatrixMultiplyOp, [lhs, rhs], lhs_op=MatrixOperation(left), rhs_op=MatrixOperation(right))

    module = compare(build, "use-unsigned-activations,dce", rtol=0, atol=0)
    signed = [op for op in module.walk() if isinstance(op, MatrixMultiplyOp) and element_of(op.lhs.type) == i8]
    assert bool(signed) == (not constant and "vector" in (left, right))


@pytest.mark.parametrize("bias", ["none", "constant", "input"])
def test_joined_and_padded_bytes(bias: str) -> None:
    def build(net: NetworkBuilder) -> Build:
        x, constant = net.input(integers(1, 2, 5, 5)), net.constant(integers(1, 1, 5, 5, seed=1))
        (joined,) = net.layer(ConcatenationOp, [x, constant], axis=1)
        (padded,) = net.layer(PaddingOp, [joined], pre=[0, 0, 1, 0], post=[0, 0, 0, 2], mode=PadMode.CONSTANT)
        array = np.arange(4, dtype=np.int32)
        added = {"none": [], "constant": [net.constant(array)], "input": [net.input(array)]}[bias]
        kernel = net.constant(integers(4, 3, 3, 3, seed=2))
        operands = [padded, kernel, *added]
        (y,) = net.layer(ConvolutionOp, operands, pre_padding=[1, 1], post_padding=[0, 1], padding_value=-5)
        return [y, joined]

    compare(build, "use-unsigned-activations,dce", rtol=0, atol=0)


def test_fully_connected() -> None:
    def build(net: NetworkBuilder) -> Build:
        operands = [net.input(integers(2, 3, 2, 2)), net.constant(integers(4, 12, seed=1))]
        return net.layer(FullyConnectedOp, [*operands, net.constant(np.arange(4, dtype=np.int32))])

    compare(build, "use-unsigned-activations,dce", rtol=0, atol=0)
