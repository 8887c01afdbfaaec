"""The remainder of floating-point numbers, which MLIR calls `arith.remf` and xDSL's `arith` lacks."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AnyFloatConstr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, VarConstraint, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure, SameOperandsAndResultType

SCALARS = frozenset({"arith", "math", "kernel.remf"})  # dialects and ops that compute one number from others


def computes_a_number(op: Operation) -> bool:
    """Whether an op is arithmetic on scalars."""
    return op.dialect_name() in SCALARS or op.name in SCALARS


@irdl_op_definition
class RemFOp(IRDLOperation):
    """What is left of `left` after a whole number of times `right`, rounded toward zero: exact, as C's `fmod`.

    It has the sign of `left`. The remainder of an infinity, or by zero, is not a number; by an infinity it is `left`.

    Example: `%r = kernel.remf %a, %b : f32`
    """

    name = "kernel.remf"

    T: ClassVar = VarConstraint("T", AnyFloatConstr)

    left = operand_def(T)
    right = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure(), SameOperandsAndResultType())
    assembly_format = "$left `,` $right attr-dict `:` type($result)"

    def __init__(self, left: SSAValue, right: SSAValue) -> None:
        super().__init__(operands=[left, right], result_types=[left.type])
