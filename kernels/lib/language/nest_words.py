"""Words of the kernel language for loop nests: an operand of a nest is memory that the nest's indices reach."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, rank
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder, Stride
from mlirt.kernels.lib.builder.placement import Placement
from mlirt.kernels.lib.language.context import builder
from mlirt.kernels.lib.language.functions import kernel
from mlirt.kernels.lib.language.operators import as_type
from mlirt.kernels.lib.language.values import Value, value_of
from mlirt.kernels.lib.language.words import constant, extent, is_inside, place, stride
from mlirt.kernels.lib.loops.block_lanes import surplus
from mlirt.kernels.lib.loops.loop_nest import Affine, NestCode

Places = Sequence[tuple[SSAValue, Stride]]
"""Indices that are no loops of a nest, each with its stride."""


@dataclass(frozen=True, eq=False)
class NestOperand:
    """Operand number `operand` of a nest, whose elements are converted to and from the type `wide` of the kernel.

    `[i, j, ..]` has an index for each loop of the nest; loops beyond the given ones do not move it.
    """

    code: NestCode
    operand: int
    wide: Attribute
    more: Places = ()

    def moved(self, more: Places) -> NestOperand:
        """The same operand, moved on by pairs of index and stride."""
        return replace(self, more=more)

    def __getitem__(self, indices: Sequence[SSAValue | int]) -> Value:
        at = [builder().index(index) for index in indices]
        return value_of(self.code.read(self.operand, self.wide, at, self.more))

    def __setitem__(self, indices: Sequence[SSAValue | int], value: SSAValue | float) -> None:
        (stored,) = as_type(self.wide, value)
        at = [builder().index(index) for index in indices]
        self.code.write(stored, self.wide, self.operand, at, self.more)

    def narrowed(self, number: SSAValue) -> Value:
        """A number of the type `wide` as an element of the operand."""
        k, element = builder(), element_of(self.code.nest.operands[self.operand].value.type)
        return value_of(k.typed(k.scalars(element).cast(number, self.wide), element))


@kernel
def linear_index(one: Affine, at: Sequence[Value]) -> Value:
    """How many elements from its pointer on the element of an operand lies; its `offset` is left out."""
    return place(sum([here * stride(step) for here, step in zip(at, one.steps, strict=True) if step != 0]))


def original_indices(
    code: NestCode, needed: Container[int], at: Sequence[SSAValue], axes: int, other: SSAValue | None = None
) -> list[Value]:
    """The index along each dimension of the original space at a place of a nest; any one for dimensions that are not
    `needed`.
    """
    return [code.original(axis, at) if axis in needed else value_of(other or at[0]) for axis in range(axes)]


@kernel
def lane_exists(of: Attribute, index: Callable[[int], SSAValue]) -> bool:
    """Whether the element at an index along each dimension is that of a channel: the last block of a blocked tensor may
    have lanes beyond the last channel, which are kept zero.
    """
    count = surplus(of)
    if count is None:
        return True
    return value_of(index(1)) * extent(dims(of)[-1]) + value_of(index(rank(of) - 1)) < extent(count)


@kernel
def masked(value: Value, of: Attribute, index: Callable[[int], SSAValue]) -> Value:
    """An element that is stored at an index along each dimension, or zero in a lane beyond the last channel."""
    return value if lane_exists(of, index) else constant(0, value.type)


# Positions that a tensor of indices holds.


@dataclass(frozen=True)
class Coordinate:
    """An operand of a nest that holds positions along a dimension of another tensor, with its length and stride."""

    operand: int
    length: Value
    step: Stride


def coordinate_operands(indices: SSAValue, place: Placement, steps: Sequence[Dim], depth: int | None) -> list[Affine]:
    """The indices as operands of a nest, one per coordinate; `depth` coordinates lie in the last dimension, or None:
    one.

    `steps` are the indices' strides over the dimensions of the nest, without that last dimension.
    """
    if depth is None:
        return [Affine(indices, tuple(steps))]
    return [Affine(indices, tuple(steps), place.strides[-1] * position) for position in range(depth)]


def coordinates_of(
    k: KernelBuilder, lengths: Sequence[Dim], steps: Sequence[Stride], axes: Sequence[int]
) -> list[Coordinate]:
    """The first operands of a nest as positions along these axes of a tensor of such lengths and strides."""
    return [Coordinate(number, value_of(k.size(lengths[axis])), steps[axis]) for number, axis in enumerate(axes)]


@kernel
def resolve(code: NestCode, coordinates: Sequence[Coordinate], at: Sequence[Value]) -> tuple[Places, bool]:
    """(index, stride) of each coordinate at a place of the nest, and whether all are in range; negative ones count from
    the end.
    """
    places, valid = list[tuple[SSAValue, Stride]](), True
    for one in coordinates:
        index, is_there = position(code.load(one.operand, at), one.length)
        places = [*places, (index, one.step)]
        valid = valid and is_there
    return places, valid


@kernel
def position(number: SSAValue, length: Value) -> tuple[Value, bool]:
    """A position along a dimension that a tensor holds, negative ones from the end, and whether there is one."""
    index = _as_index(number)
    wrapped = index + length if index < 0 else index
    return wrapped, is_inside(wrapped, length)


def _as_index(number: SSAValue) -> Value:
    k = builder()
    return value_of(k.from_integer(k.scalars(i64).cast(k.ready(number), number.type)))
