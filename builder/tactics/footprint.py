"""How much memory a run of a network touches: with little of it, weights stay in the device's cache between runs."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.tensor_types import stored_bytes
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.typical_sizes import typical


def touched_bytes(module: ModuleOp, known: Mapping[str, int]) -> int:
    """The bytes of all constants, and of the largest tensor twice: memory of others is used again."""

    def size(type_: Attribute) -> int:
        return typical(stored_bytes(type_), known)

    constants = sum(size(op.output.type) for op in module.walk() if isinstance(op, ConstantOp))
    results = [size(value.type) for op in module.walk() if isinstance(op, FusedOp) for value in op.results]
    return constants + 2 * max(results, default=0)


def given_bytes(module: ModuleOp, known: Mapping[str, int]) -> int:
    """The bytes of all inputs of the network."""
    arguments = entry_function(module).body.block.args
    return sum(typical(stored_bytes(argument.type), known) for argument in arguments)
