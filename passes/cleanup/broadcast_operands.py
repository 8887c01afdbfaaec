"""Makes broadcasting explicit where an operand's length may be 1 in a run."""

from __future__ import annotations

from collections import defaultdict

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from mlirt.dialects.broadcasting import is_repeated
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.symbolic_bounds import never_broadcast
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.dialects.trt.broadcast import BroadcastOp
from mlirt.dialects.trt.broadcast_axes import broadcast_axes
from mlirt.dialects.trt.einsum import EinsumOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.passes.cleanup.rewriting import insert_before

# Layers that are not computed element by element take no operand that is repeated by its formula alone.
_PRODUCTS = (MatrixMultiplyOp, EinsumOp)


class BroadcastOperandsPass(ModulePass):
    """Put a `trt.broadcast` before each layer with an operand whose length a run may make 1, where another is longer.

    Behind it all operands of a layer have equal lengths, or a 1 that is a number, so that no later pass has to know
    about lengths that differ. Where lengths are equal by their names nothing is inserted, nor where their formulas are
    1 together: then they must be equal.

    Before:

        %z = trt.elementwise sum %x, %y : (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xf32, #trt.dims<["m"]>>) -> ...

    After:

        %a = trt.broadcast %x {size = #trt.dims<["broadcast(m, n)"]>} : (tensor<?xf32, #trt.dims<["n"]>>) -> ...
        %b = trt.broadcast %y {size = #trt.dims<["broadcast(m, n)"]>} : (tensor<?xf32, #trt.dims<["m"]>>) -> ...
        %z = trt.elementwise sum %a, %b : ...
    """

    name = "broadcast-operands"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for layer in list(op.walk()):
            _broadcast(layer)


def _broadcast(layer: Operation) -> None:
    """Give the operands of a layer the lengths that they are to have."""
    wanted: dict[int, dict[int, Dim]] = defaultdict(dict)
    for group in broadcast_axes(layer):
        target = group.target()
        for (position, axis), length in zip(group.operands, group.lengths(), strict=True):
            if _needs(layer, length, target):
                wanted[position][axis] = target
    for position, lengths in wanted.items():
        value = layer.operands[position]
        size = [lengths.get(axis, own) for axis, own in enumerate(dims(value.type))]
        made = BroadcastOp.of(value, size)
        layer.operands[position] = insert_before(layer, made)


def _needs(layer: Operation, length: Dim, target: Dim) -> bool:
    if length == 1 or is_unknown(length) or is_unknown(target) or never_broadcast(length, target):
        return False
    return isinstance(layer, _PRODUCTS) or not is_repeated(length)
