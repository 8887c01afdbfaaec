"""The SIMT interpreter: executes a kernel on NumPy arrays, all iterations or threads in step, and finds its mistakes.

It runs structured kernels (`kernel.parallel`, `kernel.reduce`) and kernels mapped to blocks and threads alike. The
meaning of an instruction is in its definition, that of another op is a rule in the `RULES` of an `interpreter_*.py`
beside this file; those of scalar ops are in `scalar_semantics`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.instruction import Instruction
from mlirt.dialects.kernel.interpreter_copies import AsyncCopies
from mlirt.dialects.kernel.interpreter_coroutines import Coroutines
from mlirt.dialects.kernel.interpreter_instruction import execute
from mlirt.dialects.kernel.interpreter_lanes import Epochs, Lanes
from mlirt.dialects.kernel.interpreter_memory import Buffer, KernelError
from mlirt.dialects.kernel.interpreter_registers import SharedRegisters
from mlirt.dialects.kernel.interpreter_stages import Stages
from mlirt.dialects.kernel.interpreter_tensor_copies import MappedTensor
from mlirt.dialects.kernel.interpreter_tensor_memory import TensorMemory
from mlirt.dialects.kernel.tensor_map import TensorMapType
from mlirt.errors import CompileError

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.plan.tensor_map import Walk

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

Rule: TypeAlias = "Callable[[Machine, Lanes, Any], None]"

# Lanes that run together: enough to hide the cost of Python, few enough for the cache.
_MAX_LANES = 1 << 16


@dataclass(frozen=True)
class OffsetBuffer:
    """A buffer argument whose index zero is element `base` of `array`: memory with a halo in front."""

    array: Array
    base: int


@dataclass(frozen=True)
class TensorMap:
    """A tensor that starts at element `base` of `array`; sizes and steps in elements, outermost first."""

    array: Array
    base: int
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    walk: Walk | None = None


Argument: TypeAlias = "Array | OffsetBuffer | TensorMap | int | float"


class Machine:
    """Executes the ops of one kernel launch."""

    def __init__(self, func: FuncOp, grid: tuple[int, ...] = (1,), block_size: int = 1) -> None:
        self.name = func.sym_name.data
        self.grid, self.block_size = grid, block_size
        self.buffers: list[Buffer] = []
        self.copies, self.stages, self.coroutines = AsyncCopies(), Stages(), Coroutines()
        self.tensor_memory = TensorMemory()
        self.registers = SharedRegisters(block_size)
        self.cluster = _cluster(func)
        self.matrix_registers: tuple[Any, int] = (None, 0)  # sums and depth of a matrix unit that is laid out

    def run_block(self, lanes: Lanes, block: Block) -> Sequence[SSAValue]:
        """Execute the ops of a block; returns the operands of its terminator."""
        last = block.last_op
        for op in block.ops:
            if op is not last:
                self.run(lanes, op)
        return last.operands if last is not None else ()

    def run(self, lanes: Lanes, op: Operation) -> None:
        from mlirt.dialects.scalar_semantics import evaluate

        rule = _rules().get(op.name)
        if rule is not None:
            rule(self, lanes, op)
        elif isinstance(op, Instruction):
            execute(self, lanes, op)
        else:
            lanes[op.results[0]] = evaluate(op, [lanes.array(operand) for operand in op.operands])

    def where(self, op: Operation) -> str:
        """How messages name an op of this kernel."""
        return f"kernel @{self.name}: {op.name}"


@cache
def _rules() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for path in sorted(Path(__file__).parent.glob("interpreter_*.py")):
        rules.update(getattr(import_module(f"mlirt.dialects.kernel.{path.stem}"), "RULES", {}))
    return rules


def run_kernel(
    func: FuncOp,
    args: Sequence[Argument],
    grid: Sequence[int] | int | None = None,
    block: int | None = None,
    *,
    check: bool = True,
    updated: Collection[int] = (),
) -> None:
    """Execute a kernel; buffers that it stores to are changed in place.

    Buffers are C-contiguous arrays of the argument's element type and any shape; the same array twice is one buffer.
    `grid` and `block` (threads) are given for kernels mapped to blocks and threads only; `block` defaults to the
    attribute `block_size`. Buffers that the kernel stores to hold nothing at first, except those whose positions are in
    `updated`. Raises a `KernelError` for an index out of bounds and, with `check`, for races, reads of nothing and
    divergent barriers.
    """
    import numpy as np

    expected = len(func.body.block.args)
    if len(args) != expected:
        raise CompileError(f"kernel @{func.sym_name.data} takes {expected} arguments, {len(args)} are given")
    sizes = (grid,) if isinstance(grid, int) else tuple(grid or ())
    threads = block if block is not None else _block_size(func)
    machine = Machine(func, sizes, threads)
    values = _bind(func, args, check, updated)
    machine.buffers = list({id(value): value for value in values if isinstance(value, Buffer)}.values())
    together = prod(sizes) if "cooperative" in func.attributes else machine.cluster
    for first, count in _chunks(prod(sizes), threads, together) if sizes else [(0, 1)]:
        blocks = np.repeat(np.arange(first, first + count), threads if sizes else 1)
        thread = np.tile(np.arange(threads), count) if sizes else np.zeros(1, np.int64)
        lanes = Lanes(blocks, thread, Epochs(first + count), depth=2 if sizes else 0)
        for name, value in zip(func.body.block.args, values, strict=True):
            lanes[name] = value
        with np.errstate(all="ignore"):
            machine.run_block(lanes, func.body.block)
        machine.tensor_memory.finish(machine.name)


def _chunks(blocks: int, threads: int, together: int) -> list[tuple[int, int]]:
    """(first, count) of the blocks that run together, of which each `together` neighbours have to."""
    step = max(1, _MAX_LANES // max(threads, 1) // max(together, 1)) * max(together, 1)
    return [(first, min(step, blocks - first)) for first in range(0, blocks, step)]


def _cluster(func: FuncOp) -> int:
    from xdsl.dialects.builtin import IntegerAttr

    size = func.attributes.get("cluster")
    return size.value.data if isinstance(size, IntegerAttr) else 1


def _block_size(func: FuncOp) -> int:
    from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr

    size = func.attributes.get("block_size")
    if isinstance(size, DenseArrayBase):
        return prod(int(count) for count in size.iter_values())
    return size.value.data if isinstance(size, IntegerAttr) else 1


Value: TypeAlias = "Buffer | MappedTensor | Array"


def _bind(func: FuncOp, args: Sequence[Argument], check: bool, updated: Collection[int]) -> list[Value]:
    """The value of each argument; pointers into the same memory share what is known about it."""
    written = stored_arguments(func)
    arrays: dict[int, tuple[Array, int]] = {}
    for position, (given, name) in enumerate(zip(args, func.body.block.args, strict=True)):
        if isa(name.type, MemRefType[Attribute]):
            array, base = (given.array, given.base) if isinstance(given, OffsetBuffer) else (given, 0)
            arrays[position] = _flat(func, array, name.type.get_element_type(), _label(func, position)), base
        elif isinstance(name.type, TensorMapType):
            assert isinstance(given, TensorMap)
            arrays[position] = _flat(func, given.array, name.type.element, _label(func, position)), given.base
    stored = {_place(arrays[position][0]) for position in written}
    known: dict[tuple[int, str], Buffer] = {}
    values: list[Value] = []
    for position, (given, name) in enumerate(zip(args, func.body.block.args, strict=True)):
        if position not in arrays:
            values.append(_scalar(given, name.type))
            continue
        data, base = arrays[position]
        if _place(data) not in known:
            fresh = check and position in written and position not in updated
            known[_place(data)] = Buffer(_label(func, position), data, initialized=not fresh, base=base)
            if check and _place(data) in stored:
                known[_place(data)].track()
        buffer = known[_place(data)].moved(_label(func, position), base)
        values.append(
            MappedTensor(buffer, given.sizes, given.steps, given.walk) if isinstance(given, TensorMap) else buffer
        )
    return values


def _place(data: Array) -> tuple[int, str]:
    return data.ctypes.data, data.dtype.name


def _label(func: FuncOp, position: int) -> str:
    return func.body.block.args[position].name_hint or f"arg{position}"


def stored_arguments(func: FuncOp) -> set[int]:
    """The positions of the buffers that a kernel may write."""
    stored = {
        operand
        for op in func.walk()
        for operand in (op.operands if op.name.startswith("kernel.store") else ())
        if isinstance(operand.type, MemRefType)
    }
    return {position for position, name in enumerate(func.body.block.args) if name in stored}


def _scalar(given: Argument, type_: Attribute) -> Array:
    import numpy as np

    from mlirt.dialects.scalar_semantics import scalar_dtype

    return np.asarray(given, scalar_dtype(type_))


def _flat(func: FuncOp, given: Argument, element: Attribute, label: str) -> Array:
    import numpy as np

    from mlirt.dialects.scalar_semantics import scalar_dtype

    if not isinstance(given, np.ndarray) or given.dtype != scalar_dtype(element) or not given.flags.c_contiguous:
        came = f"{type(given).__name__} {getattr(given, 'dtype', '')}"
        raise KernelError(
            f"kernel @{func.sym_name.data}: argument %{label} is a contiguous array of {element}, not {came}"
        )
    return given.reshape(-1)


__all__ = ["Machine", "OffsetBuffer", "Rule", "TensorMap", "run_kernel", "stored_arguments"]
