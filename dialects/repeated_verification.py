"""Verifies a module again and again, and of it only what is new: what passes have left alone is as right as before.

What a verifier sees of an op is the op, what is in it, and the ops that make its operands. Where none of these has
changed nothing is verified, and of ops that are alike in all of this the first one stands for the others. The elements
of constants count only where the verifier of the first one has looked at them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from operator import attrgetter
from typing import cast

from xdsl.dialects.builtin import AnyDenseElement, ArrayAttr, DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from mlirt.dialects.trt.constant import ConstantOp, looks
from mlirt.dialects.verification import verify
from mlirt.dialects.weights import WeightsAttr

_type_of = attrgetter("type")
_NEW: set[Hashable] = set()
"""Stands for a form that has not been seen."""


class RepeatedVerifier:
    """Knows what it has verified of one module. A unit is an op of a function, with all that is in it, or another op of
    the module, such as a kernel.
    """

    def __init__(self) -> None:
        self._states: dict[Operation, object] = {}
        self._forms: dict[Hashable, set[Hashable] | None] = {}
        """The forms that are right, whatever elements constants have, or the elements with which they are."""
        self.verified = 0
        """How many units have been verified so far."""

    def verify(self, module: Operation) -> None:
        """Raise the first `VerificationError` of a module; the next call begins anew then."""
        known, self._states = self._states, {}
        states: dict[Operation, object] = {}
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
        known: Mapping[Operation, object],
        states: dict[Operation, object],
        changed: set[Operation],
    ) -> None:
        for block in function.body.blocks:
            last = block.last_op
            for op in block.ops:
                if op is last or op.successors or op.has_trait(IsTerminator):  # these depend on what is around them
                    self._verify(op)
                else:
                    self._unit(op, known, states, changed, has_likes=True)
        _verify_alone(function)

    def _unit(
        self,
        op: Operation,
        known: Mapping[Operation, object],
        states: dict[Operation, object],
        changed: set[Operation],
        *,
        has_likes: bool,
    ) -> None:
        inner = list(op.walk()) if op.regions else [op]
        state = states[op] = [_state(one) for one in inner]
        if known.get(op) == state and (not changed or changed.isdisjoint(_owners(inner))):
            return
        changed.update(inner)
        if has_likes:
            self._verify_form(op)
        else:
            self._verify(op)

    def _verify_form(self, op: Operation) -> None:
        """Verify an op, unless one with an equal form is right."""
        form = _form(op, {})
        right = self._forms.get(form, _NEW)  # one look, as hashing a form is most of the work
        if right is _NEW:
            before = looks.count
            self._verify(op)
            self._forms[form] = None if looks.count == before else {_elements(op)}
            return
        if right is not None and (elements := _elements(op)) not in right:
            self._verify(op)
            right.add(elements)

    def _verify(self, unit: Operation) -> None:
        self.verified += 1
        verify(unit)


def _verify_alone(op: Operation) -> None:
    verify(op, nested=False)


def _state(op: Operation) -> object:
    """What would differ if anything of an op had changed; most of it is compared by identity."""
    operands, results = op.operands, op.results
    inner = [tuple([arg.type for arg in block.args]) for region in op.regions for block in region.blocks]
    types = [*map(_type_of, operands), *map(_type_of, results)]
    return op, operands, types, dict(op.properties), dict(op.attributes), inner


def _owners(ops: Iterable[Operation]) -> list[Operation]:
    """The ops that make their operands."""
    return [owner for op in ops for value in op.operands if isinstance(owner := value.owner, Operation)]


def _form(op: Operation, numbers: dict[SSAValue, int]) -> Hashable:
    """Ops with equal forms are both right, or both wrong, if they do not depend on the elements of constants."""
    operands = tuple([numbers[value] if value in numbers else _outside(value) for value in op.operands])
    results = _defined(op.results, numbers)
    blocks = tuple([tuple([_block(block, numbers) for block in region.blocks]) for region in op.regions])
    return type(op), op.name, operands, results, _named(op), blocks


def _block(block: Block, numbers: dict[SSAValue, int]) -> Hashable:
    return _defined(block.args, numbers), tuple([_form(op, numbers) for op in block.ops])


def _outside(value: SSAValue) -> Hashable:
    owner = value.owner
    if not isinstance(owner, Operation):
        return value.type
    return value.type, type(owner), _named(owner)


def _defined(values: Iterable[SSAValue], numbers: dict[SSAValue, int]) -> Hashable:
    types: list[Attribute] = []
    for value in values:
        numbers[value] = len(numbers)
        types.append(value.type)
    return tuple(types)


_TYPES_ALONE: Mapping[str, frozenset[str]] = {
    "plan.launch": frozenset({"tensors"}),
    "plan.buffer": frozenset({"first", "last"}),
}
"""By op, whose dialect is not imported: properties of which nobody asks more than that they have the right type."""


def _named(op: Operation) -> Hashable:
    """Properties and attributes, without the elements of a constant and without the name of weights."""
    if isinstance(op, ConstantOp):
        return tuple([(name, _form_of_elements(one)) for name, one in (*op.properties.items(), *op.attributes.items())])
    properties, attributes = op.properties, op.attributes
    if by_type := _TYPES_ALONE.get(op.name):
        properties = {name: _type_alone(one) if name in by_type else one for name, one in properties.items()}
        return tuple([*properties.items(), *attributes.items()])
    return (
        *properties.keys(),
        *[WeightsAttr if isinstance(one, WeightsAttr) else one for one in properties.values()],
        *attributes.items(),
    )


def _form_of_elements(one: Attribute) -> Hashable:
    if isinstance(one, DenseIntOrFPElementsAttr):
        dense = cast("DenseIntOrFPElementsAttr[AnyDenseElement]", one)
        return dense.name, dense.get_type(), len(dense.data.data)
    return WeightsAttr if isinstance(one, WeightsAttr) else one


def _type_alone(one: Attribute) -> Hashable:
    if isinstance(one, ArrayAttr):
        return (ArrayAttr, *map(_type_alone, cast("ArrayAttr[Attribute]", one)))
    return type(one), cast("IntegerAttr", one).type if isinstance(one, IntegerAttr) else None


def _elements(op: Operation) -> Hashable:
    """The small constants that an op, and the ops in it, have as operands."""
    owners = _owners(op.walk())
    return tuple([tuple(owner.properties.values()) for owner in owners if isinstance(owner, ConstantOp)])
