"""Runs a program with branches and loops on a device: graphs, and between them decisions of the host.

For each decision the host waits for the device once and reads the byte or word that decides. Stretches of steps without
a decision are one graph each; where the device itself can decide, its branches and loops are part of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from mlirt.errors import InvalidInputError
from mlirt.runtime.conditional_graphs import is_device_only
from mlirt.runtime.device import WrongSize
from mlirt.runtime.expressions import evaluate
from mlirt.runtime.program import Branch, Loop, Place, Program, Requirement, SizeCheck, parts
from mlirt.runtime.shape_binding import Address, ShapeBinding

# Reads so many bytes of device memory as an unsigned number, after all work so far.
Look = Callable[[Address, int], int]
# Does what a stretch of steps stands for: launches, and where the device can decide, branches and loops.
RunStretch = Callable[[Program], None]

_WORD = 64


class _WrongSizeFound(Exception):
    def __init__(self, found: WrongSize) -> None:
        super().__init__(found)
        self.found = found


@dataclass(frozen=True)
class _Stretch:
    steps: Program


def stretches(program: Program, *, on_device: bool) -> Iterator[Program]:
    """The runs of steps between decisions of the host, as deep as they are nested."""
    for part in _grouped(program, on_device):
        if isinstance(part, _Stretch):
            yield part.steps
        elif isinstance(part, Branch | Loop):
            for inner in parts(part):
                yield from stretches(inner, on_device=on_device)


def _grouped(program: Program, on_device: bool) -> list[_Stretch | Branch | Loop | SizeCheck | Requirement]:
    """The program with its stretches joined; `on_device` says who decides about branches and loops without checks."""
    found: list[_Stretch | Branch | Loop | SizeCheck | Requirement] = []
    for step in program:
        last = found[-1] if found else None
        joins = is_device_only(step) if on_device else isinstance(step, int)
        if not joins:
            assert not isinstance(step, int)
            found.append(step)
        elif isinstance(last, _Stretch):
            found[-1] = _Stretch((*last.steps, step))
        else:
            found.append(_Stretch((step,)))
    return found


@dataclass
class HostDecisions:
    """The program of one set of shapes."""

    program: Program
    binding: ShapeBinding
    look: Look
    on_device: bool = False
    """Whether stretches hold branches and loops, about which the device decides."""
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
        for part in _grouped(program, self.on_device):
            if isinstance(part, _Stretch):
                stretch(part.steps)
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
