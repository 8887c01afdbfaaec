"""Which arguments of a kernel it may write through: launches that only read the same memory need not be in order."""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.tensor_map import TensorMapType

# What ops that both read and write call the operand that they read.
_READ_OPERAND = "source"
_LOADS = "kernel.load_"


def written_arguments(kernel: FuncOp) -> list[int]:
    """The places of the arguments that point to memory, unless every use of them is known to read."""
    return [
        place
        for place, argument in enumerate(kernel.body.block.args)
        if isinstance(argument.type, MemRefType | TensorMapType)
        and not all(_reads(use.operation, argument) for use in argument.uses)
    ]


def _reads(op: Operation, argument: SSAValue) -> bool:
    """Whether an op only reads through an operand."""
    if not op.has_trait(MemoryReadEffect):
        return False
    if not op.has_trait(MemoryWriteEffect):
        return True
    if isinstance(argument.type, TensorMapType):
        return op.name.startswith(_LOADS)
    others = [value for value in op.operands if value is not getattr(op, _READ_OPERAND, None)]
    return argument not in others
