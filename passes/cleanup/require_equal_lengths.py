"""Lengths that must be equal and cannot be shown to be are noted, so that every run checks them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from mlirt.dialects.length_agreements import Agreement, set_agreements
from mlirt.dialects.locations import name_of
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.symbolic_bounds import never_broadcast
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.dialects.trt.broadcast import BroadcastOp
from mlirt.dialects.trt.broadcast_axes import broadcast_axes
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.dialects.trt.require_equal import RequireEqualOp
from mlirt.passes.cleanup.equal_lengths import equal_lengths
from mlirt.passes.cleanup.length_equations import symbol_of


class RequireEqualLengthsPass(ModulePass):
    """Note the lengths that a layer needs to agree, where they are formulas that some runs make different.

    The decoder of a U-Net doubles what its encoder has halved: it fits the encoder's images if their sizes are even. A
    run with others is refused when its shapes are bound, before any kernel reads beyond the end of a tensor.

    Layers in branches and loops need not run, and sizes that the data of a run tells are known only then. Their lengths
    are compared by a `trt.require_equal`, as soon as the run has come there and knows them; where they agree, it is
    nothing to do. Lengths that broadcast may also be 1.

    Before:

        func.func @main(%x: tensor<?xf32, #trt.dims<["h"]>>, %y: tensor<?xf32, #trt.dims<["2*(h // 2)"]>>) {
          %z = trt.elementwise sum %x, %y : ...
          trt.define_size %n {symbol = "size0"} : tensor<i64>
          %b = trt.elementwise sum %a, %y : (tensor<?xf32, #trt.dims<["size0"]>>, ...

    After:

        func.func @main(%x: tensor<?xf32, #trt.dims<["h"]>>, %y: tensor<?xf32, #trt.dims<["2*(h // 2)"]>>)
            attributes {trt.equal_lengths = [["z", #trt.dims<["h", "2*(h // 2)"]>]]} {
          %z = trt.elementwise sum %x, %y : ...
          trt.define_size %n {symbol = "size0"} : tensor<i64>
          trt.require_equal {layer = "b", lengths = #trt.dims<["size0", "2*(h // 2)"]>}
          %b = trt.elementwise sum %a, %y : (tensor<?xf32, #trt.dims<["size0"]>>, ...
    """

    name = "require-equal-lengths"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks:
                body = function.body.block
                inputs = {symbol_of(dim) for value in body.args for dim in dims(value.type)} - {""}
                found = _Comparison(frozenset(inputs), set(inputs))
                found.visit(body)
                set_agreements(function, found.of_inputs)


@dataclass
class _Comparison:
    """Walks through the blocks in the order of a run."""

    inputs: frozenset[str]
    """The symbols that the shapes of the inputs give values."""
    known: set[str]
    """These, and those that the run has given one so far."""
    compared: frozenset[Dim] = frozenset()
    repeated: frozenset[tuple[Dim, Dim]] = frozenset()
    """Lengths that have been found equal to another one, or 1."""
    of_inputs: list[Agreement] = field(default_factory=list[Agreement])
    """What can be compared before a run."""

    def visit(self, block: Block, *, is_certain: bool = True) -> None:
        """`is_certain` says whether each run comes to the block."""
        before, defined = (self.compared, self.repeated), dict[str, Operation]()
        for op in list(block.ops):
            for one in _undecided(op):
                self._compare(one, block, defined, is_certain)
            for region in op.regions:
                for inner in region.blocks:
                    self.visit(inner, is_certain=False)
            defined.update((name, op) for name in _defined_in(op))
            self.known |= _defined_in(op)
        if not is_certain:
            self.compared, self.repeated = before

    def _compare(self, one: Agreement, block: Block, defined: dict[str, Operation], is_certain: bool) -> None:
        needed = symbols(one.left) | symbols(one.right)
        if one.left - one.right in self.compared or (one.left, one.right) in self.repeated or not needed <= self.known:
            return
        if one.kind == "equal":
            self.compared |= {one.left - one.right, one.right - one.left}
        else:
            self.repeated |= {(one.left, one.right)}
        if is_certain and needed <= self.inputs:
            self.of_inputs.append(one)
            return
        # Before all that needs the sizes, as layers may move on towards what gives them their values.
        after = [op for name, op in defined.items() if name in needed]
        check = RequireEqualOp(one)
        if after:
            block.insert_op_after(check, max(after, key=block.get_operation_index))
        elif block.first_op is not None:
            block.insert_op_before(check, block.first_op)


def _undecided(op: Operation) -> Iterator[Agreement]:
    for first, *others in filter(None, equal_lengths(op)):
        for other in others:
            if other != first:
                yield Agreement(name_of(op), first, other)
    for length, target in _repeated(op):
        if length not in (1, target) and not is_unknown(length) and not is_unknown(target):
            kind = "equal" if never_broadcast(length, target) else "equal_or_one"
            yield Agreement(name_of(op), length, target, kind)


def _repeated(op: Operation) -> Iterator[tuple[Dim, Dim]]:
    """Lengths that are repeated where they are 1, with the length that they have then."""
    if isinstance(op, BroadcastOp):
        yield from zip(dims(op.input.type), op.size.dims(), strict=True)
    for group in broadcast_axes(op):
        target = group.target()
        yield from ((length, target) for length in group.lengths())


def _defined_in(op: Operation) -> set[str]:
    return {inner.symbol.data for inner in op.walk() if isinstance(inner, DefineSizeOp)}
