"""Dependences between launches: those that share memory which one of them writes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.kernel.argument_effects import written_arguments
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.plugin import PluginOp
from mlirt.dialects.plan.expression import PointerAttr
from mlirt.dialects.plan.ops import BufferOp, LaunchOp, ViewOp, WeightOp
from mlirt.dialects.plan.tensor_map import TensorMapAttr

# The memory, the part of it (all of it where there are no numbers), and whether it may be written.
Access = tuple[Hashable, tuple[int, ...], bool]
Written = Mapping[str, frozenset[int]]


def written_by_kernel(ops: Iterable[Operation]) -> Written:
    """For each kernel among ops the places of the arguments that it may write through."""
    found: dict[str, frozenset[int]] = {}
    for op in ops:
        if isinstance(op, FuncOp | PluginOp):
            written = op.written if isinstance(op, PluginOp) else written_arguments(op)
            found[op.sym_name.data] = frozenset(written)
    return found


def stretches(block: Block) -> Iterator[list[LaunchOp]]:
    """Launches of a block that follow each other, with nothing but declarations of memory between them."""
    found: list[LaunchOp] = []
    for op in block.ops:
        if isinstance(op, LaunchOp):
            found.append(op)
        elif not is_declaration(op):
            yield found
            found = []
    yield found


def is_declaration(op: Operation) -> bool:
    """Whether an op only says where memory is."""
    return isinstance(op, BufferOp | ViewOp | WeightOp)


def dependences(launches: Sequence[LaunchOp], written: Written) -> list[set[int]]:
    """For each launch earlier ones that touch the same memory, if one of the two writes it.

    Left out are those that another one of them needs because of the same memory.
    """
    return access_dependences([list(_accesses(launch, written[launch.kernel_name()])) for launch in launches])


def access_dependences(launches: Sequence[Sequence[Access]]) -> list[set[int]]:
    """`dependences` of launches of which the accesses are known."""
    history: dict[Hashable, Part] = {}
    result: list[set[int]] = []
    for number, accesses in enumerate(launches):
        needed: set[int] = set()
        for memory, part, writes in accesses:
            if memory in history:
                needed.update(_met(history[memory], part, writes))
        for memory, part, writes in accesses:
            _note(history.setdefault(memory, Part()), part, writes, number)
        result.append(needed)
    return result


@dataclass
class Part:
    """Who touched a part of a memory: the last launch that wrote all of it, and those that have read it since."""

    writer: int | None = None
    readers: list[int] = field(default_factory=list[int])
    parts: dict[int, Part] = field(default_factory=dict[int, "Part"])


def _met(whole: Part, part: tuple[int, ...], writes: bool) -> Iterator[int]:
    """The launches that an access must wait for: those of the parts that hold its part, and of those inside of it."""
    at: Part | None = whole
    for number in part:
        yield from users(at, writes)
        at = at.parts.get(number)
        if at is None:
            return
    inside = [at]
    while inside:
        one = inside.pop()
        yield from users(one, writes)
        inside += one.parts.values()


def users(part: Part, writes: bool) -> Iterator[int]:
    if part.writer is not None:
        yield part.writer
    if writes:
        yield from part.readers


def _note(whole: Part, part: tuple[int, ...], writes: bool, number: int) -> None:
    """Who touched what is now written was waited for, so that it need not be remembered."""
    at = whole
    for index in part:
        at = at.parts.setdefault(index, Part())
    if writes:
        at.writer, at.readers, at.parts = number, [], {}
    elif not at.readers or at.readers[-1] != number:
        at.readers.append(number)


def _accesses(launch: LaunchOp, written: frozenset[int]) -> Iterator[Access]:
    """Weights are left out, as nobody writes them."""
    for place, argument in enumerate(launch.arguments()):
        if isinstance(argument, PointerAttr | TensorMapAttr):
            memory = _owner(launch.buffers[argument.operand.data])
            part = tuple(argument.part_numbers()) if isinstance(argument, PointerAttr) else ()
            if not isinstance(memory.owner, WeightOp):
                yield memory, part, place in written


def _owner(buffer: SSAValue) -> SSAValue:
    """The memory that a view shows."""
    while isinstance(buffer.owner, ViewOp):
        buffer = buffer.owner.source
    return buffer
