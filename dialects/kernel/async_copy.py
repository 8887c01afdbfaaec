"""Asynchronous copies (cp.async) from global to shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import SHARED, memory
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import SYNCHRONIZES, Rule, Text
from mlirt.dialects.tensor_types import byte_width

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site


@instruction
class CopyAsyncOp(Instruction):
    """Start to copy `count` elements (4, 8 or 16 bytes, so aligned) to shared memory; those beyond `valid` become zero.

    `offsets` are elements that the source and the target are moved by: what threads copy at fixed distances shares the
    computation of its addresses. The copy belongs to the thread's current group. It has happened once the thread has
    waited for the group; others see it after a barrier.

    Example: `kernel.copy_async %x[%i], %tile[%j] valid %n {count = 4 : i64} : memref<?xf32>, memref<64xf32, "shared">`
    """

    name = "kernel.copy_async"

    source: SSAValue = fields.memref("T")
    source_index: SSAValue = fields.index()
    target: SSAValue = fields.memref("T")
    target_index: SSAValue = fields.index()
    count: IntegerAttr = fields.attribute(converter=fields.number)
    valid: SSAValue | None = fields.index(default=None)
    offsets: fields.Numbers = fields.attribute(converter=fields.numbers, default=(0, 0))

    syntax = "$source `[` $source_index `]` `,` $target `[` $target_index `]` (`valid` $valid^)?"
    effects = SYNCHRONIZES
    is_asynchronous = True
    rules = (
        Rule("there is an offset of the source and one of the target", lambda x: len(x.offsets) == 2),
        Rule("copies from global to shared memory", lambda x: x.target.memory_space == SHARED != x.source.memory_space),
        Rule(
            "it copies 4, 8 or 16 bytes", lambda x: x.op.bytes in (4, 8, 16), "copies 4, 8 or 16 bytes, not {op.bytes}"
        ),
    )
    cuda = Text(
        "copy_async",
        lambda x: (
            f'"{x.T}", {x.count}'
            + (f", offsets={tuple(x.offsets)}" if any(x.offsets) else "")
            + ", guarded=True" * (x.valid is not None)
        ),
        hint="start_copy",
    )

    @property
    def bytes(self) -> int:
        return self.count.value.data * byte_width(memory(self.source).get_element_type())

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        import numpy as np

        from mlirt.dialects.kernel.interpreter_memory import OutOfBoundsError

        source, target = x.source_index + x.offsets[0], x.target_index + x.offsets[1]
        for start, side in ((source, "source"), (target, "target")):
            if (start % x.count).any():
                bytes_ = x.count * x.source.buffer.data.dtype.itemsize
                raise OutOfBoundsError(f"{site.where}: the {side} of {bytes_} bytes is not so aligned")
        position = np.arange(int(x.count))
        wanted = True if x.valid is None else position < x.valid[:, None]
        data = x.source.read(source[:, None] + position, wanted)
        access = x.target.access(target[:, None] + position)
        site.machine.copies.start(x.target.buffer, access, data.reshape(-1))


@instruction
class CommitAsyncOp(Instruction):
    """Close the current group of asynchronous copies."""

    name = "kernel.commit_async"

    effects = SYNCHRONIZES
    is_asynchronous = True
    scope = "block"
    cuda = Text("commit_async")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        site.machine.copies.commit(site.blocks)


@instruction
class WaitAsyncOp(Instruction):
    """Wait until only the `pending` newest groups of asynchronous copies may still be on their way.

    Example: `kernel.wait_async {pending = 1 : i64}`
    """

    name = "kernel.wait_async"

    pending: IntegerAttr = fields.attribute(converter=fields.number)

    effects = SYNCHRONIZES
    is_asynchronous = True
    scope = "block"
    cuda = Text("wait_async", "{pending}", hint="wait")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        site.machine.copies.wait(site.blocks, x.pending, site.lanes.epochs)
