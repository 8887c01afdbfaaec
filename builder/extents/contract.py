"""The contract of a kernel: which bytes of its buffers it touches, computed from the numbers that a launch passes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Operation, SSAValue

from mlirt.builder.extents.kernel_reader import Access, KernelReader
from mlirt.builder.extents.numbers import OPERANDS, Numbers
from mlirt.dialects.kernel.buffers import memory
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.tensor_types import byte_width

Record = dict[str, object]


def contract_of(kernel: FuncOp, signed: Collection[int] = ()) -> Record:
    """What `runtime/extents.py` evaluates; `signed` are the places of integer arguments that may be negative.

    Arguments of which something is unknown are listed as `unproved`.
    """
    reader = KernelReader(kernel, frozenset(signed))
    places: dict[SSAValue, int] = {argument: place for place, argument in enumerate(kernel.body.block.args)}
    pointers = {place for value, place in places.items() if isinstance(value.type, MemRefType)}
    unproved = {places[one.buffer] for one in reader.accesses if one.buffer in places and _ends(one) is None}
    own_are_known = all(_ends(one) is not None for one in reader.accesses if one.buffer not in places)
    if not own_are_known or any(one.number is None for one in reader.conditions):
        unproved = pointers
    code = _Reached(reader.ranges.numbers)
    found: dict[tuple[object, ...], None] = {}
    for access in reader.accesses:
        place = places.get(access.buffer)
        ends = _ends(access)
        if ends is not None and (place is None or place not in unproved):
            found[_owner(access.buffer, place) + tuple(map(code.number, (*ends, *sorted(access.guards))))] = None
    conditions = {
        tuple(map(code.number, (one.number, *sorted(one.guards)))): None
        for one in reader.conditions
        if one.number is not None
    }
    return {
        "signed": sorted(signed),
        "numbers": code.instructions,
        "conditions": [list(one) for one in conditions],
        "extents": [list(one) for one in found],
        "unproved": sorted(unproved),
    }


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
