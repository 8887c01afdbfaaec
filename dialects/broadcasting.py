"""The broadcasting rule: dimensions of length 1 are repeated, others are equal."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.symbolic_bounds import at_most
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import is_unknown


def broadcast(shapes: Sequence[Sequence[Dim]], constraint: str = "C5") -> tuple[Dim, ...]:
    """The common dimensions of shapes of equal rank; raises `VerifyException` where two lengths contradict.

    A symbolic length beside a constant other than 1 must be equal to it; two different symbols cannot be proven
    equal, and the first is taken. A length that is certainly no more than 1, such as that of `x[-1:]`, is repeated.
    """
    return tuple(_common(axis, [shape[axis] for shape in shapes], constraint) for axis in range(len(shapes[0])))


def is_repeated(length: Dim) -> bool:
    """Whether a dimension of this length is repeated beside another one: it is 1, or 0 beside another 0."""
    return length == 1 or (not isinstance(length, int) and at_most(length, 1))


def _common(axis: int, lengths: Sequence[Dim], constraint: str) -> Dim:
    candidates = [length for length in dict.fromkeys(lengths) if length != 1]
    candidates = [length for length in candidates if not is_repeated(length)] or candidates
    constants = [length for length in candidates if isinstance(length, int)]
    require(
        len(constants) <= 1, f"{constraint}: lengths {list(map(str, lengths))} of dimension {axis} do not broadcast"
    )
    named = [length for length in candidates if not is_unknown(length)]
    return (constants or named or candidates or [1])[0]
