"""Whether the ways to compute one layer agree with each other, and with themselves when they are repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, Operation

from mlirt.dialects.tensor_types import element_of, numpy_dtype, stored_bytes
from mlirt.dialects.typical_sizes import typical

if TYPE_CHECKING:
    from mlirt.dialects.target import Target
    from mlirt.dialects.tensor_op import Array

SAFE = "generic"
"""The tactic of plain loops, which decides where the others are divided."""

_ROUNDINGS = 8  # by which two right results may differ, each of the size of the largest value
_FLOAT32 = 2.0**-24
_TF32 = 2.0**-11
_SHORT = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3}
_BYTE_STEPS = 1  # bytes that two ways round differently
_TIES = 0.01  # of integers that were made from floating-point numbers, such as places of the largest of equal ones


@dataclass(frozen=True)
class Outcome:
    """The outputs of a candidate, none where they cannot be compared, and how many of its runs gave other bits."""

    outputs: tuple[Array, ...]
    differing: int = 0
    runs: int = 1


@dataclass(frozen=True)
class Verdict:
    """Why candidates are refused, by name; `divided` where the others have neither a majority nor a safe one."""

    refused: Mapping[str, str]
    divided: bool = False


def tolerance_of(op: Operation, target: Target, known: Mapping[str, int]) -> float:
    """How far two right results may lie apart, in parts of the largest value.

    Each result is a sum of up to as many numbers as the largest operand has, taken in float32 in another order; it is
    rounded to the coarsest floating-point type that the op mentions, and products perhaps to TF32.
    """
    values = [*op.operands, *op.results]
    inside = [value for inner in op.walk() for value in inner.results]
    inside += [arg for region in op.regions for block in region.blocks for arg in block.args]
    units = [_unit(element_of(value.type)) for value in values] + [_unit(value.type) for value in inside]
    rounding: float = max([_FLOAT32, *units, *([_TF32] if "tf32" in target.features else [])])
    bytes_ = [typical(stored_bytes(value.type), known) for value in op.operands]
    return _ROUNDINGS * max(rounding, _FLOAT32 * sqrt(max(bytes_, default=1)))


def _unit(element: Attribute) -> float:
    """What rounding to a type costs, in parts of the number; 0 for types that do not round."""
    return _SHORT.get(numpy_dtype(element).name, _FLOAT32) if isinstance(element, AnyFloat) else 0.0


def judged(outcomes: Mapping[str, Outcome], tolerance: float) -> Verdict:
    """Refuse what gives other bits when it is repeated, then what differs from the majority, or from the safe one."""
    refused = {
        name: f"gives other bits in {one.differing} of {one.runs} runs from the same memory"
        for name, one in outcomes.items()
        if one.differing
    }
    steady = {name: one for name, one in outcomes.items() if name not in refused and one.outputs}
    if len(steady) < 2:
        return Verdict(refused)
    friends: dict[str, list[str]] = {}
    for name, one in steady.items():
        friends[name] = [other for other in steady if other == name or _agree(one, steady[other], tolerance)]
        if len(friends[name]) == len(steady):
            break
    best = max(friends, key=lambda name: (len(friends[name]), name == SAFE))
    if 2 * len(friends[best]) <= len(steady):
        if SAFE not in steady:
            return Verdict(refused, divided=True)
        best = SAFE
    for name, one in steady.items():
        if name not in friends[best]:
            distance = max(map(distance_of, one.outputs, steady[best].outputs))
            refused[name] = f"differs from {best} by {distance:.2g} of the largest value, {tolerance:.2g} may be"
    return Verdict(refused)


def _agree(one: Outcome, other: Outcome, tolerance: float) -> bool:
    return all(distance_of(a, b) <= allowed(a, tolerance) for a, b in zip(one.outputs, other.outputs, strict=True))


def allowed(array: Array, tolerance: float) -> float:
    """The distance that outputs of a type may have; the tolerance is that of floating-point numbers."""
    if array.dtype.kind in "fV":
        return tolerance
    return float(_BYTE_STEPS) if array.dtype.itemsize == 1 and array.dtype.kind in "iu" else _TIES


def distance_of(one: Array, other: Array) -> float:
    """Floating-point numbers: the largest difference in parts of the largest value, where both are finite. Bytes: the
    largest difference. Other integers: the part that differs.
    """
    if one.dtype.kind in "fV":
        if one.dtype.itemsize <= np.dtype(np.float32).itemsize:
            difference, largest = _extremes(one.astype(np.float32), other.astype(np.float32))
            if np.isfinite(difference) and np.isfinite(largest):
                return float(difference / largest) if difference else 0.0
        a, b = one.astype(np.float64), other.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        # Where one leaves the range of its type, the other may be just inside; more than some says that one is wrong.
        if np.count_nonzero(np.isfinite(a) != np.isfinite(b)) > _TIES * a.size:
            return float("inf")
        difference, largest = _extremes(a[finite], b[finite])
        return float(difference / largest) if difference else 0.0
    if one.dtype.itemsize == 1 and one.dtype.kind in "iu":
        return float(np.abs(one.astype(np.int16) - other.astype(np.int16)).max(initial=0))
    return float(np.count_nonzero(one != other) / max(1, one.size))


def _extremes(one: Array, other: Array) -> tuple[float, float]:
    """The largest difference and the largest value; not finite where a number is not, or where they leave the range."""
    with np.errstate(all="ignore"):
        difference = np.abs(one - other).max(initial=0.0)
        largest = max(np.abs(one).max(initial=0.0), np.abs(other).max(initial=0.0))
    return float(difference), float(largest)


def outcome_of(runs: Sequence[Sequence[Array]]) -> Outcome:
    """The outcome of several runs of the same."""
    first = [array.tobytes() for array in runs[0]]
    differing = sum(first != [array.tobytes() for array in run] for run in runs[1:])
    return Outcome(tuple(runs[0]), differing, len(runs))
