"""What sizes that only the run tells are taken for: formulas of sizes that are known are followed as far as they go.

Where no side of a branch agrees with what its sizes have been taken for, because a size before it has changed, they are
taken for what the side says that the branch before it goes to. So a loop whose iterations are written out, each a
branch, needs few runs until all lengths are right: one in which every iteration takes place, and one in which those
behind the last one do not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlirt.runtime.expressions import evaluate
from mlirt.runtime.program import Branch, Loop, Program, SizeCheck, Step, never_run, parts


def refined(program: Sequence[Step], values: Mapping[str, int], known: str | None = None) -> dict[str, int]:
    """The values of the symbols, those of branches made to agree with a side.

    The run has told the value of the symbol `known`, and all before it have been right.
    """
    refinement = _Refinement(dict(values), known)
    refinement.follow(program)
    return refinement.values


@dataclass
class _Refinement:
    values: dict[str, int]
    known: str | None
    side: int = 0
    """Where a branch goes that agrees with no side."""

    def follow(self, program: Sequence[Step]) -> None:
        for step in program:
            if isinstance(step, Branch):
                self._follow_branch(parts(step))
            elif isinstance(step, Loop):
                self.follow(step.before)

    def _follow_branch(self, sides: Sequence[Program]) -> None:
        agree = [k for k, part in enumerate(sides) if not never_run(part, self.values)[1]]
        if len(agree) > 1:
            return
        if not agree:
            agree = [k for k, part in enumerate(sides) if any(map(self._is_told, part))]
        self.side = agree[0] if agree else self.side
        taken = sides[self.side]
        for step in taken:
            if isinstance(step, SizeCheck) and step.word is None:
                self.values[step.symbol] = evaluate(step.value, self.values)
        self.follow(taken)

    def _is_told(self, step: Step) -> bool:
        if not isinstance(step, SizeCheck) or step.word is not None or step.symbol != self.known:
            return False
        return evaluate(step.value, self.values) == self.values[step.symbol]
