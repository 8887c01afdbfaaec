"""Running sums and products of arrays along an axis, computed in the widest type and rounded once."""

from __future__ import annotations

from enum import auto
from typing import TYPE_CHECKING

from xdsl.utils.str_enum import StrEnum

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class CumulativeKind(StrEnum):
    SUM = auto()
    PROD = auto()


def running_totals(x: Array, kind: CumulativeKind, axis: int, *, exclusive: bool, backwards: bool) -> Array:
    """Each element's total of all up to it along an axis; `exclusive`: without itself, `backwards`: from the end."""
    import numpy as np

    from mlirt.dialects.wide_arithmetic import narrow, widen

    ufunc, neutral = (np.add, 0) if kind is CumulativeKind.SUM else (np.multiply, 1)
    wide = np.moveaxis(widen(x), axis, 0)
    wide = wide[::-1] if backwards else wide
    if exclusive:
        wide = np.concatenate([np.full_like(wide[:1], neutral), wide[:-1]])
    with np.errstate(over="ignore", invalid="ignore"):
        total = ufunc.accumulate(wide, 0)
    return narrow(np.moveaxis(total[::-1] if backwards else total, 0, axis), x.dtype)
