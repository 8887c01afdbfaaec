"""Memoizes lowerings: what a tactic did for an op is done again for equal ones, with their tensors.

Two ops are equal where nothing differs that a tactic sees: name, attributes, regions, types, which operands are the
same or constant, and where their tensors lie. The elements of a constant count only where the tactic has read them
itself, not where it left them to `Lowering.packed`. Of a result that lies in a concatenation only the alignment counts:
its position is an argument of launches, which a repetition replaces.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Literal, TypeAlias

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.joining import JoiningOp
from mlirt.dialects.fused.plugin import PluginOp
from mlirt.dialects.plan.border import Border
from mlirt.dialects.plan.expression import Argument, PointerAttr
from mlirt.dialects.plan.ops import LaunchOp, WeightOp
from mlirt.dialects.plan.tensor_map import TensorMapAttr
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightsAttr
from mlirt.kernels.lib.builder.placement import Pack, Packed, Placement, Placements
from mlirt.kernels.lib.tactics.kernel_identity import region_identity

if TYPE_CHECKING:
    from mlirt.kernels.lib.tactics.lowering import Lowering

Grid: TypeAlias = "Sequence[Dim] | None"


# What a step has made, by its number, or where the operands and results lie, by theirs.
_Role: TypeAlias = "tuple[Literal['made', 'value'], int]"


@dataclass(frozen=True)
class _Scratch:
    size: Dim
    border: Border | None


@dataclass(frozen=True)
class _Weight:
    attr: WeightsAttr


@dataclass(frozen=True)
class _Constant:
    """The elements of a constant operand as they are stored."""

    operand: int


@dataclass(frozen=True)
class _PackedConstant:
    operand: int
    pack: Pack
    hint: str
    as_halves: bool


@dataclass(frozen=True)
class _Launch:
    kernel: str
    buffers: Sequence[_Role]
    arguments: Sequence[Argument]
    grid: Grid


_Memory: TypeAlias = "_Scratch | _Weight | _PackedConstant"

# Tactics ask whether a tensor starts at a multiple of some power of two, so that an access may be wide. Where they
# ask it of the start plus a number, the power is the bytes of an access.
_MAX_ALIGNMENT, _MAX_ACCESS = 1024, 64


@dataclass(frozen=True)
class _Part:
    """An operand or result that is a part of a buffer which an equal op may have elsewhere in the same buffer."""

    role: _Role
    place: Placement

    def may_move(self, argument: Argument, roles: Sequence[_Role]) -> bool:
        """Whether an argument of a launch on buffers with such roles could as well be for another part."""
        part, own = argument.part_numbers() if isinstance(argument, PointerAttr) else [], self.place.part
        return not part or not self._is_meant(argument, roles) or tuple(part[: len(own)]) == own

    def moved(self, argument: Argument, roles: Sequence[_Role], now: Placement) -> Argument:
        """The same argument for another part."""
        if not self._is_meant(argument, roles):
            return argument
        assert isinstance(argument, PointerAttr | TensorMapAttr)
        offset = now.offset + (argument.value() - self.place.offset)
        if isinstance(argument, TensorMapAttr):
            return argument.at(offset)
        rest = argument.part_numbers()[len(self.place.part) :]
        return PointerAttr.of(argument.operand.data, offset, (*now.part, *rest) if argument.part else ())

    def _is_meant(self, argument: Argument, roles: Sequence[_Role]) -> bool:
        return isinstance(argument, PointerAttr | TensorMapAttr) and roles[argument.operand.data] == self.role


class Recording:
    """What a tactic does for one op; nothing of it is repeated where it does more than is recorded here."""

    def __init__(self, op: Operation, placements: Placements) -> None:
        self._op = op
        self._placements = placements
        self._before = op.prev_op
        self._placed = {k for k, result in enumerate(op.results) if placements.find(result) is not None}
        self._part = _part_of(op, placements)
        self._read: set[int] = set()  # the operands whose elements the tactic has read
        self._steps: list[_Memory | _Constant | _Launch] = []
        self._roles: dict[SSAValue, _Role] = {}
        self._inserted: set[Operation] = set()
        self._is_complete = True

    def has_read(self, value: SSAValue) -> None:
        """The tactic has looked at the elements of a constant."""
        self._read.add(self._operand(value))

    def scratch(self, buffer: SSAValue, size: Dim, border: Border | None) -> None:
        """The tactic, or a result, has got memory of its own."""
        self._memory(buffer, _Scratch(size, border))

    def weight(self, buffer: SSAValue, attr: WeightsAttr) -> None:
        """The tactic uses an array that no operand has a part in, such as a table of places."""
        self._memory(buffer, _Weight(attr))

    def constant(self, buffer: SSAValue, value: SSAValue) -> None:
        """The tactic uses the elements of a constant where they lie."""
        self._steps.append(_Constant(self._operand(value)))
        self._inserted_by(buffer)

    def packed(self, buffer: SSAValue, packed: Packed, hint: str) -> None:
        """The tactic uses the elements of a constant in another order."""
        self._memory(buffer, _PackedConstant(self._operand(packed.value), packed.pack, hint, packed.as_halves))

    def launch(self, made: LaunchOp, buffers: Sequence[SSAValue], arguments: Sequence[Argument], grid: Grid) -> None:
        """The tactic launches a kernel."""
        self._inserted.add(made)
        roles = [self._role(buffer) for buffer in buffers]
        self._is_complete &= self._part is None or all(self._part.may_move(one, roles) for one in arguments)
        self._steps.append(_Launch(made.kernel.root_reference.data, roles, list(arguments), grid))

    def recipe(self) -> tuple[Recipe, frozenset[int]] | None:
        """What to do for an equal op, and the operands whose elements have to be equal, too; None where the tactic has
        done what cannot be repeated.
        """
        results: dict[int, tuple[_Role, Placement]] = {}
        for k, value in enumerate(self._op.results):
            place = self._placements.find(value)
            if k not in self._placed and place is not None:
                results[k] = self._role(place.buffer), place
        if not self._is_complete or not self._inserted.issuperset(self._new_ops()):
            return None
        return Recipe(self._steps, results, self._part), frozenset(self._read)

    def _new_ops(self) -> Iterator[Operation]:
        block = self._op.parent
        assert block is not None
        at = block.first_op if self._before is None else self._before.next_op
        while at is not None and at is not self._op:
            yield at
            at = at.next_op

    def _memory(self, buffer: SSAValue, step: _Memory) -> None:
        self._inserted_by(buffer)
        if buffer not in self._roles:
            self._roles[buffer] = "made", len(self._steps)
            self._steps.append(step)
        elif self._steps[self._roles[buffer][1]] != step:
            self._is_complete = False  # equal bytes share a buffer: which of the two a kernel means nobody can tell

    def _inserted_by(self, buffer: SSAValue) -> None:
        if isinstance(buffer.owner, Operation):
            self._inserted.add(buffer.owner)

    def _operand(self, value: SSAValue) -> int:
        found = next((k for k, operand in enumerate(self._op.operands) if operand is value), None)
        self._is_complete &= found is not None
        return found or 0

    def _role(self, buffer: SSAValue) -> _Role:
        """Which buffer that is. Of weights with equal bytes nobody can tell which are meant."""
        found = [self._roles[buffer]] if buffer in self._roles else []
        values = [*self._op.operands, *self._op.results]
        for k, value in enumerate(values):
            place = self._placements.find(value)
            if place is not None and place.buffer is buffer and not any(value is other for other in values[:k]):
                found.append(("value", k))
        self._is_complete &= len(found) == 1 or (bool(found) and not isinstance(buffer.owner, WeightOp))
        return found[0] if found else ("value", 0)


@dataclass(frozen=True)
class Recipe:
    """Memory and launches for an op, in the order in which they come into being, and where its results then lie."""

    steps: Sequence[_Memory | _Constant | _Launch]
    results: Mapping[int, tuple[_Role, Placement]]
    part: _Part | None = None

    def replay(self, op: Operation, lowering: Lowering) -> None:
        """Lower an op that equals the one that this was recorded for."""
        places = lowering.placements
        values = [*op.operands, *op.results]
        made: dict[int, SSAValue] = {}

        def buffer(role: _Role) -> SSAValue:
            kind, number = role
            return made[number] if kind == "made" else places[values[number]].buffer

        for number, step in enumerate(self.steps):
            match step:
                case _Launch():
                    buffers = [buffer(role) for role in step.buffers]
                    lowering.launch_named(step.kernel, buffers, self._arguments(step, values, places), op, step.grid)
                case _Scratch():
                    made[number] = places.scratch(step.size, step.border)
                case _Weight():
                    made[number] = places.weight(step.attr)
                case _PackedConstant():
                    made[number] = _packed_weight(step, op.operands[step.operand], lowering)
                case _Constant():
                    places[op.operands[step.operand]]
        for k, (role, place) in self.results.items():
            places.assume(op.results[k], Placement(buffer(role), place.offset, place.strides, place.part))

    def _arguments(self, step: _Launch, values: Sequence[SSAValue], places: Placements) -> Sequence[Argument]:
        """The arguments of a launch, with pointers to the part that the op has."""
        if self.part is None:
            return step.arguments
        now = places[values[self.part.role[1]]]
        return [self.part.moved(one, step.buffers, now) for one in step.arguments]


def _packed_weight(step: _PackedConstant, value: SSAValue, lowering: Lowering) -> SSAValue:
    """The buffer of a packed constant; one that many equal ops read is packed once for all of them."""
    constant = value.owner
    assert isinstance(constant, ConstantOp)
    source = constant.value if isinstance(constant.value, WeightsAttr) else None
    attr = lowering.repacked.get((step, source)) if source is not None else None
    if attr is not None:
        return lowering.placements.weight(attr)
    buffer = lowering.placements.new_weight(lowering.packed(value, step.pack, as_halves=step.as_halves), step.hint)
    if source is not None and isinstance(buffer.owner, WeightOp):
        lowering.repacked[step, source] = buffer.owner.value
    return buffer


class Recipes:
    """The recipes of one function, by what makes ops equal."""

    def __init__(self) -> None:
        self._of: dict[Hashable, tuple[tuple[int, ...], dict[Hashable, Recipe]]] = {}

    def find(self, key: Hashable, op: Operation) -> Recipe | None:
        """The recipe for an op with a key, if an equal one has been lowered."""
        read, known = self._of.get(key, ((), {}))
        return known.get(_elements(op, read)) if known else None

    def keep(self, key: Hashable, op: Operation, recording: Recording) -> None:
        """Remember what was done for an op."""
        found = recording.recipe()
        if found is None:
            return
        recipe, now = found
        read, known = self._of.get(key, ((), {}))
        every = tuple(sorted({*read, *now}))
        if every != read:
            known = {}
        known[_elements(op, every)] = recipe
        self._of[key] = every, known


def key_of(op: Operation, lowering: Lowering) -> Hashable | None:
    """What makes ops equal but for the elements of their constants; None for one that is always lowered by itself.

    Those are plugins, whose state is their own, concatenations, and the first op that writes into one, which makes its
    memory.
    """
    if isinstance(op, PluginOp | JoiningOp):
        return None
    placements, block = lowering.placements, lowering.block
    if not all(placements.find_joined(value) for value in op.results if placements.is_in_place(value)):
        return None
    part = _part_of(op, placements)
    buffers: dict[SSAValue, int] = {}
    values: dict[SSAValue, int] = {}
    places: list[Hashable] = []
    for value in (*op.operands, *op.results):
        number = values.setdefault(value, len(values))
        place = placements.find_shown(value)
        if isinstance(value.owner, ConstantOp):
            lies: Hashable = "halves" if lowering.are_halves(value) else "constant"
        elif place is not None:
            at = buffers.setdefault(place.buffer, len(buffers))
            lies = at, placements.size_of(place.buffer), *_position(place, part), place.strides
        elif value.owner is op:
            lies = None
        else:
            return None
        places.append((number, value.type, lies))
    properties = tuple(op.properties.items()), tuple(op.attributes.items())
    return op.name, op.parent is block, properties, tuple(places), tuple([region_identity(one) for one in op.regions])


def _part_of(op: Operation, placements: Placements) -> _Part | None:
    """The result of an op that lies in a concatenation, where the op has nothing else in that buffer."""
    values = [*op.operands, *op.results]
    places = [placements.find(value) for value in values]
    for k in range(len(op.operands), len(values)):
        place = places[k]
        if place is not None and placements.is_in_place(values[k]):
            alone = sum(other is not None and other.buffer is place.buffer for other in places) == 1
            return _Part(("value", k), place) if alone else None
    return None


def _position(place: Placement, part: _Part | None) -> tuple[Hashable, Hashable]:
    """Where a tensor starts in a buffer, as far as equal ops agree in it."""
    if part is None or part.place is not place or not isinstance(place.offset, int):
        return place.offset, place.part
    aligned = place.offset % _MAX_ACCESS, gcd(place.offset, _MAX_ALIGNMENT)
    return aligned, len(place.part)


def _elements(op: Operation, read: Sequence[int]) -> Hashable:
    """The elements of operands that are constants, by their digests."""
    owners = [op.operands[k].owner for k in read]
    return tuple([owner.value if isinstance(owner, ConstantOp) else None for owner in owners])
