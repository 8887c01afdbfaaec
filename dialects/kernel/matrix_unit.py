"""The matrix units (tensor cores) of a warp, and how their operands come from shared memory."""

from __future__ import annotations

from collections.abc import Callable
from enum import auto
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import BoolAttr, Float32Type, IntegerAttr, VectorType, i32
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, OpResult, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import SHARED
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import PURE, READS, Rule, Text
from mlirt.dialects.layout import arranged
from mlirt.dialects.tensor_types import byte_width

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

_ROW_BYTES = 16  # of the 8 x 8 matrices that load_matrix reads
_WARP = 32


class MmaKind(StrEnum):
    F16 = auto()
    BF16 = auto()
    TF32 = auto()
    """float32 of which 13 bits are cut off; only warpgroups multiply them, as tensor copies round them."""
    S8 = auto()
    U8 = auto()
    """uint8 on the left, signed ones on the right."""
    E4M3 = auto()
    """8-bit floats, held as bytes; only warpgroups multiply them."""

    @property
    def accumulator_type(self) -> Attribute:
        """In which type products are added up."""
        return i32 if self in (MmaKind.S8, MmaKind.U8) else Float32Type()


# Elements of the multiplied matrices in one 32-bit register.
PACKED = {MmaKind.F16: 2, MmaKind.BF16: 2, MmaKind.S8: 4, MmaKind.U8: 4, MmaKind.E4M3: 4}


@irdl_attr_definition
class MmaKindAttr(EnumAttribute[MmaKind], SpacedOpaqueSyntaxAttribute):
    name = "kernel.mma_kind"


@instruction
class LoadMatrixOp(Instruction):
    """`count` times four 8 x 8 matrices of 16-bit elements from shared memory to the fragments that `kernel.mma` takes.

    Thread `8 * m + r` of a warp gives the index of row `r` of matrix `m`: 16 bytes, 16-byte aligned. The next four matrices
    lie `step` elements further. Thread `t` gets columns `2 * (t % 4)` and the next of row `t / 4`, with `transpose` rows and
    columns exchanged. Wider and narrower elements are moved as if they were 16-bit pieces.

    Example: `%a = kernel.load_matrix %tile[%i] {count = 2 : i64, step = 512 : i64} : memref<4096xf16, "shared"> -> vector<8xi32>`
    """  # noqa: E501

    name = "kernel.load_matrix"

    buffer: SSAValue = fields.memref("T")
    index: SSAValue = fields.index()
    count: IntegerAttr = fields.attribute(converter=fields.number)
    step: IntegerAttr = fields.attribute(converter=fields.number)
    transpose: BoolAttr = fields.attribute(converter=fields.boolean, default=False)
    result: OpResult = fields.result(VectorType, like=lambda x: VectorType(i32, [4 * x.count]))

    syntax = "$buffer `[` $index `]`"
    effects = READS
    scope = "warp"
    rules = (
        Rule("the matrices lie in shared memory", lambda x: x.buffer.memory_space == SHARED),
        Rule("only 16-bit elements can be transposed", lambda x: byte_width(x.T.type) == 2 or not x.transpose),
        Rule(
            "a step is a multiple of 16 bytes",
            lambda x: x.step * byte_width(x.T.type) % _ROW_BYTES == 0,
            lambda x: f"a step of {x.step * byte_width(x.T.type)} bytes is no multiple of {_ROW_BYTES}",
        ),
    )
    cuda = Text(
        "load_matrix", lambda x: f'"{x.T}", {x.count}, {x.step}' + ", transpose=True" * x.transpose, hint="load_tiles"
    )

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        from mlirt.dialects.kernel.interpreter_memory import OutOfBoundsError

        width = _ROW_BYTES // x.buffer.buffer.data.dtype.itemsize
        found: list[Any] = []
        for start in (x.index + k * x.step for k in range(x.count)):
            if (start % width).any():
                at = f"{site.where}: a row starts at an element"
                raise OutOfBoundsError(f"{at} that is not {_ROW_BYTES}-byte aligned")
            rows = x.buffer.read(start[:, None] + np.arange(width))
            # A thread has a pair of each matrix: of a row, or of a column.
            places = "(w m p e) r" if x.transpose else "(w m r) (p e)"
            pairs = arranged(rows.view(np.uint16), places, "(w r p) (m e)", m=4, r=8, p=4, e=2)
            found.append(np.ascontiguousarray(pairs).view(np.int32))
        return np.concatenate(found, axis=1)


