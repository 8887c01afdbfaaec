"""Numbers that the blocks of one launch send each other, each in one word together with a flag that says which it is.

A word is written and read whole: who finds the flag has the number too, so that no barrier and no fence is needed. The
attribute `cooperative` of a kernel says that all of its blocks run at the same time, as those that wait need.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import Float32Type, IndexType, IntegerAttr, IntegerType, MemRefType, VectorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from mlirt.dialects.kernel.buffers import fragment, length, memory
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import byte_width, is_float

WIDEST = 16  # bytes that are read at once


def word_type(element: Attribute) -> IntegerType:
    """The words that carry numbers of a type: half of each is the number, half the flag."""
    return IntegerType(64 if isinstance(element, Float32Type) else 32)


def words_at_once(element: Attribute) -> int:
    """How many neighbouring words are read at once."""
    return WIDEST // byte_width(word_type(element))


def _check_words(op: IRDLOperation, element: Attribute, words: SSAValue) -> None:
    is_short = is_float(element) and byte_width(element) in (2, 4)
    require(is_short, f"{op.name}: moves floating-point numbers of 16 or 32 bits, not {element}")
    found, wanted = memory(words).get_element_type(), word_type(element)
    require(found == wanted, f"{op.name}: the words for {element} are {wanted}, not {found}")


@irdl_op_definition
class SendFlaggedOp(IRDLOperation):
    """Write a number and a flag, of which the lower half of a word's bits count.

    Example: `kernel.send_flagged %value flag %t, %words[%i] : f16, memref<?xi32>`
    """

    name = "kernel.send_flagged"

    value = operand_def(AnyAttr())
    flag = operand_def(IndexType())
    words = operand_def(MemRefType)
    index = operand_def(IndexType())
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$value `flag` $flag `,` $words `[` $index `]` attr-dict `:` type($value) `,` type($words)"

    def __init__(self, value: SSAValue, flag: SSAValue, words: SSAValue, index: SSAValue) -> None:
        super().__init__(operands=[value, flag, words, index])

    def verify_(self) -> None:
        _check_words(self, self.value.type, self.words)


@irdl_op_definition
class ReceiveFlaggedOp(IRDLOperation):
    """Wait until `count` neighbouring words from each index on have a flag; gives their numbers, index by index.

    The words of an index fill 16 bytes at most and are aligned like that.

    Example: `%v = kernel.receive_flagged %words[%i, %j] flag %t {count = 4 : i64} : memref<?xi32> -> vector<8xf16>`
    """

    name = "kernel.receive_flagged"

    words = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    flag = operand_def(IndexType())
    count = prop_def(IntegerAttr)
    result = result_def(VectorType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$words `[` $indices `]` `flag` $flag attr-dict `:` type($words) `->` type($result)"

    def __init__(
        self, words: SSAValue, indices: Sequence[SSAValue], flag: SSAValue, count: int, element: Attribute
    ) -> None:
        super().__init__(
            operands=[words, indices, flag],
            properties={"count": IntegerAttr(count, i64)},
            result_types=[VectorType(element, [count * len(indices)])],
        )

    def verify_(self) -> None:
        element, count = fragment(self.result).get_element_type(), self.count.value.data
        _check_words(self, element, self.words)
        require(0 < count <= words_at_once(element), f"{self.name}: {count} words are not read at once")
        require(length(self.result) == count * len(self.indices), f"{self.name}: gives {count} numbers per index")
