"""Selectors of tactics: one that takes a tactic where it is offered, and one that only looks."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.builder.tactics.algorithm_selector import Algorithm, AlgorithmContext, AlgorithmSelector


class Only(AlgorithmSelector):
    """Lets each layer have one tactic alone, where it is offered, and notes what was taken."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.taken: list[str] = []

    def select_algorithms(self, context: AlgorithmContext, choices: Sequence[Algorithm]) -> list[int]:
        return [place for place, one in enumerate(choices) if one.name == self.name]

    def report_algorithms(self, contexts: Sequence[AlgorithmContext], choices: Sequence[Algorithm]) -> None:
        self.taken += [choice.name for choice in choices]


class Onlooker(Only):
    """Allows all, and notes the files of the tactics that ran when they were measured."""

    def __init__(self) -> None:
        super().__init__("")
        self.offered: set[str] = set()

    def select_algorithms(self, context: AlgorithmContext, choices: Sequence[Algorithm]) -> list[int]:
        self.offered |= {choice.name.partition(":")[0] for choice in choices if choice.timing_msec < 1e3}
        return list(range(len(choices)))


__all__ = ["Onlooker", "Only"]
