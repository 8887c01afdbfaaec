"""What is expected of each sample's answer, and what an accuracy test found.

Right is what onnxruntime makes of the network in float32 on the CPU. In float32 and half precision an answer may be off
by a bound. In int8 it may be off a little more than what onnxruntime itself makes of the quantised file: scales are the
same, but roundings meet at other places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mlperf.closeness import Closeness
from mlperf.load import answer_arrays
from mlperf.models import model_file, sampler
from mlperf.workloads import Array, Arrays, Workload

BOUNDS = {"fp32": 1e-3, "fp16": 2e-2, "int8": 1e-3}
"""How far an answer may be off by default, as `Workload.closeness` tells it."""
_QUANTISED = 1.25
"""How many times as far off as onnxruntime's, in int8."""


@dataclass(frozen=True)
class Expected:
    """The right answer of a sample, and how far one may be off."""

    right: Mapping[str, Array]
    allowed: float


@dataclass
class Check:
    """What the accuracy log says: how many answers were asked for and came, how far each is from the right one.

    missing: samples that have no answer at all. errors: how far each answer is off, and how far it may be.
    """

    asked: int
    answered: int
    missing: int
    errors: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    @property
    def lost(self) -> int:
        """Answers that were asked for and are not in the log, or that nobody asked for."""
        return max(abs(self.asked - self.answered), self.missing)

    @property
    def wrong(self) -> int:
        """Answers that are further off than they may be; what is no number is wrong."""
        return sum(not error <= allowed for error, allowed in self.errors)

    def __str__(self) -> str:
        error, allowed = max(self.errors, default=(float("nan"), 0.0))
        return (
            f"{self.asked} samples, {self.lost} lost, {self.wrong} wrong; "
            f"the worst is off by {error:.2e} (allowed {allowed:.2e})"
        )


def checked(
    asked: int, found: Sequence[tuple[int, bytes]], expected: Mapping[int, Expected], closeness: Closeness
) -> Check:
    """Hold answers, by the samples' indices, against what is expected of each sample."""
    check = Check(asked, len(found), len(set(expected) - {index for index, _ in found}))
    for index, data in found:
        check.errors.append((_error(data, expected[index].right, closeness), expected[index].allowed))
    return check


def _error(data: bytes, right: Mapping[str, Array], closeness: Closeness) -> float:
    kinds = {name: (array.dtype, array.shape) for name, array in right.items()}
    try:
        return closeness(answer_arrays(data, kinds), right)
    except ValueError:  # too short, or too long
        return float("inf")


def expected_answers(
    workload: Workload, precision: str, samples: int, folder: Path, *, signed: bool = False, bound: float | None = None
) -> dict[int, Expected]:
    """By the samples' indices. What takes long is kept in the folder; needs onnxruntime."""
    allowed = BOUNDS[precision] if bound is None else bound
    right = _answers(workload, model_file(workload, "fp32", 1, folder), samples)
    if precision != "int8":
        return {index: Expected(one, allowed) for index, one in right.items()}
    rounded = _answers(workload, model_file(workload, "int8", 1, folder, signed=signed), samples)
    return {
        index: Expected(one, allowed + _QUANTISED * workload.closeness(rounded[index], one))
        for index, one in right.items()
    }


def _answers(workload: Workload, model: Path, samples: int) -> dict[int, Arrays]:
    """What onnxruntime makes of a file, sample by sample."""
    path = model.with_suffix(".answers.npz")
    known: Arrays = {}
    if path.exists():
        with np.load(path) as stored:
            known = {name: stored[name] for name in stored.files}
    kept = {int(name.split(" ", 1)[0]) for name in known}
    if missing := [index for index in range(samples) if index not in kept]:
        from cpu_peer import cpu_session

        session = cpu_session(model)
        names = [value.name for value in session.get_outputs()]
        sample = sampler(workload, model)
        for index in missing:
            feeds = {name: array[None] for name, array in sample(index).items()}
            found = zip(names, session.run(None, feeds), strict=True)
            known |= {f"{index} {name}": array[0] for name, array in found}
        np.savez(path, **known)  # pyright: ignore[reportArgumentType]
    return {index: _of_sample(known, index) for index in range(samples)}


def _of_sample(known: Mapping[str, Array], index: int) -> Arrays:
    start = f"{index} "
    return {name.removeprefix(start): array for name, array in known.items() if name.startswith(start)}
