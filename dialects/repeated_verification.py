"""Verifies a module again and again, and of it only what is new: what passes have left alone is as right as before.

What a verifier sees of an op is the op, what is in it, and the ops that make its operands. Where none of these has
changed nothing is verified, and of ops that are alike in all of this the first one stands for the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from mlirt.dialects.verification import verify
from mlirt.dialects.weights import WeightsAttr


class RepeatedVerifier:
    """Knows what it has verified of one module. A unit is an op of a function, with all that is in it, or another op of
    the module, such as a kernel.
    """

    def __init__(self) -> None:
        self._states: dict[Operation, Hashable] = {}
        self._forms: set[Hashable] = set()
        self.verified = 0
        """How many units have been verified so far."""

    def verify(self, module: Operation) -> None:
        """Raise the first `VerificationError` of a module; the next call begins anew then."""
        known, self._states = self._states, {}
        states: dict[Operation, Hashable] = {}
        changed: set[Operation] = set()
        for block in (block for region in module.regions for block in region.blocks):
            for op in block.ops:
                if isinstance(op, FuncOp):
                    self._function(op, known, states, changed)
                else:
                    self._unit(op, known, states, changed, has_likes=False)
        _verify_alone(module)
        self._states = states

    def _function(
        self,
        function: FuncOp,
        known: Mapping[Operation, Hashable],
        states: dict[Operation, Hashable],
        changed: set[Operation],
    ) -> None:
        for block in function.body.blocks:
            for op in block.ops:
                ends = op is block.last_op or op.has_trait(IsTerminator)
                if ends or op.successors:  # these depend on what is around them
                    self._verify(op)
                else:
                    self._unit(op, known, states, changed, has_likes=True)
        _verify_alone(function)

    def _unit(
        self,
        op: Operation,
        known: Mapping[Operation, Hashable],
        states: dict[Operation, Hashable],
        changed: set[Operation],
        *,
        has_likes: bool,
    ) -> None:
        inner = list(op.walk()) if op.regions else [op]
        state = states[op] = _state(inner)
        if known.get(op) == state and changed.isdisjoint(_owners(inner)):
            return
        changed.update(inner)
        if not has_likes:
            self._verify(op)
            return
        form = _form(op, {})
        if form not in self._forms:
            self._verify(op)
            self._forms.add(form)

    def _verify(self, unit: Operation) -> None:
        self.verified += 1
        verify(unit)


def _verify_alone(op: Operation) -> None:
    verify(op, nested=False)


def _state(ops: Iterable[Operation]) -> Hashable:
    """What would differ if anything of these ops had changed; most of it is compared by identity."""
    return tuple(
        [
            (
                op,
                tuple([(value, value.type) for value in op.operands]),
                tuple([value.type for value in op.results]),
                tuple(op.properties.items()),
                tuple(op.attributes.items()),
                tuple([tuple([arg.type for arg in block.args]) for region in op.regions for block in region.blocks]),
            )
            for op in ops
        ]
    )


def _owners(ops: Iterable[Operation]) -> list[Operation]:
    """The ops that make their operands."""
    return [value.owner for op in ops for value in op.operands if isinstance(value.owner, Operation)]


def _form(op: Operation, numbers: dict[SSAValue, int]) -> Hashable:
    """Ops with equal forms are both right, or both wrong."""
    operands = tuple([numbers[value] if value in numbers else _outside(value) for value in op.operands])
    results = _defined(op.results, numbers)
    blocks = [tuple([_block(block, numbers) for block in region.blocks]) for region in op.regions]
    return type(op), op.name, operands, results, _attributes(op.properties), _attributes(op.attributes), tuple(blocks)


def _block(block: Block, numbers: dict[SSAValue, int]) -> Hashable:
    return _defined(block.args, numbers), tuple([_form(op, numbers) for op in block.ops])


def _outside(value: SSAValue) -> Hashable:
    owner = value.owner
    if not isinstance(owner, Operation):
        return value.type
    return value.type, type(owner), _attributes(owner.properties), _attributes(owner.attributes)


def _defined(values: Iterable[SSAValue], numbers: dict[SSAValue, int]) -> Hashable:
    types: list[Attribute] = []
    for value in values:
        numbers[value] = len(numbers)
        types.append(value.type)
    return tuple(types)


def _attributes(given: Mapping[str, Attribute]) -> Hashable:
    """Which array weights are is nothing that a verifier asks for."""
    return tuple([(name, WeightsAttr if isinstance(one, WeightsAttr) else one) for name, one in given.items()])
