"""What a pipeline asks of a stage, and a stage on the CPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.engine import Engine
from mlirt.runtime.engine_interface import TensorDescription
from mlirt.runtime.manifest import Tensor

Results = dict[str, np.ndarray]


@dataclass(frozen=True)
class Passed:
    """A tensor that a stage hands on: where it lies is the stages' own affair, on the CPU it is `array`."""

    shape: tuple[int, ...]
    array: np.ndarray | None = None


@dataclass
class History:
    """The runs of a sequence since its first one."""

    is_broken: bool = False
    """One of them failed behind a stage that had gone on: the states of the stages do not belong together."""


@dataclass
class Job:
    """A run on its way through the stages."""

    feeds: Mapping[str, np.ndarray]
    sequence: Hashable
    history: History
    future: Future[Results] = field(default_factory=Future[Results])
    passed: dict[str, Passed] = field(default_factory=dict[str, Passed])
    results: Results = field(default_factory=dict[str, np.ndarray])
    stages: int = 1
    """How many have not ended with it."""
    has_advanced: bool = False
    """One has."""
    has_failed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def end_stage(self) -> None:
        """One stage has done its part; who waits has the results after the last one."""
        with self.lock:
            self.stages -= 1
            self.has_advanced = True
            if self.stages == 0 and not self.future.done():
                self.future.set_result(self.results)

    def fail(self, error: BaseException) -> None:
        """Tell who waits; the stages behind only take what was sent to them."""
        with self.lock:
            self.has_failed = True
            self.history.is_broken |= self.has_advanced
            if not self.future.done():
                self.future.set_exception(error)


@dataclass(frozen=True)
class Wiring:
    """How a stage's tensors go: by name, which inputs come from which stage, which outputs go to which, what is kept
    for the next run (input to output), and what the caller gets.
    """

    received: Mapping[str, int]
    sent: Mapping[str, Sequence[int]]
    state: Mapping[str, str]
    results: Sequence[str]


class Stage(Protocol):
    """One part of a network on its device; all methods are called by one thread."""

    def run(self, job: Job, hand_on: Callable[[], None]) -> None:
        """Compute; `hand_on` is called when the next stage may begin, with `job.passed` complete."""
        ...

    def drain(self, job: Job) -> None:
        """Take what other stages have sent for a run that one of them could not make, and drop a broken state."""
        ...

    def forget(self, sequence: Hashable) -> None:
        """Drop the state of a sequence."""
        ...

    def close(self) -> None:
        """Give back what the device lent."""
        ...


class HostStage:
    """A stage on the CPU: tensors pass on as arrays."""

    def __init__(self, engine: Engine, wiring: Wiring) -> None:
        self._engine, self._wiring = engine, wiring
        self._states: dict[Hashable, Results] = {}

    def run(self, job: Job, hand_on: Callable[[], None]) -> None:
        kept = self._states.get(job.sequence, {})
        feeds: Results = {}
        for tensor in self._engine.inputs:
            passed = job.passed.get(tensor.name) if tensor.name in self._wiring.received else None
            known = None if passed is None else passed.array
            feeds[tensor.name] = given(tensor, job, kept) if known is None else known
        found = self._engine.run(feeds)
        job.passed |= {name: Passed(found[name].shape, found[name]) for name in self._wiring.sent}
        job.results |= {name: found[name] for name in self._wiring.results}
        if self._wiring.state:
            self._states[job.sequence] = {name: found[made] for name, made in self._wiring.state.items()}
        hand_on()

    def drain(self, job: Job) -> None:
        if job.history.is_broken:
            self.forget(job.sequence)

    def forget(self, sequence: Hashable) -> None:
        self._states.pop(sequence, None)

    def close(self) -> None:
        self._states.clear()


def given(tensor: Tensor | TensorDescription, job: Job, kept: Mapping[str, np.ndarray]) -> np.ndarray:
    """What the caller gives for an input, or what is kept of the last run, which the caller's goes before."""
    found = job.feeds.get(tensor.name, kept.get(tensor.name))
    if found is None:
        raise InvalidInputError(f"input {tensor.name!r} is missing: expected {tensor.dtype} of shape {tensor.shape}")
    return np.asarray(found)
