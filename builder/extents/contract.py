"""The contract of a kernel: the extents of its accesses to buffers, in bytes, computed from a launch's arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Operation, SSAValue

from mlirt.builder.extents.kernel_reader import NOTHING_KNOWN, Access, Condition, KernelReader
from mlirt.builder.extents.numbers import OPERANDS, Numbers
from mlirt.dialects.kernel.buffers import memory
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.tensor_types import byte_width
from mlirt.runtime.contract_checks import NOTHING_PROVED

Record = dict[str, object]


def contract_of(kernel: FuncOp, signed: Collection[int] = (), constants: Mapping[int, int] = NOTHING_KNOWN) -> Record:
    """What `runtime/extents.py` evaluates; `signed` are the places of integer arguments that may be negative.

    `constants` are the integers that every launch passes, by place: then the contract is for these alone, and shorter.
    Arguments of which something is unknown are listed as `unproved`.
    """
    return contract_from(KernelReader(kernel, frozenset(signed), constants))


class Reading(Protocol):
    """What was found out about a kernel."""

    @property
    def kernel(self) -> FuncOp: ...

    @property
    def signed(self) -> Collection[int]: ...

    @property
    def constants(self) -> Mapping[int, int]: ...

    @property
    def numbers(self) -> Numbers: ...

    @property
    def accesses(self) -> Sequence[Access]: ...

    @property
    def conditions(self) -> Sequence[Condition]: ...


def contract_from(reader: Reading) -> Record:
    """The contract of a kernel that has been read."""
    kernel, signed, constants = reader.kernel, reader.signed, reader.constants
    places: dict[SSAValue, int] = {argument: place for place, argument in enumerate(kernel.body.block.args)}
    pointers = {place for value, place in places.items() if isinstance(value.type, MemRefType)}
    unproved = {places[one.buffer] for one in reader.accesses if one.buffer in places and _ends(one) is None}
    own_are_known = all(_ends(one) is not None for one in reader.accesses if one.buffer not in places)
    if not own_are_known or any(one.number is None for one in reader.conditions):
        return {**NOTHING_PROVED, "unproved": sorted(pointers)}
    code = _Reached(reader.numbers)
    found: dict[tuple[object, ...], None] = {}
    for access in reader.accesses:
        place = places.get(access.buffer)
        ends, guards = _ends(access), _open_guards(reader, access.guards)
        if ends is not None and guards is not None and (place is None or place not in unproved):
            found[_owner(access.buffer, place) + tuple(map(code.number, (*ends, *guards)))] = None
    conditions: dict[tuple[int, ...], None] = {}
    for one in reader.conditions:
        guards = _open_guards(reader, one.guards)
        if guards is not None and one.number is not None and _open_guards(reader, [one.number]) != []:
            conditions[tuple(map(code.number, (one.number, *guards)))] = None
    return {
        "signed": sorted(set(signed).difference(constants)),
        "constants": sorted(constants.items()),
        "numbers": code.instructions,
        "conditions": [list(one) for one in conditions],
        "extents": [list(one) for one in found],
        "unproved": sorted(unproved),
    }


def _open_guards(reader: Reading, guards: Iterable[int]) -> list[int] | None:
    """The guards that are not sure to be at least 0; None where one is sure not to be."""
    values = {one: reader.numbers.value(one) for one in sorted(guards)}
    if any(value is not None and value < 0 for value in values.values()):
        return None
    return [one for one, value in values.items() if value is None]


def _ends(access: Access) -> tuple[int, int] | None:
    """The numbers of the first and the last element, where both are known."""
    return None if access.low is None or access.high is None else (access.low, access.high)


def _owner(buffer: SSAValue, place: int | None) -> tuple[object, ...]:
    """The argument, or the bytes of the kernel's own memory, and the bytes of an element."""
    width = byte_width(memory(buffer).element_type)
    return (place, None, width) if place is not None else (None, _own_bytes(buffer), width)


def _own_bytes(buffer: SSAValue) -> int:
    """The size of memory of a kernel's own; 0, where no access is inside, for memory that says nothing of it."""
    owner = buffer.owner
    given: Mapping[str, object] = owner.properties if isinstance(owner, Operation) else {}
    elements = given.get("elements")
    shape = memory(buffer).get_shape()
    if isinstance(elements, IntegerAttr):
        return elements.value.data * byte_width(memory(buffer).element_type)
    return max(shape[0], 0) * byte_width(memory(buffer).element_type) if len(shape) == 1 else 0


class _Reached:
    """The instructions that something uses, numbered anew."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._places: dict[int, int] = {}
        self.instructions: list[list[object]] = []

    def number(self, old: int) -> int:
        todo = [old]
        while todo:
            one = todo[-1]
            operation, *operands = self._numbers.code[one]
            operands = operands[: OPERANDS[operation]]
            is_given = operation in ("const", "arg", "grid")
            missing = [] if is_given else [operand for operand in operands if operand not in self._places]
            if missing and one not in self._places:
                todo += missing
                continue
            todo.pop()
            if one not in self._places:
                self._places[one] = len(self.instructions)
                places = operands if is_given else [self._places[operand] for operand in operands]
                self.instructions.append([operation, *places])
        return self._places[old]
