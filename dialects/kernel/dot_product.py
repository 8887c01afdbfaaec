"""The sum of the products of two fragments, for threads that each have a row of a matrix in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import f32
from xdsl.ir import OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import PURE, Rule, Text

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

CHAINS = 4  # sums that are independent of each other, so that one product need not wait for the one before


@instruction
class DotProductOp(Instruction):
    """The sum of `left[i] * right[i]` in single precision; every fourth product is in the same one of four
    accumulators.

    Example: `%s = kernel.dot_product %a, %b : vector<64xf32>, vector<64xf32>`
    """

    name = "kernel.dot_product"

    left: SSAValue = fields.fragment("T", "n")
    right: SSAValue = fields.fragment("T", "n")
    result: OpResult = fields.result(f32)

    syntax = "$left `,` $right"
    effects = PURE
    rules = (
        Rule("the elements are f32", lambda x: x.T.type == f32),
        Rule(
            "their number is a multiple of 4",
            lambda x: x.n > 0 and x.n % CHAINS == 0,
            lambda x: f"{x.n} is not a multiple of {CHAINS}",
        ),
    )
    cuda = Text("dot_product", "{n}", hint="dot")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        products = x.left * x.right
        return products.reshape(len(products), -1, CHAINS).sum(axis=1).sum(axis=1)
