"""Gathers and scatters on arrays: negative indices count from the end; others read zero and write nothing."""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
from typing import TYPE_CHECKING

from xdsl.utils.str_enum import StrEnum

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.tensor_op import Array


class GatherMode(StrEnum):
    DEFAULT = auto()
    ELEMENT = auto()
    ND = auto()


class ScatterMode(StrEnum):
    ELEMENT = auto()
    ND = auto()


class ScatterReduction(StrEnum):
    NONE = auto()
    ADD = auto()
    MUL = auto()
    MAX = auto()
    MIN = auto()


def gather(data: Array, indices: Array, mode: GatherMode, axis: int, shared: int) -> Array:
    """What `data` holds at `indices`; the first `shared` axes of both go together."""
    if mode is GatherMode.DEFAULT:
        return gather_slices(data, indices, axis, shared)
    if mode is GatherMode.ELEMENT:
        return gather_elements(data, indices, axis)
    return gather_nd(data, indices, shared)


def scatter(
    data: Array, indices: Array, updates: Array, mode: ScatterMode, axis: int, reduction: ScatterReduction
) -> Array:
    """A copy of `data` with `updates` at `indices`, written in order or combined with what was there."""
    import numpy as np

    ufuncs = {
        ScatterReduction.NONE: None,
        ScatterReduction.ADD: np.add,
        ScatterReduction.MUL: np.multiply,
        ScatterReduction.MAX: np.maximum,
        ScatterReduction.MIN: np.minimum,
    }
    combine = ufuncs[reduction]
    if mode is ScatterMode.ELEMENT:
        return scatter_elements(data, indices, updates, axis, combine)
    return scatter_nd(data, indices, updates, combine)


def _resolve(indices: Array, length: int) -> tuple[Array, Array]:
    """Positions in `range(length)`, and where they are valid."""
    import numpy as np

    wide = indices.astype(np.int64)
    position = np.where(wide < 0, wide + length, wide)
    valid = (position >= 0) & (position < length)
    return np.where(valid, position, 0), valid


def _mesh(shape: Sequence[int]) -> list[Array]:
    import numpy as np

    return list(np.ogrid[tuple(slice(size) for size in shape)])


def _zero_where_invalid(picked: Array, valid: Array) -> Array:
    import numpy as np

    return picked if valid.all() else np.where(valid, picked, np.zeros((), picked.dtype))


def _take(data: Array, position: Array, axis: int) -> Array:
    import numpy as np

    if data.shape[axis] == 0:
        shape = (*data.shape[:axis], *position.shape, *data.shape[axis + 1 :])
        return np.zeros(shape, data.dtype)
    return np.take(data, position, axis)


def gather_slices(data: Array, indices: Array, axis: int, shared: int) -> Array:
    """Slices of `data` across `axis`; with `shared` = 1 the first axes of both go together."""
    import numpy as np

    if shared:
        rows = [gather_slices(row, index, axis - 1, 0) for row, index in zip(data, indices, strict=True)]
        shape = (*data.shape[1:axis], *indices.shape[1:], *data.shape[axis + 1 :])
        return np.stack(rows) if rows else np.zeros((0, *shape), data.dtype)
    position, valid = _resolve(indices, data.shape[axis])
    after = [1] * (data.ndim - axis - 1)
    return _zero_where_invalid(_take(data, position, axis), valid.reshape((*valid.shape, *after)))


def gather_elements(data: Array, indices: Array, axis: int) -> Array:
    """One element of `data` per index, along `axis`."""
    import numpy as np

    position, valid = _resolve(indices, data.shape[axis])
    if data.shape[axis] == 0 or indices.size == 0:
        return np.zeros(indices.shape, data.dtype)
    mesh = _mesh(indices.shape)
    mesh[axis] = position
    return _zero_where_invalid(data[tuple(mesh)], valid)


def _coordinates(shape: Sequence[int], indices: Array) -> tuple[tuple[Array, ...], Array]:
    import numpy as np

    valid = np.ones(indices.shape[:-1], np.bool_)
    positions: list[Array] = []
    for k in range(indices.shape[-1]):
        position, inside = _resolve(indices[..., k], shape[k])
        positions.append(position)
        valid &= inside
    return tuple(positions), valid


def gather_nd(data: Array, indices: Array, shared: int) -> Array:
    """Slices of `data` at the coordinates in the last axis of `indices`; the first `shared` axes go together."""
    import numpy as np

    depth = indices.shape[-1]
    tail = data.shape[shared + depth :]
    coordinates, valid = _coordinates(data.shape[shared:], indices)
    if data.size == 0 or valid.size == 0:
        return np.zeros((*valid.shape, *tail), data.dtype)
    batch = _mesh(valid.shape)[:shared]
    picked = data[(*batch, *coordinates)]
    return _zero_where_invalid(picked, valid.reshape((*valid.shape, *[1] * len(tail))))


def scatter_elements(data: Array, indices: Array, updates: Array, axis: int, combine: np.ufunc | None) -> Array:
    """A copy of `data` with one element per index replaced, or combined with what was there."""
    position, valid = _resolve(indices, data.shape[axis])
    mesh = [axis_index + 0 * position for axis_index in _mesh(indices.shape)]
    mesh[axis] = position
    return _write(data, tuple(part[valid] for part in mesh), updates[valid], combine)


def scatter_nd(data: Array, indices: Array, updates: Array, combine: np.ufunc | None) -> Array:
    """A copy of `data` with the slices at the coordinates in the last axis of `indices` replaced, or combined."""
    coordinates, valid = _coordinates(data.shape, indices)
    return _write(data, tuple(part[valid] for part in coordinates), updates[valid], combine)


def _write(data: Array, place: tuple[Array, ...], updates: Array, combine: np.ufunc | None) -> Array:
    result = data.copy()
    if combine is None:
        result[place] = updates
    else:
        combine.at(result, place, updates)
    return result
