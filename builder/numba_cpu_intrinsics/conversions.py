"""Conversions between scalar types, of scalars and of every lane of a vector. 16-bit floats are held as float32."""

from __future__ import annotations

from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import Vector
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value
from mlirt.builder.numba_cpu_intrinsics.lanewise import conversion, joint_type
from mlirt.builder.numba_cpu_intrinsics.untyped import intrinsic, ir, types


def half_bits(x: Value) -> Value:
    """The 16 bits of a float32 rounded to a float16."""
    kind = ir.VectorType(ir.HalfType(), x.lanes) if x.lanes else ir.HalfType()
    target = x.like(None, types.uint16)
    return target.like(x.builder.bitcast(x.builder.fptrunc(x.llvm, kind), target.llvm_type))


def from_half_bits(bits: Value) -> Value:
    """The float32 of a float16's 16 bits."""
    kind = ir.VectorType(ir.HalfType(), bits.lanes) if bits.lanes else ir.HalfType()
    target = bits.like(None, types.float32)
    return target.like(bits.builder.fpext(bits.builder.bitcast(bits.llvm, kind), target.llvm_type))


def bfloat_bits(x: Value) -> Value:
    """The upper 16 bits of a float32, rounded to nearest, ties to even; NaN stays NaN."""
    bits = x.reinterpret(types.uint32)
    rounded = (bits + ((bits >> 16) & 1) + 0x7FFF) >> 16
    quiet = (bits >> 16) | 0x40
    return x.is_nan().choose(quiet, rounded).to(types.uint16)


def from_bfloat_bits(bits: Value) -> Value:
    """The float32 of a bfloat16's 16 bits."""
    return (bits.to(types.uint32) << 16).reinterpret(types.float32)


def _int32_in_range(context: Any, x: Any) -> Any:
    """The int32 of a float that is known to be in range, toward zero: one instruction instead of many."""
    joint = joint_type(context, [x])
    result = Vector(types.int32, joint.lanes) if isinstance(joint, Vector) else types.int32

    def codegen(context: Any, builder: Any, sig: Any, operands: Any) -> Any:
        return Value.of(builder, operands[0], sig.args[0]).to_int32_in_range().llvm

    return result(x), codegen


def _bits_as(element: Any) -> Any:
    """The bits of a value as another type of its width."""

    def typed(context: Any, x: Any) -> Any:
        joint = joint_type(context, [x])
        result = Vector(element, joint.lanes) if isinstance(joint, Vector) else element

        def codegen(context: Any, builder: Any, sig: Any, operands: Any) -> Any:
            return Value.of(builder, operands[0], sig.args[0]).reinterpret(element).llvm

        return result(x), codegen

    return intrinsic(typed)


float16 = conversion(types.float32, lambda x: from_half_bits(half_bits(x)))
bfloat16 = conversion(types.float32, lambda x: from_bfloat_bits(bfloat_bits(x)))
float32 = conversion(types.float32)
float64 = conversion(types.float64)
bool_ = conversion(types.boolean)
int8 = conversion(types.int8)
int16 = conversion(types.int16)
int32 = conversion(types.int32)
int64 = conversion(types.int64)
uint8 = conversion(types.uint8)
uint16 = conversion(types.uint16)
uint32 = conversion(types.uint32)
uint64 = conversion(types.uint64)

int32_in_range = intrinsic(_int32_in_range)

bits_as_float32 = _bits_as(types.float32)
bits_as_float64 = _bits_as(types.float64)
bits_as_int8 = _bits_as(types.int8)
bits_as_int16 = _bits_as(types.int16)
bits_as_int32 = _bits_as(types.int32)
bits_as_int64 = _bits_as(types.int64)
bits_as_uint8 = _bits_as(types.uint8)
bits_as_uint16 = _bits_as(types.uint16)
bits_as_uint32 = _bits_as(types.uint32)
bits_as_uint64 = _bits_as(types.uint64)
