"""Stops where an op has lost the name of the layer that it came from."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from mlirt.dialects.diagnostics import OperationError
from mlirt.dialects.locations import names

# A constant belongs to no layer: several may share it.
_NAMELESS = ("trt.constant", "func.return")


@dataclass(frozen=True)
class VerifyLocationsPass(ModulePass):
    """Stop at the first op in the body of a function that names no layer; change nothing. For tests of other passes.

    Before: `%y = trt.activation relu %x : ...` without a location
    After: `error: 'trt.activation' op has lost the name of its layer`
    """

    name = "verify-locations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner.parent_op(), FuncOp) and _is_layer(inner) and not names(inner.location):
                raise OperationError(inner, "has lost the name of its layer: a rewrite must keep or join locations")


def _is_layer(op: Operation) -> bool:
    return op.name not in _NAMELESS and op.dialect_name() in ("trt", "fused", "plan")
