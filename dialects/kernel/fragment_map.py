"""Scalar arithmetic on all elements of fragments, and parts of fragments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr, IntegerType, VectorType, f32, i32
from xdsl.ir import Attribute, Block, OpResult, Region, SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, irdl_op_definition, region_def, result_def, traits_def, var_operand_def
from xdsl.traits import IsolatedFromAbove, Pure
from xdsl.utils.hints import isa

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import fragment, length
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import PURE, Rule, Text
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import byte_width

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site


@instruction
class FragmentPartOp(Instruction):
    """The elements of a fragment from a position on.

    Example: `%half = kernel.fragment_part %v {position = 32 : i64} : vector<64xf32> -> vector<32xf32>`
    """

    name = "kernel.fragment_part"

    fragment: SSAValue = fields.fragment("T", "n")
    position: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(VectorType, "T", "count")

    syntax = "$fragment"
    effects = PURE
    rules = (
        Rule(
            "the part is inside of the fragment",
            lambda x: 0 <= x.position and x.position + x.count <= x.n,
            "{count} elements from {position} on of {fragment}",
        ),
    )

    def __init__(self, value: SSAValue, position: int, count: int) -> None:
        self.fill(value, position, result=VectorType(fragment(value).get_element_type(), [count]))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        return x.fragment[:, x.position : x.position + x.count]


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


def _is_int8(element: Attribute) -> bool:
    return byte_width(element) == 1 and isa(element, IntegerType)


_ONE_LENGTH = Rule("the fragments have one length", lambda x: x.n == x.count)


@instruction
class SaturateFragmentOp(Instruction):
    """Integers as bytes: each becomes the nearest one that a byte, signed or unsigned, can hold.

    Example: `%y = kernel.saturate_fragment %x : vector<16xi32> -> vector<16xi8>`
    """

    name = "kernel.saturate_fragment"

    fragment: SSAValue = fields.fragment("From", "n")
    result: OpResult = fields.result(VectorType, "To", "count")

    syntax = "$fragment"
    effects = PURE
    rules = (
        Rule(
            "i32 become bytes",
            lambda x: x.From.type == i32 and _is_int8(x.To.type),
            "i32 become bytes, not {From.type} {To.type}",
        ),
        _ONE_LENGTH,
    )
    cuda = Text("saturate_fragment", '"{To}", {n}', hint="saturate")

    def __init__(self, value: SSAValue, element: Attribute) -> None:
        self.fill(value, result=VectorType(element, [length(value)]))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        limits = np.iinfo(x.To)
        return np.clip(x.fragment, limits.min, limits.max).astype(x.To)


@instruction
class FloatFragmentOp(Instruction):
    """Bytes, signed or unsigned, as the floats that they are.

    Example: `%y = kernel.float_fragment %x : vector<16xi8> -> vector<16xf32>`
    """

    name = "kernel.float_fragment"

    fragment: SSAValue = fields.fragment("From", "n")
    result: OpResult = fields.result(VectorType, "To", "count")

    syntax = "$fragment"
    effects = PURE
    rules = (
        Rule(
            "bytes become f32",
            lambda x: x.To.type == f32 and _is_int8(x.From.type),
            "bytes become f32, not {From.type} {To.type}",
        ),
        _ONE_LENGTH,
    )
    cuda = Text("float_fragment", '"{From}", {n}', hint="floats")

    def __init__(self, value: SSAValue) -> None:
        self.fill(value, result=VectorType(f32, [length(value)]))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        return x.fragment.astype(x.To)


def element_type(value: SSAValue) -> Attribute:
    """The type of an element of a fragment, or of a value that is none."""
    return fragment(value).get_element_type() if isinstance(value.type, VectorType) else value.type
