"""Fragments: the part of a tile that one thread holds in registers, a rank-1 `vector`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from mlirt.dialects.kernel.buffers import fragment, is_shared, length, memory
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import byte_width

_WIDEST = 16  # bytes of an access


@irdl_op_definition
class FillFragmentOp(IRDLOperation):
    """A fragment whose elements are all the same.

    Example: `%zeros = kernel.fill_fragment %zero : f32 -> vector<64xf32>`
    """

    name = "kernel.fill_fragment"

    value = operand_def(AnyAttr())
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, count: int) -> None:
        super().__init__(operands=[value], result_types=[VectorType(value.type, [count])])


@irdl_op_definition
class FragmentOp(IRDLOperation):
    """A fragment of these elements.

    Example: `%v = kernel.fragment %a, %b : f32, f32 -> vector<2xf32>`
    """

    name = "kernel.fragment"

    values = var_operand_def(AnyAttr())
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$values attr-dict `:` type($values) `->` type($result)"

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[values], result_types=[VectorType(values[0].type, [len(values)])])

    def verify_(self) -> None:
        require(
            len(self.values) == length(self.result), f"{self.name}: {len(self.values)} elements for {self.result.type}"
        )


@irdl_op_definition
class FragmentElementOp(IRDLOperation):
    """One element of a fragment.

    Example: `%a = kernel.fragment_element %v {position = 3 : i64} : vector<4xf32> -> f32`
    """

    name = "kernel.fragment_element"

    fragment = operand_def(VectorType)
    position = prop_def(IntegerAttr)
    result = result_def(AnyAttr())
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$fragment attr-dict `:` type($fragment) `->` type($result)"

    def __init__(self, value: SSAValue, position: int) -> None:
        super().__init__(
            operands=[value],
            properties={"position": IntegerAttr(position, i64)},
            result_types=[fragment(value).get_element_type()],
        )

    def verify_(self) -> None:
        require(
            0 <= self.position.value.data < length(self.fragment),
            f"{self.name}: no position {self.position.value.data}",
        )


class _FragmentAccess(IRDLOperation):
    """An access of one element per entry of `offsets`: at `index + offset * stride`, stride 1 where none is given.

    With `valid`, only the first so many elements are accessed. `wide` says that groups of consecutive offsets, of up to
    16 bytes and as many as all runs of such offsets allow, are so aligned in memory, and become one access each.
    """

    offsets = prop_def(DenseArrayBase.constr(i64))
    wide = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def check(self, buffer: SSAValue, value: SSAValue) -> None:
        require(len(self.offsets) == length(value), f"{self.name}: {len(self.offsets)} offsets for {value.type}")
        require(
            memory(buffer).get_element_type() == fragment(value).get_element_type(),
            f"{self.name}: {value.type} and {buffer.type} differ in the element type",
        )

    def offset_list(self) -> list[int]:
        return [int(offset) for offset in self.offsets.iter_values()]

    def group(self, buffer: SSAValue) -> int:
        """How many elements one access moves."""
        most = _WIDEST // byte_width(memory(buffer).get_element_type())
        return _largest_group(self.offset_list(), most) if self.wide.value.data else 1


def _largest_group(offsets: Sequence[int], most: int) -> int:
    """The largest power of two up to `most` into whose multiples the offsets fall as runs of neighbours."""
    group = most
    while group > 1:
        runs = [offsets[start : start + group] for start in range(0, len(offsets), group)]
        if all(list(run) == list(range(run[0], run[0] + group)) for run in runs):
            break
        group //= 2
    return max(group, 1)


def _access_properties(offsets: Sequence[int], wide: bool) -> dict[str, Attribute]:
    return {"offsets": DenseArrayBase.from_list(i64, list(offsets)), "wide": BoolAttr.from_bool(wide)}


def _optional(value: SSAValue | None) -> list[SSAValue]:
    return [] if value is None else [value]


@irdl_op_definition
class LoadFragmentOp(_FragmentAccess):
    """Read one element per offset; those beyond `valid` are zero and not read (in device memory).

    Example: `%v = kernel.load_fragment %x[%i] stride %s valid %n {offsets = array<i64: 0, 4>} : memref<?xf32> -> vector<2xf32>`
    """  # noqa: E501

    name = "kernel.load_fragment"

    buffer = operand_def(MemRefType)
    index = operand_def(IndexType())
    stride = opt_operand_def(IndexType())
    valid = opt_operand_def(IndexType())
    result = result_def(VectorType)
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$buffer `[` $index `]` (`stride` $stride^)? (`valid` $valid^)? attr-dict `:` type($buffer) `->` type($result)"
    )

    def __init__(
        self,
        buffer: SSAValue,
        index: SSAValue,
        offsets: Sequence[int],
        *,
        stride: SSAValue | None = None,
        valid: SSAValue | None = None,
        wide: bool = False,
    ) -> None:
        super().__init__(
            operands=[buffer, index, _optional(stride), _optional(valid)],
            properties=_access_properties(offsets, wide),
            result_types=[VectorType(memory(buffer).get_element_type(), [len(offsets)])],
        )

    def verify_(self) -> None:
        self.check(self.buffer, self.result)
        guarded = self.valid is not None
        require(not (guarded and is_shared(self.buffer)), f"{self.name}: only device memory is read as far as `valid`")


@irdl_op_definition
class StoreFragmentOp(_FragmentAccess):
    """Write one element per offset, except those beyond `valid`.

    Example: `kernel.store_fragment %v, %x[%i] {offsets = array<i64: 0, 1>} : vector<2xf32>, memref<?xf32>`
    """

    name = "kernel.store_fragment"

    value = operand_def(VectorType)
    buffer = operand_def(MemRefType)
    index = operand_def(IndexType())
    stride = opt_operand_def(IndexType())
    valid = opt_operand_def(IndexType())
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$value `,` $buffer `[` $index `]` (`stride` $stride^)? (`valid` $valid^)? attr-dict `:` type($value) `,` "
        "type($buffer)"
    )

    def __init__(
        self,
        value: SSAValue,
        buffer: SSAValue,
        index: SSAValue,
        offsets: Sequence[int],
        *,
        stride: SSAValue | None = None,
        valid: SSAValue | None = None,
        wide: bool = False,
    ) -> None:
        super().__init__(
            operands=[value, buffer, index, _optional(stride), _optional(valid)],
            properties=_access_properties(offsets, wide),
        )

    def verify_(self) -> None:
        self.check(self.buffer, self.value)


@irdl_op_definition
class OuterProductOp(IRDLOperation):
    """`accumulator[i, j] + left[i] * right[j]` in single precision; the accumulator is row-major.

    Example: `%d = kernel.outer_product %c, %a, %b : vector<64xf32>, vector<8xf32>, vector<8xf32> -> vector<64xf32>`
    """

    name = "kernel.outer_product"

    accumulator = operand_def(VectorType)
    left = operand_def(VectorType)
    right = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$accumulator `,` $left `,` $right attr-dict `:` type($accumulator) `,` type($left) `,` type($right) `->` "
        "type($result)"
    )

    def __init__(self, accumulator: SSAValue, left: SSAValue, right: SSAValue) -> None:
        super().__init__(operands=[accumulator, left, right], result_types=[accumulator.type])

    def verify_(self) -> None:
        rows, columns = length(self.left), length(self.right)
        require(
            length(self.accumulator) == rows * columns,
            f"{self.name}: {rows} x {columns} products for {self.accumulator.type}",
        )
