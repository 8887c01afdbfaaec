"""What the threads of a block do: ids, shared memory, barriers and shuffles.

A kernel that uses these ops is mapped: it says what one thread does, and its attribute `block_size` says how many
threads (a multiple of 32) a block has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import Float32Type, Float64Type, IndexType, IntegerAttr, MemRefType, i32, i64
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import SHARED, memory
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import PURE, SYNCHRONIZES, Rule, Text
from mlirt.dialects.tensor_types import byte_width

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

WARP, WARPGROUP = 32, 128
"""Threads."""
MAX_THREADS, MAX_REGISTERS = 1024, 255
"""Threads of a block, and registers of a thread, on every GPU."""
_SHARED_ALIGNMENT = 128
MAX_ALIGNMENT = 1024
"""Bytes that shared memory can be aligned to."""
_REGISTERS, _REGISTER_UNIT = 1 << 16, 8  # of a processor; as many as a thread is given at once
_MOVED = (Float32Type(), Float64Type(), i32, i64)


def registers_at_start(threads: int) -> int:
    """Those of each thread of a block of so many, which has a processor for itself."""
    return min(MAX_REGISTERS, _REGISTERS // threads // _REGISTER_UNIT * _REGISTER_UNIT)


@instruction
class ThreadIdOp(Instruction):
    """The number of this thread in its block."""

    name = "kernel.thread_id"

    result: OpResult = fields.result(IndexType())

    assembly_format = "attr-dict `:` type($result)"
    effects = PURE
    cuda = Text("thread_id")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        return site.lanes.thread


class _GridOp(Instruction):
    axis: IntegerAttr = fields.attribute(converter=fields.number, default=0, is_written=True)
    result: OpResult = fields.result(IndexType())

    assembly_format = "attr-dict `:` type($result)"
    effects = PURE
    rules = (
        Rule("a grid has the axes 0, 1 and 2", lambda x: 0 <= x.axis < 3, "a grid has the axes 0, 1 and 2, not {axis}"),
    )


@instruction
class BlockIdOp(_GridOp):
    """The number of this block along an axis of the grid."""

    name = "kernel.block_id"
    cuda = Text(lambda x: f"block_id_{x.axis}", words=("block_id_0", "block_id_1", "block_id_2"))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        """Blocks are numbered with axis 0 fastest, as CUDA does."""
        from math import prod

        size = _grid_size(site, x.axis)
        return site.lanes.block // prod(site.machine.grid[: x.axis]) % size


@instruction
class GridSizeOp(_GridOp):
    """How many blocks there are along an axis of the grid."""

    name = "kernel.grid_size"
    cuda = Text(lambda x: f"grid_size_{x.axis}", words=("grid_size_0", "grid_size_1", "grid_size_2"))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        return np.asarray(_grid_size(site, x.axis), np.int64)


def _grid_size(site: Site, axis: int) -> int:
    grid = site.machine.grid
    return grid[axis] if axis < len(grid) else 1


@instruction
class SharedOp(Instruction):
    """Memory that the threads of a block share, aligned to `alignment` bytes; it holds nothing at first.

    Example: `%tile = kernel.shared : memref<1024xf16, "shared">`
    """

    name = "kernel.shared"

    alignment: IntegerAttr = fields.attribute(converter=fields.number, default=_SHARED_ALIGNMENT)
    result: OpResult = fields.result(MemRefType)

    assembly_format = "attr-dict `:` type($result)"
    effects = ()
    rules = (
        Rule(
            'the memory space is "shared"',
            lambda x: x.result.memory_space == SHARED,
            lambda x: f'the memory space is "shared", not {x.result.memory_space}',
        ),
        Rule("shared memory has rank 1", lambda x: len(x.result.get_shape()) == 1),
        Rule("the size of shared memory is a number", lambda x: x.result.get_shape()[0] >= 0),
        Rule(
            "the alignment is a power of two from 128 to 1024 bytes",
            lambda x: x.alignment >= _SHARED_ALIGNMENT and MAX_ALIGNMENT % x.alignment == 0,
            lambda x: f"an alignment of {_SHARED_ALIGNMENT} to {MAX_ALIGNMENT} bytes, not {x.alignment}",
        ),
    )

    def __init__(self, size: int, element: Attribute, alignment: int = _SHARED_ALIGNMENT) -> None:
        self.fill(alignment, result=MemRefType(element, [size], memory_space=SHARED))

    @property
    def bytes(self) -> int:
        """Its size."""
        return _bytes_of(self.result)

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        return _new_memory(site, x.result, "shared", int(site.lanes.block[0]))


@instruction
class ReuseSharedOp(Instruction):
    """The same shared memory for something else: what it held is lost.

    No thread may have used it since the last barrier.

    Example: `%accumulators = kernel.reuse_shared %tile : memref<4096xf16, "shared"> -> memref<1024xf32, "shared">`
    """

    name = "kernel.reuse_shared"

    source: SSAValue = fields.memref()
    result: OpResult = fields.result(MemRefType)

    syntax = "$source"
    effects = SYNCHRONIZES
    rules = (
        Rule("both are shared memory", lambda x: x.source.memory_space == x.result.memory_space == SHARED),
        Rule(
            "the new contents are no larger than the old ones",
            lambda x: _bytes_of(x.op.result) <= _bytes_of(x.op.source),
            lambda x: f"{_bytes_of(x.op.result)} bytes do not fit into {_bytes_of(x.op.source)}",
        ),
    )

    def __init__(self, source: SSAValue, size: int, element: Attribute) -> None:
        self.fill(source, result=MemRefType(element, [size], memory_space=SHARED))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        old = x.source.buffer
        old.retire(site.where, site.lanes.epochs.of(site.lanes.block[:: site.machine.block_size]))
        return _new_memory(site, x.result, old.name, old.first_block)


def _bytes_of(value: SSAValue) -> int:
    return memory(value).get_shape()[0] * byte_width(memory(value).get_element_type())


def _new_memory(site: Site, type_: Any, name: str, first_block: int) -> Any:
    """Shared memory of all blocks that run now."""
    from mlirt.dialects.kernel.interpreter_memory import SharedBuffer
    from mlirt.dialects.scalar_semantics import scalar_dtype

    hint, blocks = site.op.results[0].name_hint, site.lanes.count // site.machine.block_size
    dtype = scalar_dtype(type_.get_element_type())
    made = SharedBuffer(hint or name, type_.get_shape()[0], dtype, first_block, blocks)
    site.machine.stages.memories[site.op.results[0]] = made
    return made


def shared_offsets(func: Operation) -> tuple[dict[SSAValue, int], int]:
    """Where each piece of a kernel's shared memory starts, in bytes, and how much there is in all."""
    offsets: dict[SSAValue, int] = {}
    total = 0
    for op in func.walk():
        if isinstance(op, SharedOp):
            alignment = op.alignment.value.data
            offsets[op.result] = total = -(-total // alignment) * alignment
            total += -(-op.bytes // _SHARED_ALIGNMENT) * _SHARED_ALIGNMENT
    return offsets, total


@instruction
class BarrierOp(Instruction):
    """Wait for all threads of the block; what they have written before is visible after."""

    name = "kernel.barrier"

    effects = SYNCHRONIZES
    scope = "block"
    cuda = Text("barrier")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        site.lanes.epochs.start(site.blocks)


@instruction
class WarpBarrierOp(Instruction):
    """Wait for all threads of the warp; what they have written before is visible to each other after.

    Example: `kernel.warp_barrier`
    """

    name = "kernel.warp_barrier"

    effects = SYNCHRONIZES
    scope = "warp"
    cuda = Text("warp_barrier")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        site.lanes.epochs.start_phases(site.block, site.thread)


@instruction
class ShuffleOp(Instruction):
    """The value that the thread whose number in the warp differs by `exclusive or` with `mask` has.

    Example: `%other = kernel.shuffle %v {mask = 16 : i64} : f32 -> f32`
    """

    name = "kernel.shuffle"

    value: SSAValue = fields.scalar("T")
    mask: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(like="value")

    syntax = "$value"
    # It depends on the other threads: it must not be moved into or out of a branch.
    effects = SYNCHRONIZES
    scope = "warp"
    rules = (
        Rule("the mask is between 1 and 31", lambda x: 0 < x.mask < WARP),
        Rule(
            "it moves numbers of 32 or 64 bits",
            lambda x: x.value in _MOVED,
            "moves numbers of 32 or 64 bits, not {value}",
        ),
    )
    cuda = Text("shuffle", '"{T}", {mask}', hint="exchange")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        return x.value[np.arange(len(x.value)) ^ x.mask]
