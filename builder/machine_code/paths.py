"""All paths through a kernel: what a rule knows at each instruction, whichever way led there.

A rule has a state, which changes with each instruction. An instruction with a predicate is followed both executed and
not; a branch both ways. Calls are followed into the function and back. Where the next instruction cannot be told, such
as behind a branch to an address in a register, that is a violation by itself: nothing is passed over in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from mlirt.builder.machine_code.listing import Instruction, Listing

State = TypeVar("State", bound=Hashable)
_ENDS = frozenset({"EXIT", "KILL"})
_MAX_CALL_DEPTH = 8  # calls within one another
_NEVER = ("!PT", "!UPT")
Report = Callable[[Instruction, str], None]


class Rule(Protocol[State]):
    """What must hold on every path of a kernel."""

    @property
    def matters(self) -> bool:
        """Whether the code has any instruction that can break it."""
        ...

    def start(self) -> State:
        """The state at the beginning of a kernel."""
        ...

    def after(self, instruction: Instruction, state: State, report: Report) -> State:
        """The state behind an instruction that is executed; reports what is wrong with it."""
        ...

    def along(self, branch: Instruction, state: State, taken: bool) -> State:
        """The state behind a branch with a predicate that goes one way."""
        ...


@dataclass(frozen=True)
class Violation:
    """An instruction that uses what is not ready."""

    kernel: str
    number: int
    instruction: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kernel}: instruction {self.number}, {self.instruction}: {self.reason}"


class _Next(NamedTuple):
    at: int
    returns: tuple[int, ...]


def follow(listing: Listing, kernel: str, rule: Rule[State]) -> list[Violation]:
    """What a rule finds on the paths of a kernel, one entry for each instruction."""
    found: dict[int, Violation] = {}

    def report(instruction: Instruction, reason: str) -> None:
        found.setdefault(instruction.number, Violation(kernel, instruction.number, str(instruction), reason))

    work: list[tuple[_Next, State]] = [(_Next(listing.kernels[kernel], ()), rule.start())]
    seen = set(work)
    while work:
        place, state = work.pop()
        while place.at < len(listing.instructions):
            ways = _step(listing, listing.instructions[place.at], place.returns, rule, state, report)
            if len(ways) == 1 and ways[0][0].at not in listing.targets:
                place, state = ways[0]
                continue
            # Where paths part or meet; in between nothing needs to be compared with other paths.
            for entry in ways:
                if entry not in seen:
                    seen.add(entry)
                    work.append(entry)
            break
    return [found[number] for number in sorted(found)]


def _step(
    listing: Listing,
    instruction: Instruction,
    returns: tuple[int, ...],
    rule: Rule[State],
    state: State,
    report: Report,
) -> list[tuple[_Next, State]]:
    """What may come next, and the state there."""
    behind = _Next(instruction.number + 1, returns)
    if instruction.predicate in _NEVER:
        return [(behind, state)]
    conditional = bool(instruction.predicate) or _has_condition(instruction)
    places = _places(listing, instruction, returns, report)
    executed = rule.after(instruction, state, report)
    if places is None:
        same = not instruction.predicate or executed is state or executed == state
        return [(behind, executed)] if same else [(behind, executed), (behind, state)]
    ways = [(place, rule.along(instruction, executed, True) if conditional else executed) for place in places]
    if conditional:
        ways.append((behind, rule.along(instruction, state, False)))
    return ways


def _has_condition(branch: Instruction) -> bool:
    """Whether a branch has a condition among its operands, such as `BRA P0, ..` or `BRA.DIV UR4, ..`."""
    return branch.name == "BRA" and (
        len(branch.parts) > 1 or branch.opcode.startswith(("BRA.U", "BRA.CONV", "BRA.DIV"))
    )


def _places(listing: Listing, instruction: Instruction, returns: tuple[int, ...], report: Report) -> list[_Next] | None:
    """Where an instruction goes to; None where simply the next one follows.

    A call of a label inside of a function is a jump: nothing returns to what follows it.
    """
    name = instruction.name
    if name in _ENDS or instruction.opcode == "BPT.TRAP":
        return []
    if name == "RET":
        return [_Next(returns[-1], returns[:-1])] if returns else []
    if name == "CALL" and not all(place.startswith(".L_") for place in instruction.places):
        return _into(listing, instruction, returns, report)
    if name in ("CALL", "BRA", "BRX", "JMP", "JMX", "BRXU", "JMXU"):
        targets = [listing.labels[place] for place in instruction.places if place in listing.labels]
        if not targets or len(targets) < len(instruction.places):
            report(instruction, "it is not known where it goes to")
        return [_Next(target, returns) for target in targets]
    if name == "BSYNC":
        joins = [listing.labels[place] for place in listing.joins.get((instruction.function, instruction.operands), ())]
        return None if not joins or instruction.number + 1 in joins else [_Next(at, returns) for at in joins]
    if name == "WARPSYNC" and instruction.places:
        own = [listing.labels[place] for place in instruction.places if place in listing.labels]
        return [_Next(number, returns) for number in (instruction.number + 1, *own)]
    return None


def _into(listing: Listing, call: Instruction, returns: tuple[int, ...], report: Report) -> list[_Next]:
    behind = call.number + 1
    targets = [listing.labels[place] for place in call.places if place in listing.labels]
    if not targets or len(returns) >= _MAX_CALL_DEPTH:
        report(call, "the function that it calls is not known")
        return [_Next(behind, returns)]
    return [_Next(target, (*returns, behind)) for target in targets]
