"""The writer of epilogues: what the scalar region behind an op's accumulators makes of them, for all families.

Of one accumulator (`finished`; `store_finished` in a loop nest), or of those that a thread has (`finished_fragment`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, Region, SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.fused_op import copy_region
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.tensor_types import rank
from mlirt.kernels.lib.builder.placement import Placements
from mlirt.kernels.lib.language import Index, Value
from mlirt.kernels.lib.language.context import builder, emit
from mlirt.kernels.lib.language.nest_words import masked
from mlirt.kernels.lib.language.simt_words import elementwise
from mlirt.kernels.lib.language.words import inline, narrowed, place
from mlirt.kernels.lib.loops.loop_nest import Affine, NestCode, affine
from mlirt.kernels.lib.loops.scalar_regions import indices_in

ProductOp: TypeAlias = "ConvolutionOp | MatmulOp | PackedMatmulOp"
"""An op that accumulates products."""


def extra_operands(op: ProductOp | ReductionOp | SoftmaxOp | WindowOp, places: Placements) -> list[Affine]:
    """The extra operands of an op over the dimensions of its result."""
    access = op.extra_access if isinstance(op, ReductionOp) else op.access
    width = rank(op.results[0].type)
    return [affine(value, places[value], one, width) for value, one in zip(op.extras, access, strict=True)]


def finished(
    region: Region, accumulator: SSAValue, extras: Sequence[SSAValue], axes: int, index: Callable[[int], Index]
) -> Value:
    """What an epilogue makes of an accumulator and an element of each extra operand.

    `index` gives the place along one of the `axes` of the result, and is asked for those that the region depends on.
    """
    needed, wide = indices_in(region), accumulator_type(region)
    indices = [place(index(axis)) if axis in needed else accumulator for axis in range(axes)]
    (value,) = inline(region, [narrowed(accumulator, wide, wide), *extras], indices)
    return value


def store_finished(region: Region, code: NestCode, first: int, accumulator: SSAValue, at: Sequence[SSAValue]) -> None:
    """Store what an epilogue makes of an accumulator at a place of a nest; zero in a lane beyond the last channel.

    The operands of the nest are `first` others, the extra operands, and the result.
    """
    result = first + len(region.block.args) - 1
    of = code.nest.operands[result].value.type

    def index(axis: int) -> Value:
        return code.original(axis, at)

    value = finished(region, accumulator, [code.load(number, at) for number in range(first, result)], rank(of), index)
    code.store(masked(value, of, index), result, at)


def finished_fragment(region: Region, values: Sequence[SSAValue], element: Attribute) -> Value:
    """What an epilogue that depends on values alone makes of the accumulators of a thread and the extra operands.

    Numbers that are arguments of the kernel become operands.
    """
    found = [(op, builder().number_argument(op)) for op in region.block.ops if isinstance(op, arith.ConstantOp)]
    numbers = {op: argument for op, argument in found if argument is not None}

    def finish(*scalars: SSAValue) -> SSAValue:
        given: dict[Operation, SSAValue] = dict(zip(numbers, scalars[len(values) :], strict=True))

        def constant(op: Operation) -> SSAValue:
            return given[op] if op in given else emit(op.clone())

        return copy_region(region, scalars[: len(values)], builder().insert, {arith.ConstantOp.name: constant})[0]

    return elementwise(finish, element, *values, *numbers.values())


__all__ = ["ProductOp", "extra_operands", "finished", "finished_fragment", "store_finished"]
