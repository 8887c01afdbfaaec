"""A caller's say in which tactic each layer gets, as TensorRT's IAlgorithmSelector has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Algorithm:
    """A way to compute a layer: the tactic's file and choice, milliseconds, and bytes of memory beside the tensors.

    `timing_msec` is measured, or estimated where nothing was measured; negative where there is neither.
    """

    name: str
    timing_msec: float
    workspace_size: int


@dataclass(frozen=True)
class AlgorithmContext:
    """A layer: its name, and the types of what it reads and writes as the IR prints them."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class AlgorithmSelector(Protocol):
    """What a build asks."""

    def select_algorithms(self, context: AlgorithmContext, choices: Sequence[Algorithm]) -> Sequence[int]:
        """The indices of the choices that are allowed; the builder takes the fastest of them, none means any."""
        ...

    def report_algorithms(self, contexts: Sequence[AlgorithmContext], choices: Sequence[Algorithm]) -> None:
        """Told what was taken for each layer, once all is settled."""
        ...
