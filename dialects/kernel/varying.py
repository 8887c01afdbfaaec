"""Which values of a loop over lanes differ from lane to lane."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.kernel.core import LoadOp, ReduceOp, stride_values


def varying_values(block: Block, seeds: Iterable[SSAValue]) -> set[SSAValue]:
    """The values in `block`, nested regions included, that depend on the lane; `seeds` are the ones known to."""
    found = set(seeds)
    while True:
        before = len(found)
        for op in block.walk():
            _visit(op, found)
        if len(found) == before:
            return found


def _visit(op: Operation, found: set[SSAValue]) -> None:
    if isinstance(op, LoadOp):
        if _load_varies(op, found):
            found.add(op.result)
    elif isinstance(op, scf.ForOp):
        yielded = op.body.block.last_op
        assert yielded is not None
        for start, argument, end, result in zip(
            op.iter_args, op.body.block.args[1:], yielded.operands, op.results, strict=True
        ):
            if start in found or end in found:
                found |= {argument, result}
    elif isinstance(op, ReduceOp):
        yielded = op.body.block.last_op
        assert yielded is not None
        if op.init in found or yielded.operands[0] in found:
            found.add(op.result)
    elif isinstance(op, scf.IfOp):
        for position, result in enumerate(op.results):
            ends = [region.block.last_op for region in op.regions if region.blocks]
            if op.cond in found or any(end is not None and end.operands[position] in found for end in ends):
                found.add(result)
    elif any(operand in found for operand in op.operands):
        found.update(op.results)


def _load_varies(op: LoadOp, found: set[SSAValue]) -> bool:
    return any(index in found and stride != 0 for index, stride in zip(op.indices, stride_values(op), strict=True))
