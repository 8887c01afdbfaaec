"""Accesses of plain images rewritten for blocked ones: `[d0, d1, d2, d3]` becomes `[d0, d1, d2, d3, d4]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.blocked_layout import is_blocked, plain
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_types import dims
from mlirt.passes.layout.layouts.assignment import Assignment, is_plain_image

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_CHANNEL, _LANE = iteration(1), iteration(4)


def fits(value: SSAValue, access: AccessAttr, result_channels: Dim, assignment: Assignment) -> bool:
    """Whether an operand of an op on images can be read when the iteration is over blocked channels."""
    indices = access.indices()
    touching = [k for k, index in enumerate(indices) if "d1" in symbols(index)]
    if is_blocked(value.type):
        if len(indices) != 4 or touching not in ([], [1]):
            return False
        if not touching:
            return isinstance(indices[1], int)
        return _block_shift(indices[1], value, result_channels, assignment.lanes) is not None
    if not touching:
        return True
    if touching == [1] and is_plain_image(value) and len(indices) == 4:
        return _block_shift(indices[1], value, result_channels, assignment.lanes) is not None
    return _is_channel_vector(value, access, assignment)


def read(
    value: SSAValue, access: AccessAttr, result_channels: Dim, assignment: Assignment, before: Operation
) -> tuple[SSAValue, AccessAttr]:
    """The operand in a layout that fits, and its access over the blocked iteration space."""
    indices = access.indices()
    if not any("d1" in symbols(index) for index in indices):
        if is_blocked(value.type):
            block, lane = divmod(_number(indices[1]), assignment.lanes)
            return value, AccessAttr.of([indices[0], block, *indices[2:], lane])
        return value, access
    if _is_channel_vector(value, access, assignment):
        array = assignment.constant(value)
        assert array is not None
        blocks = -(-array.size // assignment.lanes)
        packed = assignment.packed(value, "lanes of", lambda: _lanes(array, blocks, assignment.lanes), before)
        return packed, AccessAttr.of([_CHANNEL, _LANE])
    shift = _block_shift(indices[1], value, result_channels, assignment.lanes)
    assert shift is not None
    converted = assignment.to_blocked(value, before)
    return converted, AccessAttr.of([indices[0], _CHANNEL + shift, *indices[2:], _LANE])


def _number(index: Dim) -> int:
    assert isinstance(index, int)
    return index


def _is_channel_vector(value: SSAValue, access: AccessAttr, assignment: Assignment) -> bool:
    """Whether an operand is a constant with one element per channel, for example a bias of any rank."""
    if is_blocked(value.type) or assignment.constant(value) is None:
        return False
    at_channel = [index == _CHANNEL for index in access.indices()]
    others = [size for size, is_channel in zip(dims(value.type), at_channel, strict=True) if not is_channel]
    return sum(at_channel) == 1 and set(others) <= {1}


def _block_shift(index: Dim, value: SSAValue, result_channels: Dim, lanes: int) -> int | None:
    """By how many whole blocks a channel index is moved; None where blocks do not stay whole."""
    offset = index - _CHANNEL
    if not isinstance(offset, int) or offset % lanes:
        return None
    own = dims(plain(value.type))[1]
    if not isinstance(own, int) or not isinstance(result_channels, int):
        return None
    whole = result_channels % lanes == 0 or own == offset + result_channels
    return offset // lanes if whole else None


def _lanes(array: Array, blocks: int, lanes: int) -> Array:
    import numpy as np

    flat = array.reshape(-1)
    padded = np.zeros(blocks * lanes, flat.dtype)
    padded[: flat.size] = flat
    return padded.reshape(blocks, lanes)


def read_all(
    values: Sequence[SSAValue],
    accesses: Sequence[AccessAttr],
    result_channels: Dim,
    assignment: Assignment,
    before: Operation,
) -> tuple[list[SSAValue], list[AccessAttr]]:
    """`read` for every operand."""
    pairs = [read(v, a, result_channels, assignment, before) for v, a in zip(values, accesses, strict=True)]
    return [value for value, _ in pairs], [access for _, access in pairs]


def all_fit(
    values: Sequence[SSAValue], accesses: Sequence[AccessAttr], result_channels: Dim, assignment: Assignment
) -> bool:
    """`fits` for every operand."""
    return all(fits(v, a, result_channels, assignment) for v, a in zip(values, accesses, strict=True))


__all__ = ["all_fit", "fits", "read", "read_all"]