def _expected(x: Any) -> list[Attribute]:
    """The types of the accumulators and of both factors."""
    accumulators: Attribute = VectorType(x.kind.accumulator_type, [4 * x.rows * x.columns])
    return [accumulators, VectorType(i32, [4 * x.rows]), VectorType(i32, [2 * x.columns])]


def product_types(text: str, expected: Callable[[Any], list[Attribute]]) -> Rule:
    """That the accumulators and both factors of a product have the expected types."""

    def given(x: Any) -> list[Attribute]:
        return [x.accumulator, x.left, x.right]

    return Rule(
        text,
        lambda x: given(x) == expected(x),
        lambda x: f"takes ({', '.join(map(str, expected(x)))}), not ({', '.join(map(str, given(x)))})",
    )


@instruction
class MmaOp(Instruction):
    """The warp's matrix unit: `rows` x `columns` tiles of 16 x 8 accumulators, each plus a 16 x k times a k x 8 matrix.

    k is 16 for f16 and bf16, 32 for bytes; u8 has them unsigned on the left. Fragments are laid out as PTX documents `mma.sync`: tile (i, j) has the
    accumulators `4 * (i * columns + j)` and following, left fragments `4 * i`.., right fragments `2 * j`...

    Example: `%d = kernel.mma f16 %c, %a, %b {rows = 2 : i64, columns = 4 : i64} : vector<32xf32>, vector<8xi32>, vector<8xi32> -> vector<32xf32>`
    """  # noqa: E501

    name = "kernel.mma"

    kind: MmaKindAttr = fields.attribute(converter=MmaKindAttr)
    accumulator: SSAValue = fields.fragment()
    left: SSAValue = fields.fragment()
    right: SSAValue = fields.fragment()
    rows: IntegerAttr = fields.attribute(converter=fields.number)
    columns: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(VectorType, like="accumulator")

    syntax = "$kind $accumulator `,` $left `,` $right"
    effects = PURE
    scope = "warp"
    rules = (
        Rule(
            "only warpgroups multiply e4m3 and tf32",
            lambda x: x.kind not in (MmaKind.E4M3, MmaKind.TF32),
            "only warpgroups multiply {kind}",
        ),
        product_types("accumulators are i32 of int8 and else f32, factors are packed in i32", _expected),
    )
    cuda = Text("mma", '"{kind}", {rows}, {columns}', hint="multiply")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        count = site.lanes.count

        def per_warp(value: Any) -> Any:
            shape = (count, value.shape[1])
            return np.broadcast_to(value, shape).reshape(-1, 8, 4, shape[1])  # [warp, group, thread, register]

        left = _unpack(per_warp(x.left), x.kind)  # [warp, g, t, register, e]
        right = _unpack(per_warp(x.right), MmaKind.S8 if x.kind == MmaKind.U8 else x.kind)
        a = arranged(left, "w g t (i h s) e", "w (i s g) (h t e)", h=2, s=2)
        b = arranged(right, "w g t (j h) e", "w (h t e) (j g)", h=2)
        delta = arranged(np.matmul(a, b), "w (i s g) (j t e)", "(w g t) (i j s e)", s=2, g=8, t=4, e=2)
        return (x.accumulator + delta).astype(x.accumulator.dtype)


def _unpack(registers: Any, kind: MmaKind) -> Any:
    """The elements of 32-bit registers in a type that holds their products exactly enough."""
    import ml_dtypes
    import numpy as np

    dtype = {
        MmaKind.F16: np.dtype(np.float16),
        MmaKind.BF16: np.dtype(ml_dtypes.bfloat16),
        MmaKind.S8: np.dtype(np.int8),
        MmaKind.U8: np.dtype(np.uint8),
    }[kind]
    registers = np.ascontiguousarray(registers)
    wide = np.int64 if kind.accumulator_type == i32 else np.float64
    return registers[..., None].view(dtype).astype(wide)
