"""The broadcasting rule: dimensions of length 1 are repeated, others are equal; some only a run can tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from mlirt.dialects.length_requirements import LengthRequirement, Relation
from mlirt.dialects.symbolic import Dim, broadcast_length
from mlirt.dialects.symbolic_bounds import at_most, never_broadcast, never_one
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import is_unknown


def broadcast(shapes: Sequence[Sequence[Dim]], constraint: str = "C5") -> tuple[Dim, ...]:
    """The common dimensions of shapes of equal rank; raises `VerifyException` where two lengths contradict.

    Beside one that is not 1, such as a constant, a symbolic length is equal to it or 1. Of two others a run may make
    either 1, so that they have the length `broadcast(n, m)`, unless their formulas show that they must be equal. A
    length that is certainly no more than 1, such as that of `x[-1:]`, is repeated.
    """
    return tuple(_checked(axis, [shape[axis] for shape in shapes], constraint) for axis in range(len(shapes[0])))


def common_length(lengths: Sequence[Dim]) -> Dim:
    """The length that dimensions which broadcast have together."""
    candidates = _candidates(lengths)
    constants = [length for length in candidates if isinstance(length, int)]
    if constants:
        return constants[0]
    found = [group[0] for group in equal_groups(lengths)]
    certain = [length for length in found if never_one(length)]
    return certain[0] if certain else reduce(broadcast_length, found or candidates[:1], 1)


def equal_groups(lengths: Sequence[Dim]) -> list[list[Dim]]:
    """Those of several lengths that broadcast which have names, in groups of such as must be equal."""
    groups: list[list[Dim]] = []
    for length in _candidates(lengths):
        if is_unknown(length):
            continue
        group = next((group for group in groups if never_broadcast(group[0], length)), None)
        if group is None:
            groups.append([length])
        else:
            group.append(length)
    return groups


def repeated_to(constraint: str, length: Dim, target: Dim) -> Iterator[LengthRequirement]:
    """A length is equal to another one, or it is 1 and is repeated, where a run may find it so."""
    if length in (1, target) or is_unknown(length) or is_unknown(target):
        return
    fault = "its inputs have the lengths {left} and {right} where they must be equal"
    if never_broadcast(length, target):
        yield LengthRequirement(Relation.EQUAL, length, target, fault, constraint)
    else:
        fault += ", or the first 1"
        yield LengthRequirement(Relation.EQUAL_OR_ONE, length, target, fault, constraint)


def is_repeated(length: Dim) -> bool:
    """Whether a dimension of this length is repeated beside another one: it is 1, or 0 beside another 0."""
    return length == 1 or (not isinstance(length, int) and at_most(length, 1))


def _checked(axis: int, lengths: Sequence[Dim], constraint: str) -> Dim:
    constants = [length for length in _candidates(lengths) if isinstance(length, int)]
    require(
        len(constants) <= 1, f"{constraint}: lengths {list(map(str, lengths))} of dimension {axis} do not broadcast"
    )
    return common_length(lengths)


def _candidates(lengths: Sequence[Dim]) -> list[Dim]:
    """The different lengths that may be more than 1, or else those that may be 0."""
    candidates = [length for length in dict.fromkeys(lengths) if length != 1]
    return [length for length in candidates if not is_repeated(length)] or candidates
