"""Where a network meets its caller: inputs and outputs that lie in a format, and those that nothing may copy."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.io_formats import input_formats, output_formats
from mlirt.dialects.tensor_types import memory_order, with_order


def is_io_border(op: Operation, value: SSAValue) -> bool:
    """Whether an op reads a value just as the caller gives or takes it: a format's copy, or the end of the function."""
    if isinstance(op, ReformatOp):
        return isinstance(value, BlockArgument)
    return isinstance(op, ReturnOp) and isinstance(value.owner, ReformatOp)


def direct_values(block: Block) -> set[SSAValue]:
    """The inputs and outputs of a function's block that are to be read and written where they lie."""
    function, last = block.parent_op(), block.last_op
    if not isinstance(function, FuncOp) or not isinstance(last, ReturnOp):
        return set()
    values, formats = [*block.args, *last.operands], [*input_formats(function), *output_formats(function)]
    return {value for value, format in zip(values, formats, strict=True) if format.direct}


def drop_idle_copies(block: Block, by_rows: Sequence[type[Operation]]) -> None:
    """Take away the copies between a format and layers that work in just its order.

    Rows of an input may have gaps where all readers are of the types `by_rows`, which go by the strides.
    """
    for op in list(block.ops):
        if not isinstance(op, ReformatOp):
            continue
        uses = [use.operation for use in op.output.uses]
        is_taken = any(isinstance(user, ReturnOp) for user in uses) or isinstance(op.input, BlockArgument)
        goes_by_rows = all(user.parent is block and isinstance(user, tuple(by_rows)) for user in uses)
        if is_taken and (op.input.type == op.output.type or (goes_by_rows and _has_longer_rows(op))):
            op.output.replace_all_uses_with(op.input)
            op.detach()
            op.erase()


def _has_longer_rows(op: ReformatOp) -> bool:
    """Whether a copy only takes gaps out of the rows of an input."""
    source, order = op.input.type, memory_order(op.input.type)
    is_input, is_moved = isinstance(op.input, BlockArgument), order != tuple(range(len(order)))
    return is_input and is_moved and with_order(source, order) == op.output.type
