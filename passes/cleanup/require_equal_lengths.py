"""Lengths that must be equal and cannot be shown to be are noted, so that every run checks them."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from mlirt.dialects.length_agreements import Agreement, set_agreements
from mlirt.dialects.locations import name_of
from mlirt.dialects.symbolic import symbols
from mlirt.dialects.tensor_types import dims
from mlirt.passes.cleanup.equal_lengths import equal_lengths
from mlirt.passes.cleanup.length_equations import symbol_of


class RequireEqualLengthsPass(ModulePass):
    """Note the lengths that a layer needs to be equal, where they are formulas that some shapes make different.

    The decoder of a U-Net doubles what its encoder has halved: it fits the encoder's images if their sizes are even. A
    run with others is refused when its shapes are bound, before any kernel reads beyond the end of a tensor. Layers in
    branches and loops are left out, as they need not run; so are sizes that only the data of a run tells.

    Before:

        func.func @main(%x: tensor<?xf32, #trt.dims<["h"]>>, %y: tensor<?xf32, #trt.dims<["2*(h // 2)"]>>) {
          %z = trt.elementwise sum %x, %y : ...

    After:

        func.func @main(%x: tensor<?xf32, #trt.dims<["h"]>>, %y: tensor<?xf32, #trt.dims<["2*(h // 2)"]>>)
            attributes {trt.equal_lengths = [["z", #trt.dims<["h", "2*(h // 2)"]>]]} {
          %z = trt.elementwise sum %x, %y : ...
    """

    name = "require-equal-lengths"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks:
                found = {one.left - one.right: one for one in _undecided(function)}
                set_agreements(function, list(found.values()))


def _undecided(function: FuncOp) -> Iterator[Agreement]:
    bound = {symbol_of(dim) for value in function.body.block.args for dim in dims(value.type)} - {""}
    for op in function.body.block.ops:
        for first, *others in filter(None, equal_lengths(op)):
            for other in others:
                if other != first and symbols(first) | symbols(other) <= bound:
                    yield Agreement(name_of(op), first, other)
