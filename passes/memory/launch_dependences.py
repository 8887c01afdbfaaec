"""Which launches of the host program must wait for which: those that share memory which one of them writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.kernel.argument_effects import written_arguments
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.plugin import PluginOp
from mlirt.dialects.plan.expression import PointerAttr
from mlirt.dialects.plan.ops import BufferOp, LaunchOp, ViewOp, WeightOp
from mlirt.dialects.plan.tensor_map import TensorMapAttr

# The memory, the part of it (all of it where there are no numbers), and whether it may be written.
Access = tuple[SSAValue, tuple[int, ...], bool]
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
    """For each launch the earlier ones that touch the same memory, if one of the two writes it."""
    touched: dict[SSAValue, list[tuple[int, tuple[int, ...], bool]]] = {}
    result: list[set[int]] = []
    for number, launch in enumerate(launches):
        needed: set[int] = set()
        accesses = list(_accesses(launch, written[launch.kernel_name()]))
        for memory, part, writes in accesses:
            for earlier, other, wrote in touched.get(memory, ()):
                if (writes or wrote) and all(one == another for one, another in zip(part, other, strict=False)):
                    needed.add(earlier)
        for memory, part, writes in accesses:
            touched.setdefault(memory, []).append((number, part, writes))
        result.append(needed)
    return result


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
