"""Weights of 2, 4 and 8 bits that stay packed: the numbers that they stand for, and products with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, IntegerAttr, TensorType, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.length_requirements import LengthRequirement, equal
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, element_type, is_bool, is_float, rank, tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class PackedOp(TensorOp, ABC):
    """An op on packed codes `[.., row bytes]` with a scale, and perhaps a zero point, for each block of a row."""

    codes = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero_point = opt_operand_def(TensorType)
    bits = prop_def(IntegerAttr[I64])
    block = prop_def(IntegerAttr[I64])
    float4 = opt_prop_def(UnitAttr)

    @abstractmethod
    def row_length(self) -> Dim:
        """How many codes of a row count."""

    def check_codes(self) -> None:
        """Raise unless types, ranks and sizes of the codes fit (C1 to C3)."""
        from mlirt.dialects.packed_codes import BITS, FLOAT4_BITS

        bits, block = self.bits.value.data, self.block.value.data
        fits = bits in BITS and block > 0 and block * bits % 8 == 0
        require(fits, f"C1: {self.name} knows blocks of whole bytes of 2, 4 or 8 bits, not {block} of {bits} bits")
        is_plain = self.float4 is None or (bits == FLOAT4_BITS and self.zero_point is None)
        require(is_plain, f"C1: 4-bit floats of {self.name} have 4 bits and no zero point")
        found = element_of(self.codes.type)
        require(found == element_type("uint8"), f"C1: the codes of {self.name} are bytes (ui8), not {found}")
        found = element_of(self.scale.type)
        require(is_float(found), f"C2: the scale of {self.name} needs floating-point numbers, not {found}")
        if self.zero_point is not None:
            found = element_of(self.zero_point.type)
            require(not is_bool(found), f"C2: the zero point of {self.name} needs numbers, not {found}")
        for label, operand in (("scale", self.scale), ("zero point", self.zero_point)):
            if operand is not None:
                same = rank(operand.type) == rank(self.codes.type) >= 1
                require(same, f"C3: the {label} of {self.name} has another rank than its codes")

    def length_requirements(self) -> Iterator[LengthRequirement]:
        from mlirt.dialects.packed_codes import row_bytes

        bits, block, depth = self.bits.value.data, self.block.value.data, self.row_length()
        *outer, width = dims(self.codes.type)
        yield equal("C3", f"bytes of a row of {self.name}", row_bytes(depth, block, bits), width)
        for label, operand in (("scale", self.scale), ("zero point", self.zero_point)):
            if operand is not None and not (operand is self.zero_point and _is_one(operand)):
                expected = [*outer, ceil_div(depth, block)]
                for wanted, given in zip(expected, dims(operand.type), strict=True):
                    yield equal("C3", f"length of the {label} of {self.name}", wanted, given)

    def numbers(self, arrays: Sequence[Array], depth: int) -> Array:
        """What codes, scale and zero point stand for, in float64."""
        from mlirt.dialects.packed_codes import numbers

        codes, scale, *zero = arrays
        bits, block, is_float = self.bits.value.data, self.block.value.data, self.float4 is not None
        return numbers(codes, scale, zero[0] if zero else None, block, bits, depth, is_float)


def _is_one(operand: SSAValue) -> bool:
    return all(size == 1 for size in dims(operand.type))


@irdl_op_definition
class DequantizeBlocksOp(PackedOp):
    """y[.., k] = (code[.., k] - zero_point[.., k / block]) * scale[.., k / block] for k < depth, in the scale's type.

    Codes are unsigned integers of `bits` bits along the last axis, the lowest bits of a byte first; a row is filled up
    to whole blocks. Without a zero point it is 2^(bits - 1). One scale a row is one block as long as the row. With
    `float4` a code is a 4-bit float (e2m1) itself.

    C1: bits is 2, 4 or 8, a block has whole bytes, and codes are ui8; 4-bit floats have no zero point. C2: the scale is
    floating-point, the zero point a number. C3: codes, scale and zero point are equally long but for the last axis,
    which has the bytes of all blocks, and one element a block.

    Example: `%w = trt.dequantize_blocks %c, %s {bits = 4 : i64, block = 32 : i64, depth = 64 : i64} :
    (tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<5x64xf32>`
    """

    name = "trt.dequantize_blocks"

    depth = prop_def(IntegerAttr[I64])
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$codes `,` $scale (`,` $zero_point^)? attr-dict `:` functional-type(operands, results)"

    def row_length(self) -> Dim:
        return self.depth.value.data

    def check(self) -> None:
        self.check_codes()

    def infer(self) -> Sequence[Tensor]:
        return [tensor(element_of(self.scale.type), [*dims(self.codes.type)[:-1], self.depth.value.data])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        return [np.asarray(self.numbers(arrays, self.depth.value.data).astype(arrays[1].dtype))]


@irdl_op_definition
class PackedMatrixMultiplyOp(PackedOp):
    """y[.., m, n] = sum over k of input[.., m, k] * w[n, k], where `trt.dequantize_blocks` would give w of the codes.

    C1 to C3 as there, for codes [n, row bytes]; a row of codes is as long as one of the input. C4: the input is of
    floating-point numbers and has rank 2 or more.

    Example: `%y = trt.packed_matrix_multiply %x, %c, %s {bits = 4 : i64, block = 32 : i64} :
    (tensor<3x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<3x5xf32>`
    """

    name = "trt.packed_matrix_multiply"

    input = operand_def(TensorType)
    codes = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero_point = opt_operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$input `,` $codes `,` $scale (`,` $zero_point^)? attr-dict `:` functional-type(operands, results)"
    )

    def row_length(self) -> Dim:
        return dims(self.input.type)[-1]

    def check(self) -> None:
        found = element_of(self.input.type)
        require(is_float(found), f"C4: the input of {self.name} needs floating-point numbers, not {found}")
        require(rank(self.input.type) > 1, f"C4: the input of {self.name} needs rank 2 or more")
        require(rank(self.codes.type) == 2, f"C3: the codes of {self.name} have rank 2, [n, row bytes]")
        self.check_codes()

    def infer(self) -> Sequence[Tensor]:
        return [tensor(element_of(self.input.type), [*dims(self.input.type)[:-1], dims(self.codes.type)[0]])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        x, *coded = arrays
        weights = self.numbers(coded, x.shape[-1])
        return [np.asarray((x.astype(np.float64) @ weights.T).astype(x.dtype))]
