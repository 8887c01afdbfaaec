"""Positions that come from a tensor of indices: negative ones count from the end, others may be out of range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.arith import IndexCastOp
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import SSAValue

from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder, Stride
from mlirt.kernels.lib.builder.placement import Placement
from mlirt.kernels.lib.loops.loop_nest import Affine, NestCode


@dataclass(frozen=True)
class Coordinate:
    """An operand of a nest that holds positions along a dimension of another tensor, with its length and stride."""

    operand: int
    length: SSAValue
    step: Stride


def resolve(
    k: KernelBuilder, code: NestCode, coordinates: Sequence[Coordinate], loops: Sequence[SSAValue]
) -> tuple[list[tuple[SSAValue, Stride]], SSAValue | None]:
    """(index, stride) of each coordinate at a place of the nest, and whether all are in range."""
    places: list[tuple[SSAValue, Stride]] = []
    valid: SSAValue | None = None
    for one in coordinates:
        index = _as_index(k, code.load(one.operand, loops))
        wrapped = k.select(k.compare("slt", index, 0), k.add(index, one.length), index)
        places.append((wrapped, one.step))
        valid = k.both(valid, k.compare("ult", wrapped, one.length))
    return places, valid


def _as_index(k: KernelBuilder, number: SSAValue) -> SSAValue:
    return k.value(IndexCastOp(k.scalars(i64).cast(k.ready(number), number.type), IndexType()))


def coordinate_operands(indices: SSAValue, place: Placement, steps: Sequence[Dim], depth: int | None) -> list[Affine]:
    """The indices as operands of a nest, one per coordinate; `depth` coordinates lie in the last dimension, or None:
    one.

    `steps` are the indices' strides over the dimensions of the nest, without that last dimension.
    """
    if depth is None:
        return [Affine(indices, tuple(steps))]
    return [Affine(indices, tuple(steps), place.strides[-1] * position) for position in range(depth)]
