"""The check at the border of a phase: nothing is left that the next phase does not understand."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from mlirt.dialects.diagnostics import OperationError
from mlirt.passes.phases import find_phase
from mlirt.passes.plugin_layers import level_of


@dataclass(frozen=True)
class VerifyLegalityPass(ModulePass):
    """Stop at the first op that may not be left after `phase`, as the table in passes/phases.py says; change nothing.

    Before: `%y = trt.activation relu %x ...` after the phase `fusion`
    After: `error: 'trt.activation' op is left after phase fusion, ...`
    """

    name = "verify-legality"

    phase: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        legal = find_phase(self.phase).legal
        for inner in op.walk():
            if not _is_legal(inner, legal):
                raise OperationError(
                    inner,
                    f"is left after phase {self.phase}, which leaves only {', '.join(sorted(legal))}: "
                    "no pass of the phase handles this op",
                )


def _is_legal(op: Operation, legal: frozenset[str]) -> bool:
    return op.name in legal or level_of(op) in legal
