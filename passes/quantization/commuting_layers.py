"""Layers that move or compare elements, and so do the same to numbers and to the integers that stand for them.

Rounding to integers with a positive scale keeps the order of numbers, so the largest of them stays the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, OptOperandDef, VarOperandDef

from mlirt.dialects.indexing import ScatterReduction
from mlirt.dialects.integer_list import integers
from mlirt.dialects.slicing import PadMode
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_types import dims, with_element
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.pooling import PoolingKind, PoolingOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.resize import Coordinate, ResizeKind, ResizeOp
from mlirt.dialects.trt.scatter import ScatterOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceMode, SliceOp
from mlirt.dialects.window_arithmetic import PaddingMode


@dataclass(frozen=True)
class Movement:
    """Which operands of a layer its result is made of.

    `sources` are the positions of tensors, `fill` names the operand with the number that cells outside of them hold, 0
    where it is absent; it is empty where there are no such cells.
    """

    sources: tuple[int, ...] = (0,)
    fill: str = ""


def movement_of(op: Operation) -> Movement | None:
    """What a layer that computes nothing with its elements does with them; None for other layers."""
    rule = _RULES.get(type(op))
    return None if rule is None or len(op.results) != 1 else rule(op)


def axis_behind(op: Operation, axis: int) -> int | None:
    """The axis of a shuffle's result that is this axis of its operand, in one piece; None where there is none."""
    if not isinstance(op, ShuffleOp) or op.shape is not None:
        return None
    before, after = list(dims(op.input.type)), list(dims(op.output.type))
    if op.first_transpose is not None:
        order = integers(op.first_transpose)
        before, axis = [before[source] for source in order], order.index(axis)
    back = list(range(len(after))) if op.second_transpose is None else list(integers(op.second_transpose))
    middle = [after[back.index(k)] for k in range(len(after))]
    lengths = [product(tuple(middle[:k])) for k in range(len(middle))]
    ahead = product(tuple(before[:axis]))
    fitting = [k for k, length in enumerate(lengths) if length == ahead and middle[k] == before[axis]]
    return back.index(fitting[-1]) if fitting else None


def sources_of(op: Operation, movement: Movement) -> Sequence[SSAValue]:
    """The tensors that a layer's result is made of."""
    return [op.operands[position] for position in movement.sources]


def fill_of(op: Operation, movement: Movement) -> SSAValue | None:
    """The operand with the number that cells outside hold."""
    return getattr(op, movement.fill) if movement.fill else None


def rebuilt(
    op: Operation, movement: Movement, sources: Sequence[SSAValue], fill: SSAValue | None, element: Attribute
) -> Operation:
    """The same layer of other tensors, whose elements have the type `element`; it is not placed anywhere."""
    assert isinstance(op, IRDLOperation)
    new = dict(zip(movement.sources, sources, strict=True))
    groups: list[SSAValue | Sequence[SSAValue] | None] = []
    position = 0
    for name, definition in op.get_irdl_definition().operands:
        given: SSAValue | Sequence[SSAValue] | None = getattr(op, name)
        if isinstance(definition, VarOperandDef) and not isinstance(definition, OptOperandDef):
            assert isinstance(given, Sequence)
            groups.append([new.get(position + k, value) for k, value in enumerate(given)])
            position += len(given)
            continue
        groups.append(fill if name == movement.fill else new.get(position, given) if given is not None else None)
        position += given is not None
    properties = {name: value for name, value in op.properties.items() if name != "operandSegmentSizes"}
    (result,) = op.results
    return type(op).build(operands=groups, properties=properties, result_types=[with_element(result.type, element)])


def _pooling(op: Operation) -> Movement | None:
    assert isinstance(op, PoolingOp)
    within = all(max(pads) < size for pads, size in zip(op.written_padding(), op.sizes(), strict=True))
    # A window that rounding up puts into the cells behind sees nothing but padding.
    outside = op.padding_mode.data is PaddingMode.EXPLICIT_ROUND_UP and any(post for _, post in op.written_padding())
    return Movement() if op.kind.data is PoolingKind.MAX and within and not outside else None


def _slice(op: Operation) -> Movement:
    assert isinstance(op, SliceOp)
    return Movement(fill="fill" if op.mode.data is SliceMode.FILL else "")


def _padding(op: Operation) -> Movement:
    assert isinstance(op, PaddingOp)
    return Movement(fill="value" if op.mode.data is PadMode.CONSTANT else "")


def _resize(op: Operation) -> Movement | None:
    assert isinstance(op, ResizeOp)
    moves = op.kind.data is ResizeKind.NEAREST and op.coordinate.data is not Coordinate.TF_CROP_AND_RESIZE
    return Movement() if moves else None


def _scatter(op: Operation) -> Movement | None:
    assert isinstance(op, ScatterOp)
    return Movement((0, 2)) if op.reduction.data is ScatterReduction.NONE else None


def _reduction(op: Operation) -> Movement | None:
    assert isinstance(op, ReduceOp)
    lengths = [dims(op.input.type)[axis] for axis in integers(op.axes)]
    some = all(isinstance(length, int) and length > 0 for length in lengths)
    return Movement() if op.kind.data in (ReduceKind.MAX, ReduceKind.MIN) and some else None


def _comparison(op: Operation) -> Movement | None:
    assert isinstance(op, ElementwiseOp)
    return Movement((0, 1)) if op.kind.data in (ElementwiseKind.MAX, ElementwiseKind.MIN) else None


def _everything(op: Operation) -> Movement:
    return Movement(tuple(range(len(op.operands))))


_RULES: dict[type[Operation], Callable[[Operation], Movement | None]] = {
    ShuffleOp: lambda op: Movement(),
    ConcatenationOp: _everything,
    GatherOp: lambda op: Movement(),
    SelectOp: lambda op: Movement((1, 2)),
    SliceOp: _slice,
    PaddingOp: _padding,
    ResizeOp: _resize,
    ScatterOp: _scatter,
    PoolingOp: _pooling,
    ReduceOp: _reduction,
    ElementwiseOp: _comparison,
}
