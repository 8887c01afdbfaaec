"""Conversions between scalar types, of scalars and of every lane of a vector. 16-bit floats are held as float32."""

from __future__ import annotations

from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import Vector
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value
from mlirt.builder.numba_cpu_intrinsics.lanewise import conversion, joint_type
from mlirt.builder.numba_cpu_intrinsics.processor import has_feature, is_x86
from mlirt.builder.numba_cpu_intrinsics.untyped import intrinsic, ir, types


def _converts_halves() -> bool:
    """Whether the processor that code is made for has instructions for it; LLVM calls missing functions without."""
    return has_feature("f16c") or not is_x86()


def half_bits(x: Value) -> Value:
    """The 16 bits of a float32 rounded to a float16."""
    if not _converts_halves():
        return _rounded_to_half(x)
    kind = ir.VectorType(ir.HalfType(), x.lanes) if x.lanes else ir.HalfType()
    target = x.like(None, types.uint16)
    return target.like(x.builder.bitcast(x.builder.fptrunc(x.llvm, kind), target.llvm_type))


def from_half_bits(bits: Value) -> Value:
    """The float32 of a float16's 16 bits."""
    if not _converts_halves():
        return _widened_half(bits)
    kind = ir.VectorType(ir.HalfType(), bits.lanes) if bits.lanes else ir.HalfType()
    target = bits.like(None, types.float32)
    return target.like(bits.builder.fpext(bits.builder.bitcast(bits.llvm, kind), target.llvm_type))


_MIN_NORMAL = 0x38800000  # the float32 2**-14
_BEYOND = 0x47800000  # 65536, which no float16 is
_INFINITE = 0x7F800000
_REBIASED = 0xC8000FFF  # (15 - 127) << 23, and what rounds 13 bits away but for a tie


def _rounded_to_half(x: Value) -> Value:
    """To the nearest, ties to even, by arithmetic of integers; NaN stays NaN, with the upper bits of its payload."""
    bits = x.reinterpret(types.uint32)
    size = bits & 0x7FFFFFFF
    normal = (size + ((size >> 13) & 1) + _REBIASED) >> 13
    # Half of the float32 0.5's last place is half of the least float16's: the addition rounds to it.
    subnormal = (size.reinterpret(types.float32) + 0.5).reinterpret(types.uint32) - 0x3F000000
    huge = (size > _INFINITE).choose(((size >> 13) & 0x3FF) | 0x7E00, size.number(0x7C00))
    finite = (size < _MIN_NORMAL).choose(subnormal, normal)
    rounded = (size > _BEYOND - 1).choose(huge, finite)
    return (rounded | ((bits >> 16) & 0x8000)).to(types.uint16)


def _widened_half(bits: Value) -> Value:
    """Exactly: a product with a power of two moves the exponent, of numbers below the least normal one too."""
    wide = bits.to(types.uint32)
    size = (wide & 0x7FFF) << 13
    finite = (size.reinterpret(types.float32) * 2.0**112).reinterpret(types.uint32)
    widened = ((wide & 0x7C00).compare("==", 0x7C00)).choose(size | _INFINITE, finite)
    return (widened | ((wide & 0x8000) << 16)).reinterpret(types.float32)


def bfloat_bits(x: Value) -> Value:
    """The upper 16 bits of a float32, rounded to nearest, ties to even; NaN stays NaN."""
    bits = x.reinterpret(types.uint32)
    rounded = (bits + ((bits >> 16) & 1) + 0x7FFF) >> 16
    quiet = (bits >> 16) | 0x40
    # A scalar that is only moved never becomes a float where integers are compared.
    is_nan = x.is_nan() if x.lanes else (bits & 0x7FFFFFFF) > _INFINITE
    return is_nan.choose(quiet, rounded).to(types.uint16)


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
