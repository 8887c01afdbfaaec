"""Runs a program with branches and loops on a device: graphs, and between them decisions of the host.

For each decision the host waits for the device once and reads the byte or word that decides. Stretches of steps without
a decision are one graph each; where the device itself can decide, its branches and loops are part of them. Launches
that the host makes, those of plugins, stand between graphs too; nobody waits for them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from mlirt.errors import UnmetConditionError
from mlirt.runtime.bound_launch import Address
from mlirt.runtime.conditional_graphs import is_device_only
from mlirt.runtime.device import WrongSize
from mlirt.runtime.expressions import evaluate
from mlirt.runtime.program import Branch, Loop, Place, Program, Requirement, SizeCheck, Step, parts
from mlirt.runtime.shape_binding import ShapeBinding

# Reads so many bytes of device memory as an unsigned number, after all work so far.
Look = Callable[[Address, int], int]
# Does what a stretch of steps stands for: launches, and where the device can decide, branches and loops.
RunStretch = Callable[[Program], None]
# Makes a launch that is none of a graph.
Call = Callable[[int], None]

_WORD = 64


class _WrongSizeFound(Exception):
    def __init__(self, found: WrongSize) -> None:
        super().__init__(found)
        self.found = found


@dataclass(frozen=True)
class _Stretch:
    steps: Program


def stretches(program: Program, *, on_device: bool, hosted: Collection[int] = ()) -> Iterator[Program]:
    """The runs of steps between decisions and launches of the host, as deep as they are nested."""
    for part in _grouped(program, on_device, hosted):
        if isinstance(part, _Stretch):
            yield part.steps
        elif isinstance(part, Branch | Loop):
            for inner in parts(part):
                yield from stretches(inner, on_device=on_device, hosted=hosted)


def _grouped(program: Program, on_device: bool, hosted: Collection[int]) -> "list[_Stretch | Step]":
    """The program with its stretches joined; a number is a launch of the host.

    `on_device` says who decides about branches and loops without checks.
    """
    found: list[_Stretch | Step] = []
    for step in program:
        last = found[-1] if found else None
        joins = is_device_only(step, hosted) and (on_device or isinstance(step, int))
        if not joins:
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
    hosted: Collection[int] = ()
    """The launches that the host makes."""
    decisions: int = field(default=0)
    """How often the last run waited for the device."""

    def run(self, stretch: RunStretch, call: Call) -> WrongSize | None:
        """Run to the end, or to the first size that was taken for another."""
        self.decisions = 0
        try:
            self._run(self.program, stretch, call)
        except _WrongSizeFound as stopped:
            return stopped.found
        return None

    def _run(self, program: Program, stretch: RunStretch, call: Call) -> None:
        for part in _grouped(program, self.on_device, self.hosted):
            if isinstance(part, _Stretch):
                stretch(part.steps)
            elif isinstance(part, int):
                call(part)
            elif isinstance(part, Branch):
                self._run(part.then if self._holds(part.condition) else part.otherwise, stretch, call)
            elif isinstance(part, Loop):
                self._loop(part, stretch, call)
            elif isinstance(part, SizeCheck):
                self._check(part)
            elif isinstance(part, Requirement) and not (part.condition and self._holds(part.condition)):
                raise UnmetConditionError(part.message)

    def _loop(self, loop: Loop, stretch: RunStretch, call: Call) -> None:
        self._run(loop.before, stretch, call)
        while self._holds(loop.condition):
            self._run(loop.body, stretch, call)
            self._run(loop.before, stretch, call)

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
