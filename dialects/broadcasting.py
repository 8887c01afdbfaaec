"""The broadcasting rule: dimensions of length 1 are repeated, others are equal."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import is_unknown


def broadcast(shapes: Sequence[Sequence[Dim]], constraint: str = "C5") -> tuple[Dim, ...]:
    """The common dimensions of shapes of equal rank; raises `VerifyException` where two lengths contradict.

    A symbolic length beside a constant other than 1 must be equal to it; two different symbols cannot be proven
    equal, and the first is taken: the run-time check of the plan compares them.
    """
    return tuple(_common(axis, [shape[axis] for shape in shapes], constraint) for axis in range(len(shapes[0])))


def _common(axis: int, lengths: Sequence[Dim], constraint: str) -> Dim:
    candidates = [length for length in dict.fromkeys(lengths) if length != 1]
    constants = [length for length in candidates if isinstance(length, int)]
    require(
        len(constants) <= 1, f"{constraint}: lengths {list(map(str, lengths))} of dimension {axis} do not broadcast"
    )
    named = [length for length in candidates if not is_unknown(length)]
    return (constants or named or candidates or [1])[0]
