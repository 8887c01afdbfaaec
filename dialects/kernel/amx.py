"""The matrix unit of x86 processors (AMX): eight registers, each a matrix, and sums of int8 products on them.

A kernel lays the registers out once, for `rows` x `columns` accumulators of `pixels` x 16 each. The registers belong to
the worker; the ops on them take effect in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import READS, WRITES, Rule, Text

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

# Registers, rows of one, and bytes in a row.
REGISTERS, MAX_PIXELS, ROW_BYTES = 8, 16, 64
LANES = 16


def _registers(x: Any) -> int:
    return x.rows * x.columns + x.rows + x.columns


_FITS = Rule(
    f"accumulators and factors of a step fit {REGISTERS} registers",
    lambda x: min(x.rows, x.columns) > 0 and _registers(x) <= REGISTERS,
    lambda x: f"{x.rows} x {x.columns} accumulators and their factors take {_registers(x)} of {REGISTERS} registers",
)


@instruction
class AmxBeginOp(Instruction):
    """Lay out the registers: `rows` x `columns` accumulators, `rows` left factors of `pixels` x `depth` bytes,
    `columns` right ones.

    Example: `kernel.amx_begin {rows = 2 : i64, columns = 2 : i64, pixels = 14 : i64, depth = 48 : i64}`
    """

    name = "kernel.amx_begin"

    rows: IntegerAttr = fields.attribute(converter=fields.number)
    columns: IntegerAttr = fields.attribute(converter=fields.number)
    pixels: IntegerAttr = fields.attribute(converter=fields.number)
    depth: IntegerAttr = fields.attribute(converter=fields.number)

    effects = WRITES
    rules = (
        _FITS,
        Rule(
            f"a register has up to {MAX_PIXELS} pixels of up to {ROW_BYTES} bytes, a multiple of 4",
            lambda x: 0 < x.pixels <= MAX_PIXELS and 0 < x.depth <= ROW_BYTES and x.depth % 4 == 0,
            "no register holds {pixels} pixels of {depth} bytes",
        ),
    )
    cpu = Text("amx_begin", "{rows}, {columns}, {pixels}, {depth}")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        import numpy as np

        accumulators = np.zeros((len(site.active), x.rows, x.columns, x.pixels, LANES), np.int32)
        site.machine.matrix_registers = (accumulators, int(x.depth))


@instruction
class AmxClearOp(Instruction):
    """Let the first `count` sums be zero.

    Example: `kernel.amx_clear {count = 4 : i64}`
    """

    name = "kernel.amx_clear"

    count: IntegerAttr = fields.attribute(converter=fields.number)

    effects = WRITES
    cpu = Text("amx_clear", "{count}")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        accumulators, _ = site.machine.matrix_registers
        accumulators.reshape(len(accumulators), -1, *accumulators.shape[3:])[:, : x.count] = 0


@instruction
class AmxDotAddOp(Instruction):
    """`sum[i, j][p, l] += sum over b < depth of x[x_at + (i * pixels + p) * step + b] * w[w_at + ..]`, exactly.

    `x` has uint8. `w` has signed ones: line b / 4 has `columns` x 16 lanes of four bytes, as
    `kernel.tile_dot_add` reads them. `pixels` and `depth` are those of `kernel.amx_begin`.

    Example: `kernel.amx_dot_add %x[%i] step %s, %w[%k] {rows = 2 : i64, columns = 2 : i64, pixels = 14 : i64}
    : memref<?xui8>, memref<?xi8>`
    """

    name = "kernel.amx_dot_add"

    x: SSAValue = fields.memref()
    x_at: SSAValue = fields.index()
    step: SSAValue = fields.index()
    w: SSAValue = fields.memref()
    w_at: SSAValue = fields.index()
    rows: IntegerAttr = fields.attribute(converter=fields.number)
    columns: IntegerAttr = fields.attribute(converter=fields.number)
    pixels: IntegerAttr = fields.attribute(converter=fields.number)

    syntax = "$x `[` $x_at `]` `step` $step `,` $w `[` $w_at `]`"
    effects = READS + WRITES
    rules = (_FITS,)
    cpu = Text("amx_dot_add", "{rows}, {columns}, {pixels}")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        import numpy as np

        accumulators, depth = site.machine.matrix_registers
        row, b = np.arange(int(x.rows * x.pixels)), np.arange(depth)
        left = x.x.read((x.x_at[:, None] + row * x.step[:, None])[:, :, None] + b)
        right = x.w.read(x.w_at[:, None] + np.arange(int(depth * x.columns * LANES)))
        left = left.reshape(-1, x.rows, x.pixels, depth // 4, 4).astype(np.int32)
        right = right.reshape(-1, depth // 4, x.columns, LANES, 4).astype(np.int32)
        accumulators += np.einsum("nipub,nujlb->nijpl", left, right)


@instruction
class AmxStoreOp(Instruction):
    """`y[((i * pixels + p) * columns + j) * 16 + l] = sum[i, j][p, l]`.

    Example: `kernel.amx_store %y {rows = 2 : i64, columns = 2 : i64, pixels = 14 : i64} : memref<?xi32>`
    """

    name = "kernel.amx_store"

    y: SSAValue = fields.memref("Y")
    rows: IntegerAttr = fields.attribute(converter=fields.number)
    columns: IntegerAttr = fields.attribute(converter=fields.number)
    pixels: IntegerAttr = fields.attribute(converter=fields.number)

    syntax = "$y"
    effects = WRITES
    rules = (_FITS, Rule("`y` has i32", lambda x: x.Y.type == i32, "writes i32, not {Y.type}"))
    cpu = Text("amx_store", "{rows}, {columns}, {pixels}")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        import numpy as np

        accumulators = site.machine.matrix_registers[0].transpose(0, 1, 3, 2, 4).reshape(len(site.active), -1)
        x.y.write(np.broadcast_to(np.arange(int(accumulators.shape[1])), accumulators.shape), accumulators)


@instruction
class AmxEndOp(Instruction):
    """Give the registers back.

    Example: `kernel.amx_end`
    """

    name = "kernel.amx_end"

    effects = WRITES
    cpu = Text("amx_end")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        """The next layout begins with new ones."""
