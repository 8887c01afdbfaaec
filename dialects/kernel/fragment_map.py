"""Scalar arithmetic on all elements of fragments, and parts of fragments."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, IntegerType, VectorType, f32, i32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsolatedFromAbove, Pure
from xdsl.utils.hints import isa

from mlirt.dialects.kernel.buffers import fragment, length
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import byte_width


@irdl_op_definition
class FragmentPartOp(IRDLOperation):
    """The elements of a fragment from a position on.

    Example: `%half = kernel.fragment_part %v {position = 32 : i64} : vector<64xf32> -> vector<32xf32>`
    """

    name = "kernel.fragment_part"

    fragment = operand_def(VectorType)
    position = prop_def(IntegerAttr)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$fragment attr-dict `:` type($fragment) `->` type($result)"

    def __init__(self, value: SSAValue, position: int, count: int) -> None:
        super().__init__(
            operands=[value],
            properties={"position": IntegerAttr(position, i64)},
            result_types=[VectorType(fragment(value).get_element_type(), [count])],
        )

    def verify_(self) -> None:
        first = self.position.value.data
        inside = 0 <= first and first + length(self.result) <= length(self.fragment)
        require(inside, f"{self.name}: {length(self.result)} elements from {first} on of {self.fragment.type}")


@irdl_op_definition
class MapFragmentOp(IRDLOperation):
    """Apply scalar arithmetic to each element: the region takes one element of each operand and yields one.

    All fragments among the operands have one length; other operands are the same for all elements.

    Example: `%y = kernel.map_fragment %x, %a : vector<8xf32>, f32 -> vector<8xf16> { ^bb0(%0: f32, %1: f32): ..
    kernel.yield %v : f16 }`
    """

    name = "kernel.map_fragment"

    operands_ = var_operand_def(AnyAttr())
    result = result_def(VectorType)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), Pure())
    assembly_format = "$operands_ attr-dict-with-keyword `:` type($operands_) `->` type($result) $body"

    def __init__(
        self, operands: Sequence[SSAValue], element: Attribute, count: int, body: Region | None = None
    ) -> None:
        region = body if body is not None else Region(Block(arg_types=[element_type(value) for value in operands]))
        super().__init__(operands=[operands], result_types=[VectorType(element, [count])], regions=[region])

    def verify_(self) -> None:
        expected = [element_type(value) for value in self.operands]
        given = [argument.type for argument in self.body.block.args]
        require(given == expected, f"{self.name}: the region takes one element of each operand")
        lengths = {length(value) for value in self.operands if isinstance(value.type, VectorType)}
        require(lengths <= {length(self.result)}, f"{self.name}: the fragments have different lengths")
        last = self.body.block.last_op
        yields = isinstance(last, YieldOp) and [value.type for value in last.values] == [
            fragment(self.result).get_element_type()
        ]
        require(yields, f"{self.name}: the region yields one element of {self.result.type}")


@irdl_op_definition
class SaturateFragmentOp(IRDLOperation):
    """Integers as bytes: each becomes the nearest one that a byte, signed or unsigned, can hold.

    Example: `%y = kernel.saturate_fragment %x : vector<16xi32> -> vector<16xi8>`
    """

    name = "kernel.saturate_fragment"

    fragment = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$fragment attr-dict `:` type($fragment) `->` type($result)"

    def __init__(self, value: SSAValue, element: Attribute) -> None:
        super().__init__(operands=[value], result_types=[VectorType(element, [length(value)])])

    def verify_(self) -> None:
        given, made = fragment(self.fragment).get_element_type(), fragment(self.result).get_element_type()
        fits = given == i32 and byte_width(made) == 1 and isa(made, IntegerType)
        require(fits, f"{self.name}: i32 become bytes, not {given} {made}")
        require(length(self.fragment) == length(self.result), f"{self.name}: the fragments have different lengths")


@irdl_op_definition
class FloatFragmentOp(IRDLOperation):
    """Bytes, signed or unsigned, as the floats that they are.

    Example: `%y = kernel.float_fragment %x : vector<16xi8> -> vector<16xf32>`
    """

    name = "kernel.float_fragment"

    fragment = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$fragment attr-dict `:` type($fragment) `->` type($result)"

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value], result_types=[VectorType(f32, [length(value)])])

    def verify_(self) -> None:
        given, made = fragment(self.fragment).get_element_type(), fragment(self.result).get_element_type()
        fits = made == f32 and byte_width(given) == 1 and isa(given, IntegerType)
        require(fits, f"{self.name}: bytes become f32, not {given} {made}")
        require(length(self.fragment) == length(self.result), f"{self.name}: the fragments have different lengths")


def element_type(value: SSAValue) -> Attribute:
    """The type of an element of a fragment, or of a value that is none."""
    return fragment(value).get_element_type() if isinstance(value.type, VectorType) else value.type
