"""The matrix unit of x86 processors (AMX): eight registers, each a matrix, and sums of int8 products on them.

A kernel lays the registers out once, for `rows` x `columns` sums of `pixels` x 16 each. The registers belong to the
worker; the ops on them take effect in their order.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, MemRefType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from mlirt.dialects.kernel.core import element_of_buffer
from mlirt.dialects.tensor_op import require

# Processor features that kernels with these ops are made for.
AMX = frozenset({"amx-tile", "amx-int8"})
# Registers, rows of one, and bytes in a row.
REGISTERS, MOST_PIXELS, ROW_BYTES = 8, 16, 64
LANES = 16


def _number(value: int) -> IntegerAttr:
    return IntegerAttr(value, i64)


def check_shape(op: Operation, rows: int, columns: int) -> None:
    """Raise unless sums and factors of a step fit the registers."""
    count = rows * columns + rows + columns
    require(
        min(rows, columns) > 0 and count <= REGISTERS,
        f"C1: {op.name}: {rows} x {columns} sums and their factors take {count} of {REGISTERS} registers",
    )


@irdl_op_definition
class AmxBeginOp(IRDLOperation):
    """Lay out the registers: `rows` x `columns` sums, `rows` left factors of `pixels` x `depth` bytes, `columns` right
    ones. C1: they fit the registers. C2: up to 16 pixels, and up to 64 bytes, a multiple of 4.

    Example: `kernel.amx_begin {rows = 2 : i64, columns = 2 : i64, pixels = 14 : i64, depth = 48 : i64}`
    """

    name = "kernel.amx_begin"

    rows = prop_def(IntegerAttr)
    columns = prop_def(IntegerAttr)
    pixels = prop_def(IntegerAttr)
    depth = prop_def(IntegerAttr)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, rows: int, columns: int, pixels: int, depth: int) -> None:
        numbers = {"rows": rows, "columns": columns, "pixels": pixels, "depth": depth}
        super().__init__(properties={name: _number(value) for name, value in numbers.items()})

    def verify_(self) -> None:
        check_shape(self, self.rows.value.data, self.columns.value.data)
        pixels, depth = self.pixels.value.data, self.depth.value.data
        fits = 0 < pixels <= MOST_PIXELS and 0 < depth <= ROW_BYTES and depth % 4 == 0
        require(fits, f"C2: {self.name}: no register holds {pixels} pixels of {depth} bytes")


@irdl_op_definition
class AmxClearOp(IRDLOperation):
    """Let the first `count` sums be zero.

    Example: `kernel.amx_clear {count = 4 : i64}`
    """

    name = "kernel.amx_clear"

    count = prop_def(IntegerAttr)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, count: int) -> None:
        super().__init__(properties={"count": _number(count)})


@irdl_op_definition
class AmxDotAddOp(IRDLOperation):
    """`sum[i, j][p, l] += sum over b < depth of x[x_at + (i * pixels + p) * step + b] * w[w_at + ..]`, exactly.

    `x` has unsigned bytes. `w` has signed ones: line b / 4 has `columns` x 16 lanes of four bytes, as
    `kernel.tile_dot_add` reads them. `pixels` and `depth` are those of `kernel.amx_begin`. C1 as there.

    Example: `kernel.amx_dot_add %x[%i] step %s, %w[%k] {rows = 2 : i64, columns = 2 : i64, pixels = 14 : i64}
    : memref<?xui8>, memref<?xi8>`
    """

    name = "kernel.amx_dot_add"

    x = operand_def(MemRefType)
    x_at = operand_def(IndexType())
    step = operand_def(IndexType())
    w = operand_def(MemRefType)
    w_at = operand_def(IndexType())
    rows = prop_def(IntegerAttr)
    columns = prop_def(IntegerAttr)
    pixels = prop_def(IntegerAttr)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$x `[` $x_at `]` `step` $step `,` $w `[` $w_at `]` attr-dict `:` type($x) `,` type($w)"

    def __init__(
        self,
        x: SSAValue,
        x_at: SSAValue,
        step: SSAValue,
        w: SSAValue,
        w_at: SSAValue,
        rows: int,
        columns: int,
        pixels: int,
    ) -> None:
        super().__init__(
            operands=[x, x_at, step, w, w_at],
            properties={"rows": _number(rows), "columns": _number(columns), "pixels": _number(pixels)},
        )

    def verify_(self) -> None:
        check_shape(self, self.rows.value.data, self.columns.value.data)


@irdl_op_definition
class AmxStoreOp(IRDLOperation):
    """`y[((i * pixels + p) * columns + j) * 16 + l] = sum[i, j][p, l]`. C1 as in `kernel.amx_begin`. C2: `y` has i32.

    Example: `kernel.amx_store %y {rows = 2 : i64, columns = 2 : i64, pixels = 14 : i64} : memref<?xi32>`
    """

    name = "kernel.amx_store"

    y = operand_def(MemRefType)
    rows = prop_def(IntegerAttr)
    columns = prop_def(IntegerAttr)
    pixels = prop_def(IntegerAttr)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$y attr-dict `:` type($y)"

    def __init__(self, y: SSAValue, rows: int, columns: int, pixels: int) -> None:
        numbers = {"rows": rows, "columns": columns, "pixels": pixels}
        super().__init__(operands=[y], properties={name: _number(value) for name, value in numbers.items()})

    def verify_(self) -> None:
        check_shape(self, self.rows.value.data, self.columns.value.data)
        require(element_of_buffer(self.y) == i32, f"C2: {self.name} writes i32, not {element_of_buffer(self.y)}")


@irdl_op_definition
class AmxEndOp(IRDLOperation):
    """Give the registers back.

    Example: `kernel.amx_end`
    """

    name = "kernel.amx_end"

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class WorkerMemoryOp(IRDLOperation):
    """A few elements of memory that each worker has of its own, for as long as the kernel runs.

    Example: `%m = kernel.worker_memory {elements = 896 : i64} : memref<?xi32>`
    """

    name = "kernel.worker_memory"

    elements = prop_def(IntegerAttr)
    memory = result_def(MemRefType)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($memory)"

    def __init__(self, element: Attribute, elements: int) -> None:
        super().__init__(
            properties={"elements": _number(elements)}, result_types=[MemRefType(element, [DYNAMIC_INDEX])]
        )
