"""Runs a program with branches and loops on a device: graphs of launches, and between them decisions of the host.

For each decision the host waits for the device once and reads the byte or word that decides. Stretches of launches
without a decision are one graph each.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from mlirt.errors import InvalidInputError
from mlirt.runtime.device import WrongSize
from mlirt.runtime.expressions import evaluate
from mlirt.runtime.program import Branch, Loop, Place, Program, Requirement, SizeCheck
from mlirt.runtime.shape_binding import Address, ShapeBinding

# Reads so many bytes of device memory as an unsigned number, after all work so far.
Look = Callable[[Address, int], int]
# Does what a stretch of launches, given by their numbers, stands for.
RunStretch = Callable[[tuple[int, ...]], None]

_WORD = 64


class _WrongSizeFound(Exception):
    def __init__(self, found: WrongSize) -> None:
        super().__init__(found)
        self.found = found


def stretches(program: Program) -> Iterator[tuple[int, ...]]:
    """The runs of launches between decisions, as deep as they are nested."""
    for part in _grouped(program):
        if isinstance(part, tuple):
            yield part
        elif isinstance(part, Branch):
            yield from stretches(part.then)
            yield from stretches(part.otherwise)
        elif isinstance(part, Loop):
            yield from stretches(part.before)
            yield from stretches(part.body)


def _grouped(program: Program) -> list[tuple[int, ...] | Branch | Loop | SizeCheck | Requirement]:
    parts: list[tuple[int, ...] | Branch | Loop | SizeCheck | Requirement] = []
    for step in program:
        last = parts[-1] if parts else None
        if not isinstance(step, int):
            parts.append(step)
        elif isinstance(last, tuple):
            parts[-1] = (*last, step)
        else:
            parts.append((step,))
    return parts


@dataclass
class HostDecisions:
    """The program of one set of shapes."""

    program: Program
    binding: ShapeBinding
    look: Look
    decisions: int = field(default=0)
    """How often the last run waited for the device."""

    def run(self, stretch: RunStretch) -> WrongSize | None:
        """Run to the end, or to the first size that was taken for another."""
        self.decisions = 0
        try:
            self._run(self.program, stretch)
        except _WrongSizeFound as stopped:
            return stopped.found
        return None

    def _run(self, program: Program, stretch: RunStretch) -> None:
        for part in _grouped(program):
            if isinstance(part, tuple):
                stretch(part)
            elif isinstance(part, Branch):
                self._run(part.then if self._holds(part.condition) else part.otherwise, stretch)
            elif isinstance(part, Loop):
                self._loop(part, stretch)
            elif isinstance(part, SizeCheck):
                self._check(part)
            elif not self._holds(part.condition):
                raise InvalidInputError(part.message)

    def _loop(self, loop: Loop, stretch: RunStretch) -> None:
        self._run(loop.before, stretch)
        while self._holds(loop.condition):
            self._run(loop.body, stretch)
            self._run(loop.before, stretch)

    def _holds(self, place: Place) -> bool:
        self.decisions += 1
        return self.look(self.binding.places[place], 1) != 0

    def _check(self, step: SizeCheck) -> None:
        expected = self.binding.values[step.symbol]
        if step.word is None:
            actual = evaluate(step.value, self.binding.values)
        else:
            self.decisions += 1
            word = self.look(self.binding.places[step.word], 8)
            actual = word - (1 << _WORD) if word >> (_WORD - 1) else word
        if actual != expected:
            raise _WrongSizeFound((step.symbol, actual))


def is_straight(program: Program, launches: Sequence[object]) -> bool:
    """Whether all launches simply run one after the other."""
    return list(program) == list(range(len(launches)))
