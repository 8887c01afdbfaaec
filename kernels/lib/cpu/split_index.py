"""Addresses of loops that begin somewhere: lanes need an index of their own beside the start."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.core import LoadOp, StoreOp, stride_values


def split_index(op: LoadOp | StoreOp, start: SSAValue, index: SSAValue) -> None:
    """`[.., i]` -> `[.., start, i]` with the same stride."""
    indices: list[SSAValue] = []
    strides: list[SSAValue | int] = []
    for own, stride in zip(op.indices, stride_values(op), strict=True):
        if own is index:
            indices.append(start)
            strides.append(stride)
        indices.append(own)
        strides.append(stride)
    made = (
        LoadOp(op.buffer, indices, strides)
        if isinstance(op, LoadOp)
        else StoreOp(op.value, op.buffer, indices, strides)
    )
    made.location = op.location
    block = op.parent
    assert block is not None
    block.insert_op_before(made, op)
    for old, new in zip(op.results, made.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()
