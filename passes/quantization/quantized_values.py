"""Bytes with one scale and one zero point: what dequantised tensors are made of, and quantised ones with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.tensor_types import byte_width, element_of
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Coefficients:
    """A scale and a zero point, both in single precision, in which every zero point of a byte is exact."""

    scale: np.float32
    zero: np.float32


def coefficients_of(op: DequantizeOp | QuantizeOp, ctx: Context) -> Coefficients | None:
    """The constants of an op between float32 numbers and bytes that has one for all elements; None for other ops."""
    import numpy as np

    integers = op.input if isinstance(op, DequantizeOp) else op.output
    scale = array_of(op.scale, ctx)
    zero = np.zeros((), np.int8) if op.zero_point is None else array_of(op.zero_point, ctx)
    is_byte = byte_width(element_of(integers.type)) == 1
    if not is_byte or scale is None or zero is None or element_of(op.scale.type) != f32:
        return None
    if element_of(op.input.type if isinstance(op, QuantizeOp) else op.output.type) != f32:
        return None
    if scale.size != 1 or zero.size != 1:
        return None
    return Coefficients(np.float32(scale.reshape(())), np.float32(zero.reshape(())))


@dataclass(frozen=True)
class Bytes:
    """The bytes that a float32 tensor stands for, once they have been moved as `moves` say, the first one first."""

    value: SSAValue
    moves: tuple[ShuffleOp, ...]
    coefficients: Coefficients

    @property
    def element(self) -> Attribute:
        return element_of(self.value.type)


def dequantized_from(value: SSAValue, ctx: Context) -> Bytes | None:
    """The bytes that a float32 tensor stands for; None where it is computed otherwise."""
    moves: list[ShuffleOp] = []
    op = value.owner
    while isinstance(op, ShuffleOp) and op.shape is None:
        moves.insert(0, op)
        op = op.input.owner
    if not isinstance(op, DequantizeOp):
        return None
    found = coefficients_of(op, ctx)
    return None if found is None else Bytes(op.input, tuple(moves), found)
