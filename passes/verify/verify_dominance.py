"""Stops where a value is used before it is defined."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.dialects.dominance import verify_dominance


@dataclass(frozen=True)
class VerifyDominancePass(ModulePass):
    """Stop where a use is not dominated by its definition; change nothing.

    Before: `%b = arith.negf %a : f32` above `%a = ...`
    After: `error: 'arith.negf' op operand #0 (%a) does not dominate this use`
    """

    name = "verify-dominance"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        verify_dominance(op)
