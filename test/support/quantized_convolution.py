"""One int8 convolution as a network of fused ops, with the epilogues that quantised networks have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from fused_network import Array, Network, access, context, network_of, t
from window_case import WindowCase
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Attribute, Region, SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.fused_op import identity_region, scalar_region
from mlirt.dialects.fused.scalar_builder import Scalars, arguments_of, yield_as
from mlirt.dialects.tensor_types import element_type
from mlirt.dialects.trt.constant import ConstantOp

UI8, I32 = element_type("uint8"), element_type("int32")


@dataclass(frozen=True)
class Case(WindowCase):
    """A convolution of uint8. `output` is `int32`: the accumulators; `float32`: scaled; `uint8`: quantised
    again.
    """

    zero_point: int = 128
    output: str = "uint8"


def requantization(extras: Sequence[Attribute], output: str) -> Region:
    """`(sum + bias) * scale`, plus 0.05 (residual - 7) where there is one, nothing below zero, rounded and clamped."""
    region = scalar_region([])
    block = region.block
    total, bias, scale, *residual = arguments_of(block, [I32, *extras])
    number = Scalars(block, f32)
    value = number.mul(number.cast(block_add(block, total, bias), I32), scale)
    if residual:
        distance = number.sub(number.cast(residual[0], extras[2]), _number(number, 7))
        value = number.max(number.add(value, number.mul(distance, _number(number, 0.05))), _number(number, 0))
    if output == "uint8":
        rounded = number.add(number.function(math.RoundEvenOp, value), _number(number, 3))
        value = number.min(number.max(rounded, _number(number, 0)), _number(number, 255))
    yield_as(number, value, element_type(output))
    return region


def block_add(block: object, left: SSAValue, right: SSAValue) -> SSAValue:
    return Scalars(block, I32).add(left, right)  # pyright: ignore[reportArgumentType]


def _number(scalars: Scalars, value: float) -> SSAValue:
    return scalars.add_op(arith.ConstantOp(FloatAttr(value, f32)))


class Layer:
    """The module of a case, and inputs for it."""

    def __init__(self, case: Case) -> None:
        self.case, self.ctx = case, context()
        self.rng = np.random.default_rng(sum(map(ord, repr(case))))
        spatial: list[int | str] = ["h", "w"] if case.is_symbolic else [case.height, case.width]
        batch: int | str = "n" if case.is_symbolic else case.batch
        self.result = t(case.output, batch, case.outputs, *map(str, case.lengths_in_type()))
        types = [t("uint8", batch, case.channels, *spatial)]
        shapes = [(case.batch, case.channels, case.height, case.width)]
        if case.has_residual:
            types.append(t("uint8", batch, case.outputs, *map(str, case.lengths_in_type())))
            shapes.append((case.batch, case.outputs, *case.lengths()))
        self.module = network_of(types, self._build)
        arrays = [self.rng.integers(0, 256, shape).astype(np.uint8) for shape in shapes]
        self.inputs = {f"input{position}": array for position, array in enumerate(arrays)}

    def _constant(self, network: Network, array: Array, hint: str) -> SSAValue:
        return network.add(ConstantOp.from_array(array, self.ctx.weights, hint))

    def _build(self, network: Network) -> Sequence[SSAValue]:
        case, rng = self.case, self.rng
        x, *residual = network.inputs
        shape = (case.outputs, case.channels // case.groups, *case.kernel)
        weights = self._constant(network, rng.integers(-128, 128, shape).astype(np.int8), "weights")
        extras: list[SSAValue] = []
        if case.output != "int32":
            spread = 60 / (60 * 70 * np.prod(shape[1:]) ** 0.5)
            bias = rng.integers(-5000, 5000, case.outputs).astype(np.int32)
            scale = (spread * rng.uniform(0.5, 1.5, case.outputs)).astype(np.float32)
            extras = [self._constant(network, bias, "bias"), self._constant(network, scale, "scale"), *residual]
        elements = [element_type(name) for name in ("int32", "float32", "uint8")][: len(extras)]
        epilogue = requantization(elements, case.output) if extras else identity_region(I32)
        accesses = [access("d1"), access("d1"), access("d0", "d1", "d2", "d3")]
        op = ConvolutionOp(
            x,
            weights,
            self.result,
            epilogue,
            stride=case.stride,
            dilation=case.dilation,
            pre_padding=case.pre,
            post_padding=case.post,
            groups=case.groups,
            padding_value=case.zero_point,
            extras=extras,
            access=accesses[: len(extras)],
        )
        return [network.add(op)]
