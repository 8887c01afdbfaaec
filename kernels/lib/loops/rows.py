"""Ops that work along one axis: a nest whose last loop walks along it, around it one loop per other group of
dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse, direct
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering


def whole(value: SSAValue, lowering: Lowering) -> Affine:
    """All of a value, element for iteration."""
    return direct(value, lowering.placements[value])


def without_axis(one: Affine, axis: int) -> Affine:
    """An access that stays where it is along an axis."""
    steps: tuple[Dim, ...] = (*one.steps[:axis], 0, *one.steps[axis + 1 :])
    return Affine(one.value, steps, one.offset)


def inserted_axis(one: Affine, axis: int) -> Affine:
    """An access of a value that lacks an axis of the space."""
    return Affine(one.value, (*one.steps[:axis], 0, *one.steps[axis:]), one.offset)


def rows(k: KernelBuilder, space: Sequence[Dim], axis: int, operands: Sequence[Affine]) -> tuple[NestCode, int]:
    """The nest with `axis` as its last dimension, never dropped, and the number of dimensions before it."""

    def last(items: Sequence[Dim]) -> tuple[Dim, ...]:
        return (*items[:axis], *items[axis + 1 :], items[axis])

    border = len(space) - 1
    transposed = [Affine(one.value, last(one.steps), one.offset) for one in operands]
    return NestCode(k, collapse(Nest.of(last(space), transposed).ordered(-1, 0, border), frozenset({border}))), border
