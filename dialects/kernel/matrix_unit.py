"""The matrix units of a warp, and how their operands come from shared memory."""

from __future__ import annotations

from enum import auto

from xdsl.dialects.builtin import (
    BoolAttr,
    Float32Type,
    IndexType,
    IntegerAttr,
    MemRefType,
    VectorType,
    i32,
    i64,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, Pure
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.kernel.buffers import is_shared, memory
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import byte_width

_ROW_BYTES = 16  # of the 8 x 8 matrices that load_matrix reads


class MmaKind(StrEnum):
    F16 = auto()
    BF16 = auto()
    TF32 = auto()
    """float32 of which 13 bits are cut off; only warpgroups multiply them, as tensor copies round them."""
    S8 = auto()
    U8 = auto()
    """Unsigned bytes on the left, signed ones on the right."""
    E4M3 = auto()
    """8-bit floats, held as bytes; only warpgroups multiply them."""

    @property
    def sums(self) -> Attribute:
        """In which type products are added up."""
        return i32 if self in (MmaKind.S8, MmaKind.U8) else Float32Type()


# Elements of the multiplied matrices in one 32-bit register.
PACKED = {MmaKind.F16: 2, MmaKind.BF16: 2, MmaKind.S8: 4, MmaKind.U8: 4, MmaKind.E4M3: 4}


@irdl_attr_definition
class MmaKindAttr(EnumAttribute[MmaKind], SpacedOpaqueSyntaxAttribute):
    name = "kernel.mma_kind"


@irdl_op_definition
class LoadMatrixOp(IRDLOperation):
    """`count` times four 8 x 8 matrices of 16-bit elements from shared memory to the fragments that `kernel.mma` takes.

    Thread `8 * m + r` of a warp gives the index of row `r` of matrix `m`: 16 bytes, 16-byte aligned. The next four matrices
    lie `step` elements further. Thread `t` gets columns `2 * (t % 4)` and the next of row `t / 4`, with `transpose` rows and
    columns exchanged. Wider and narrower elements are moved as if they were 16-bit pieces.

    Example: `%a = kernel.load_matrix %tile[%i] {count = 2 : i64, step = 512 : i64} : memref<4096xf16, "shared"> -> vector<8xi32>`
    """  # noqa: E501

    name = "kernel.load_matrix"

    buffer = operand_def(MemRefType)
    index = operand_def(IndexType())
    count = prop_def(IntegerAttr)
    step = prop_def(IntegerAttr)
    transpose = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    result = result_def(VectorType)
    traits = traits_def(MemoryReadEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$buffer `[` $index `]` attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, index: SSAValue, count: int, step: int, transpose: bool = False) -> None:
        super().__init__(
            operands=[buffer, index],
            properties={
                "count": IntegerAttr(count, i64),
                "step": IntegerAttr(step, i64),
                "transpose": BoolAttr.from_bool(transpose),
            },
            result_types=[VectorType(i32, [4 * count])],
        )

    def verify_(self) -> None:
        require(is_shared(self.buffer), f"{self.name}: the matrices lie in shared memory")
        require(
            self.result.type == VectorType(i32, [4 * self.count.value.data]), f"{self.name}: four i32 for each count"
        )
        size = self.element_bytes
        require(size == 2 or not self.transpose.value.data, f"{self.name}: only 16-bit elements can be transposed")
        step = self.step.value.data * size
        require(step % _ROW_BYTES == 0, f"{self.name}: a step of {step} bytes is no multiple of {_ROW_BYTES}")

    @property
    def element_bytes(self) -> int:
        return byte_width(memory(self.buffer).get_element_type())


@irdl_op_definition
class MmaOp(IRDLOperation):
    """The warp's matrix unit: `rows` x `columns` tiles of 16 x 8 accumulators, each plus a 16 x k times a k x 8 matrix.

    k is 16 for f16 and bf16, 32 for bytes; u8 has them unsigned on the left. Fragments are laid out as PTX documents `mma.sync`: tile (i, j) has the
    accumulators `4 * (i * columns + j)` and following, left fragments `4 * i`.., right fragments `2 * j`...

    Example: `%d = kernel.mma f16 %c, %a, %b {rows = 2 : i64, columns = 4 : i64} : vector<32xf32>, vector<8xi32>, vector<8xi32> -> vector<32xf32>`
    """  # noqa: E501

    name = "kernel.mma"

    kind = prop_def(MmaKindAttr)
    accumulator = operand_def(VectorType)
    left = operand_def(VectorType)
    right = operand_def(VectorType)
    rows = prop_def(IntegerAttr)
    columns = prop_def(IntegerAttr)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$kind $accumulator `,` $left `,` $right attr-dict `:` type($accumulator) `,` type($left) `,` type($right) "
        "`->` type($result)"
    )

    def __init__(
        self, kind: MmaKind, accumulator: SSAValue, left: SSAValue, right: SSAValue, rows: int, columns: int
    ) -> None:
        super().__init__(
            operands=[accumulator, left, right],
            properties={
                "kind": MmaKindAttr(kind),
                "rows": IntegerAttr(rows, i64),
                "columns": IntegerAttr(columns, i64),
            },
            result_types=[accumulator.type],
        )

    def verify_(self) -> None:
        rows, columns = self.rows.value.data, self.columns.value.data
        alone = (MmaKind.E4M3, MmaKind.TF32)
        require(self.kind.data not in alone, f"{self.name}: only warpgroups multiply {self.kind.data}")
        element = self.kind.data.sums
        expected: list[Attribute] = [
            VectorType(element, [4 * rows * columns]),
            VectorType(i32, [4 * rows]),
            VectorType(i32, [2 * columns]),
        ]
        given = [value.type for value in self.operands]
        require(
            given == expected,
            f"{self.name}: takes ({', '.join(map(str, expected))}), not ({', '.join(map(str, given))})",
        )
