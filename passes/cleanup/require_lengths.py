"""Run-time shape checks: notes what layers need of lengths and nothing proves, so that every run checks it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from mlirt.dialects.length_requirements import LengthRequirement, requirements_of, set_requirements
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.dialects.trt.require_lengths import RequireLengthsOp
from mlirt.passes.cleanup.length_equations import symbol_of
from mlirt.passes.cleanup.repeated_requirements import RepeatedRequirements


@dataclass(frozen=True)
class RequireLengthsPass(ModulePass):
    """Note what layers need of lengths that are formulas, where some runs have others: equal, long enough, divisible.

    The decoder of a U-Net doubles what its encoder has halved: it fits the encoder's images if their sizes are even. A
    run with others is refused when its shapes are bound, before any kernel reads beyond the end of a tensor.

    Layers in branches and loops need not run, and sizes that the data of a run tells are known only then. What they
    need is checked by a `trt.require_lengths`, as soon as the run has come there and knows them; where it holds, there
    is nothing to do. With `inputs_only` such layers wait for the next time.

    Before:

        func.func @main(%x: tensor<?xf32, #trt.dims<["h"]>>, %y: tensor<?xf32, #trt.dims<["2*(h // 2)"]>>) {
          %z = trt.elementwise sum %x, %y : ...
          trt.define_size %n {symbol = "size0"} : tensor<i64>
          %b = trt.elementwise sum %a, %y : (tensor<?xf32, #trt.dims<["size0"]>>, ...

    After:

        func.func @main(%x: tensor<?xf32, #trt.dims<["h"]>>, %y: tensor<?xf32, #trt.dims<["2*(h // 2)"]>>)
            attributes {trt.length_requirements = [["z", "equal", #trt.dims<["h", "2*(h // 2)", "1"]>, "..."]]} {
          %z = trt.elementwise sum %x, %y : ...
          trt.define_size %n {symbol = "size0"} : tensor<i64>
          trt.require_lengths {layer = "b", relation = "equal", lengths = #trt.dims<["size0", "2*(h // 2)", "1"]>, ...}
          %b = trt.elementwise sum %a, %y : (tensor<?xf32, #trt.dims<["size0"]>>, ...
    """

    name = "require-lengths"

    inputs_only: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks:
                body = function.body.block
                inputs = {symbol_of(dim) for value in body.args for dim in dims(value.type)} - {""}
                noted = [one for one in requirements_of(function) if not one.holds()]
                claims = frozenset(claim for one in noted for claim in one.claims)
                found = _Requirements(frozenset(inputs), self.inputs_only, set(inputs), claims, noted)
                found.visit(body)
                set_requirements(function, found.of_inputs)


@dataclass
class _Requirements:
    """Walks through the blocks in the order of a run."""

    inputs: frozenset[str]
    """The symbols that the shapes of the inputs give values."""
    inputs_only: bool
    known: set[str]
    """These, and those that the run has given one so far."""
    claims: frozenset[object]
    """What has been checked by then."""
    of_inputs: list[LengthRequirement]
    """What can be checked before a run."""
    inserted: dict[tuple[Block, Operation | None], Operation] = field(
        default_factory=dict[tuple[Block, Operation | None], Operation]
    )
    """The last check behind an op, or at the front of a block."""
    layers: RepeatedRequirements = field(default_factory=lambda: RepeatedRequirements(_is_undecided))
    waiting: list[LengthRequirement] = field(default_factory=list[LengthRequirement])
    """What needs sizes that are not known yet: those of what a loop collects until it ends."""

    def visit(self, block: Block, *, is_certain: bool = True) -> None:
        """`is_certain` says whether each run comes to the block."""
        before, waiting, defined = self.claims, self.waiting, dict[str, Operation]()
        self.waiting = []
        for op in list(block.ops):
            for one in self._undecided(op):
                self._check(one, op, block, defined, is_certain)
            for region in op.regions:
                for inner in region.blocks:
                    self.visit(inner, is_certain=False)
            names = _defined_in(op) if op.regions or isinstance(op, DefineSizeOp) else set[str]()
            if not names:
                continue
            defined.update((name, op) for name in names)
            self.known |= names
            late = [one for one in self.waiting if self._is_known(one)]
            self.waiting = [one for one in self.waiting if one not in late]
            for one in late:
                self._check(one, op, block, defined, is_certain)
        self.waiting = [*waiting, *self.waiting]
        if not is_certain:
            self.claims = before

    def _undecided(self, op: Operation) -> list[LengthRequirement]:
        return [one if one.layer else replace(one, layer=name_of(op)) for one in self.layers.of(op)]

    def _is_known(self, one: LengthRequirement) -> bool:
        return one.symbols <= self.known

    def _check(
        self, one: LengthRequirement, op: Operation, block: Block, defined: dict[str, Operation], is_certain: bool
    ) -> None:
        if one.claim in self.claims:
            _erase(op)
            return
        if not self._is_known(one):
            self._wait(one, op)
            return
        if is_certain and one.symbols <= self.inputs:
            self.of_inputs.append(one)
            _erase(op)
        elif self.inputs_only:
            return
        else:
            self._insert(one, op, block, defined)
            _erase(op)
        self.claims |= one.claims

    def _wait(self, one: LengthRequirement, op: Operation) -> None:
        if not self.inputs_only:
            self.waiting.append(one)
            _erase(op)

    def _insert(self, one: LengthRequirement, op: Operation, block: Block, defined: dict[str, Operation]) -> None:
        """Before all that needs the sizes, as layers may move on towards what gives them their values."""
        after = [definition for name, definition in defined.items() if name in one.symbols]
        place = max(after, key=block.get_operation_index) if after else None
        check = RequireLengthsOp(one)
        check.location = op.location
        before = self.inserted.get((block, place), place)
        if before is not None and before.parent is block:
            block.insert_op_after(check, before)
        elif block.first_op is not None:
            block.insert_op_before(check, block.first_op)
        self.inserted[block, place] = check


def _is_undecided(one: LengthRequirement) -> bool:
    return not one.holds() and not any(map(is_unknown, one.lengths))


def _erase(op: Operation) -> None:
    """What asks for nothing else goes once it is noted."""
    if isinstance(op, RequireLengthsOp) and op.parent is not None:
        op.parent.erase_op(op)


def _defined_in(op: Operation) -> set[str]:
    return {inner.symbol.data for inner in op.walk() if isinstance(inner, DefineSizeOp)}
