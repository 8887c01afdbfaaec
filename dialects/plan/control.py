"""What decides how the host program goes on: branches, loops, and checks, each on a byte or a word in memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoTerminator

from mlirt.dialects.length_requirements import LengthRequirement, Relation
from mlirt.dialects.plan.expression import BufferType, ExpressionAttr
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require

_START = ExpressionAttr.of(0)


@irdl_op_definition
class IfOp(IRDLOperation):
    """Do what stands in the first region where the byte at `offset` of the buffer is not 0, else the second.

    Example: `plan.if %c : !plan.memory { plan.launch %a {kernel = @k, args = []} : !plan.memory } else { }`
    """

    name = "plan.if"

    condition = operand_def(BufferType)
    offset = prop_def(ExpressionAttr, default_value=_START)
    then = region_def()
    otherwise = region_def()
    traits = traits_def(NoTerminator(), MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$condition attr-dict `:` type($condition) $then `else` $otherwise"

    def __init__(self, condition: SSAValue, offset: Dim, then: Region, otherwise: Region):
        super().__init__(
            operands=[condition], properties={"offset": ExpressionAttr.of(offset)}, regions=[then, otherwise]
        )


@irdl_op_definition
class WhileOp(IRDLOperation):
    """Do what stands in the first region; where the byte at `offset` of the buffer is not 0 then, do what stands in the
    second, and begin again.

    Example: `plan.while %c : !plan.memory { } do { plan.launch %c {kernel = @k, args = []} : !plan.memory }`
    """

    name = "plan.while"

    condition = operand_def(BufferType)
    offset = prop_def(ExpressionAttr, default_value=_START)
    before = region_def()
    body = region_def()
    traits = traits_def(NoTerminator(), MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$condition attr-dict `:` type($condition) $before `do` $body"

    def __init__(self, condition: SSAValue, offset: Dim, before: Region, body: Region):
        super().__init__(operands=[condition], properties={"offset": ExpressionAttr.of(offset)}, regions=[before, body])


@irdl_op_definition
class SizeOp(IRDLOperation):
    """Say what a symbol stands for that only the run can tell: the 64-bit word in memory, or else a formula.

    A run is made with a guess; where the guess is wrong it stops here, and is made again with the right number.

    C1: there is either a word or a formula.

    Example: `plan.size %n {symbol = "n1"} : !plan.memory`
    """

    name = "plan.size"

    word = opt_operand_def(BufferType)
    symbol = prop_def(StringAttr)
    offset = prop_def(ExpressionAttr, default_value=_START)
    value = opt_prop_def(ExpressionAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "($word^)? attr-dict (`:` type($word)^)?"

    def __init__(self, symbol: str, word: SSAValue | None, offset: Dim = 0, value: Dim | None = None):
        super().__init__(
            operands=[word],
            properties={
                "symbol": StringAttr(symbol),
                "offset": ExpressionAttr.of(offset),
                "value": None if value is None else ExpressionAttr.of(value),
            },
        )

    def verify_(self) -> None:
        require((self.word is None) == (self.value is not None), f"C1: {self.name} has both or none of word and value")


@irdl_op_definition
class RequireOp(IRDLOperation):
    """End the run with an error where the byte at `offset` of the buffer is 0.

    Example: `plan.require %c {message = "loop1: the iterator ends before the loop does"} : !plan.memory`
    """

    name = "plan.require"

    condition = operand_def(BufferType)
    offset = prop_def(ExpressionAttr, default_value=_START)
    message = prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$condition attr-dict `:` type($condition)"

    def __init__(self, condition: SSAValue, offset: Dim, message: str):
        super().__init__(
            operands=[condition],
            properties={"offset": ExpressionAttr.of(offset), "message": StringAttr(message)},
        )


@irdl_op_definition
class RequireLengthsOp(IRDLOperation):
    """End the run with an error where two formulas are not in the relation that a layer needs, and `where` is not 0.

    Example: `plan.require_lengths {layer = "join", relation = "equal", left = #plan.expression<"n1">,
    right = #plan.expression<"n">, where = #plan.expression<"1">, fault = "lengths {left} and {right}"}`
    """

    name = "plan.require_lengths"

    layer = prop_def(StringAttr)
    relation = prop_def(StringAttr)
    left = prop_def(ExpressionAttr)
    right = prop_def(ExpressionAttr)
    where = prop_def(ExpressionAttr)
    fault = prop_def(StringAttr)
    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, requirement: LengthRequirement):
        super().__init__(
            properties={
                "layer": StringAttr(requirement.layer),
                "relation": StringAttr(str(requirement.relation)),
                "left": ExpressionAttr.of(requirement.left),
                "right": ExpressionAttr.of(requirement.right),
                "where": ExpressionAttr.of(requirement.where),
                "fault": StringAttr(requirement.fault),
            }
        )

    def requirement(self) -> LengthRequirement:
        left, right, where = (one.value() for one in (self.left, self.right, self.where))
        relation = Relation(self.relation.data)
        return LengthRequirement(relation, left, right, self.fault.data, "", where, self.layer.data)


Control = IfOp | WhileOp | SizeOp | RequireOp | RequireLengthsOp


def ops_in(region: Region) -> Sequence[Operation]:
    """The ops of a region that may be empty."""
    return [] if region.first_block is None else list(region.first_block.ops)


def looked_at(op: Control) -> SSAValue | None:
    """The buffer that decides."""
    if isinstance(op, RequireLengthsOp):
        return None
    return op.word if isinstance(op, SizeOp) else op.condition
