"""Four warps that multiply together: their matrix unit reads tiles in shared memory and adds up in registers."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    BoolAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    VectorType,
    i64,
)
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from mlirt.dialects.kernel.buffers import is_shared, length, memory
from mlirt.dialects.kernel.matrix_unit import MmaKind, MmaKindAttr
from mlirt.dialects.kernel.tensor_copy import CopyOp, map_type
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import byte_width

WARPGROUP = 128
ROWS = 64
"""Rows of the product."""
LINE, SHORT_LINE = 128, 64
"""Bytes of a line of a tile."""
GROUP_LINES = 8
"""Lines of a tile that always lie side by side."""
_MOST_COLUMNS = 256
_MOST_LINES = 1024  # from one group to the next one


@irdl_op_definition
class WarpgroupMmaOp(IRDLOperation):
    """Start to add the product of a 64 x d and a d x `columns` tile, where d elements fill a `line` of 128 or 64 bytes.

    Both tiles lie in shared memory in such lines, swizzled as tensor copies bring them and aligned to 1024 bytes. Lines
    are rows of the left and columns of the right tile; with `left_by_depth` or `right_by_depth` (16-bit
    elements only) the tile is in pieces of d lines along the depth, one after the other, each of d rows or columns.
    Rows 8 i, .., 8 i + 7 of the left tile are the lines from number `left_step` i on, so that they may be pixels of a
    larger image; then the left tile may start at any line.

    Of tf32 the matrix unit cuts off the lower 13 bits, which makes each product smaller. So the tiles hold what tensor
    copies have rounded, and nothing else writes to their memory.

    The product goes on until `kernel.warpgroup_wait` or `kernel.warpgroup_accumulators`; before, nobody may write to
    the tiles or use the result but in another `kernel.warpgroup_mma`. Thread `32 w + 4 g + t` has, at `4 j + 2 h + e`,
    the sum of
    row `16 w + 8 h + g` and column `8 j + 2 t + e`.

    Example: `%d = kernel.warpgroup_mma f16 %c, %a[%i], %b[%j] {columns = 128 : i64} : vector<64xf32>,
    memref<16384xf16, "shared">, memref<32768xf16, "shared"> -> vector<64xf32>`
    """

    name = "kernel.warpgroup_mma"

    kind = prop_def(MmaKindAttr)
    accumulator = operand_def(VectorType)
    left = operand_def(MemRefType)
    left_index = operand_def(IndexType())
    right = operand_def(MemRefType)
    right_index = operand_def(IndexType())
    columns = prop_def(IntegerAttr)
    line = prop_def(IntegerAttr, default_value=IntegerAttr(LINE, i64))
    left_by_depth = opt_prop_def(UnitAttr)
    right_by_depth = opt_prop_def(UnitAttr)
    left_step = opt_prop_def(IntegerAttr)
    result = result_def(VectorType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$kind $accumulator `,` $left `[` $left_index `]` `,` $right `[` $right_index `]` attr-dict `:` "
        "type($accumulator) `,` type($left) `,` type($right) `->` type($result)"
    )

    def __init__(
        self,
        kind: MmaKind,
        accumulator: SSAValue,
        left: tuple[SSAValue, SSAValue],
        right: tuple[SSAValue, SSAValue],
        columns: int,
        *,
        line: int = LINE,
        left_by_depth: bool = False,
        right_by_depth: bool = False,
        left_step: int | None = None,
    ) -> None:
        super().__init__(
            operands=[accumulator, *left, *right],
            properties={
                "kind": MmaKindAttr(kind),
                "columns": IntegerAttr(columns, i64),
                "line": IntegerAttr(line, i64),
                "left_by_depth": UnitAttr() if left_by_depth else None,
                "right_by_depth": UnitAttr() if right_by_depth else None,
                "left_step": None if left_step is None else IntegerAttr(left_step, i64),
            },
            result_types=[accumulator.type],
        )

    @property
    def depth(self) -> int:
        """Elements of the sum."""
        return self.line.value.data // byte_width(memory(self.left).get_element_type())

    def verify_(self) -> None:
        columns = self.columns.value.data
        require(is_shared(self.left) and is_shared(self.right), f"{self.name}: the tiles lie in shared memory")
        elements = [memory(tile).get_element_type() for tile in (self.left, self.right)]
        require(elements[0] == elements[1], f"{self.name}: {elements[0]} times {elements[1]}")
        fits = columns % 8 == 0 and 8 <= columns <= _MOST_COLUMNS
        require(fits, f"{self.name}: columns are a multiple of 8 up to {_MOST_COLUMNS}, not {columns}")
        expected = VectorType(self.kind.data.sums, [columns // 2])
        require(self.accumulator.type == expected, f"{self.name}: the sums are {expected}, not {self.accumulator.type}")
        by_depth = self.left_by_depth is not None or self.right_by_depth is not None
        require(not by_depth or byte_width(elements[0]) == 2, f"{self.name}: by depth only 16-bit elements can lie")
        line = self.line.value.data
        require(line == LINE or (line == SHORT_LINE and not by_depth), f"{self.name}: no lines of {line} bytes")
        whole = self.right_by_depth is None or columns % self.depth == 0
        require(whole, f"{self.name}: {columns} columns are no pieces of {self.depth}")
        step = GROUP_LINES if self.left_step is None else self.left_step.value.data
        require(
            GROUP_LINES <= step <= _MOST_LINES and (self.left_step is None or self.left_by_depth is None),
            f"{self.name}: no rows of lines along the depth can lie {step} lines apart",
        )
        if self.kind.data is MmaKind.TF32:
            writers = [use.operation for tile in (self.left, self.right) for use in tile.uses]
            wrong = next((writer for writer in writers if not _leaves_tf32(writer)), None)
            name = "" if wrong is None else wrong.name
            require(wrong is None, f"{self.name}: {name} does not round to tf32, and the matrix unit cuts off bits")


def _leaves_tf32(op: Operation) -> bool:
    """Whether all floats in a tile are ones with 10 bits of mantissa after an op, where they were before."""
    return isinstance(op, WarpgroupMmaOp) or (isinstance(op, CopyOp) and map_type(op.map).rounds)


@irdl_op_definition
class WarpgroupWaitOp(IRDLOperation):
    """Wait until only the `pending` newest products of this warpgroup may still read their tiles.

    Example: `kernel.warpgroup_wait {pending = 1 : i64}`
    """

    name = "kernel.warpgroup_wait"

    pending = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, pending: int) -> None:
        super().__init__(properties={"pending": IntegerAttr(pending, i64)})


@irdl_op_definition
class WarpgroupAccumulatorsOp(IRDLOperation):
    """The sums, once only the `pending` newest products of this warpgroup may be missing, of which they are none.

    Example: `%sums = kernel.warpgroup_accumulators %c : vector<64xf32> -> vector<64xf32>`
    """

    name = "kernel.warpgroup_accumulators"

    accumulator = operand_def(VectorType)
    pending = prop_def(IntegerAttr, default_value=IntegerAttr(0, i64))
    result = result_def(VectorType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$accumulator attr-dict `:` type($accumulator) `->` type($result)"

    def __init__(self, accumulator: SSAValue, pending: int = 0) -> None:
        super().__init__(
            operands=[accumulator],
            properties={"pending": IntegerAttr(pending, i64)},
            result_types=[accumulator.type],
        )


@irdl_op_definition
class SetRegistersOp(IRDLOperation):
    """Give registers of this warpgroup to others, or with `grow` take what others gave: `count` of a thread stay.

    Example: `kernel.set_registers {count = 232 : i64, grow = true}`
    """

    name = "kernel.set_registers"

    count = prop_def(IntegerAttr)
    grow = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, count: int, grow: bool) -> None:
        super().__init__(properties={"count": IntegerAttr(count, i64), "grow": BoolAttr.from_bool(grow)})

    def verify_(self) -> None:
        count = self.count.value.data
        require(count % 8 == 0 and 24 <= count <= 256, f"{self.name}: {count} is no multiple of 8 from 24 to 256")


@irdl_op_definition
class WarpValueOp(IRDLOperation):
    """The value of a warp's first thread, for all its threads: tells that a warp does not diverge on it.

    Example: `%warp = kernel.warp_value %w : index`
    """

    name = "kernel.warp_value"

    value = operand_def(IndexType())
    result = result_def(IndexType())
    # It depends on the other threads: it must not be moved into or out of a branch.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value], result_types=[IndexType()])


@irdl_op_definition
class JoinColumnsOp(IRDLOperation):
    """Order the sums of a warpgroup by rows, and let each thread have `width` (2 or 8) neighbouring columns.

    The four threads of a quad exchange. Thread `32 w + 4 g + t` then has, for groups of `4 width` columns, at
    `(h * groups + k) * width + e` the sum of row `16 w + 8 h + g` and column `4 width k + width t + e`.

    Example: `%row = kernel.join_columns %sums {width = 8 : i64} : vector<64xf32> -> vector<64xf32>`
    """

    name = "kernel.join_columns"

    value = operand_def(VectorType)
    width = prop_def(IntegerAttr)
    result = result_def(AnyAttr())
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, width: int) -> None:
        super().__init__(operands=[value], properties={"width": IntegerAttr(width, i64)}, result_types=[value.type])

    def verify_(self) -> None:
        width = self.width.value.data
        require(width in (2, 8), f"{self.name}: a width of 2 or 8, not {width}")
        count = length(self.value)
        require(count % (2 * width) == 0, f"{self.name}: {count} sums are no two rows of groups of {width}")
