"""In-place analysis of loops: whether the next value of a carried tensor may overwrite the current one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Block, Operation, SSAValue, Use

from mlirt.dialects.fused.access import is_elementwise
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.scatter import ScatterOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.tensor_types import dims


def may_replace(new: SSAValue, old: Sequence[SSAValue], body: Block) -> bool:
    """Whether nothing in a loop's body reads `old` after the op that writes `new` begins.

    That op itself may read it where each element only depends on the old element in the same place.
    """
    writer = new.owner
    assert isinstance(writer, Operation)
    order = {op: place for place, op in enumerate(body.ops)}
    for use in _uses_in(old, order):
        reader = _ancestor(use.operation, body)
        if reader is writer and use.operation is writer and _reads_in_place(writer, use, new):
            continue
        if order[reader] >= order[writer]:
            return False
    return True


def _uses_in(values: Iterable[SSAValue], order: dict[Operation, int]) -> Iterable[Use]:
    """The uses of values, and of views of them, in the ops that `order` has or in their regions."""
    for value in values:
        for use in value.uses:
            if _top(use.operation, order) is None:
                continue
            if isinstance(use.operation, ViewOp):
                yield from _uses_in([use.operation.output], order)
            yield use


def _top(op: Operation | None, order: dict[Operation, int]) -> Operation | None:
    while op is not None and op not in order:
        op = op.parent_op()
    return op


def _ancestor(op: Operation, body: Block) -> Operation:
    while op.parent is not body:
        outer = op.parent_op()
        assert outer is not None
        op = outer
    return op


def _reads_in_place(writer: Operation, use: Use, new: SSAValue) -> bool:
    if isinstance(writer, ScatterOp):
        return use.index == 0
    if isinstance(writer, PointwiseOp) and len(writer.outputs) == 1:
        return is_elementwise(writer.access.data[use.index], dims(new.type))
    return False
