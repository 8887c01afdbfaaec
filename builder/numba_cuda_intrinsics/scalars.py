"""Arithmetic on scalars whose meaning differs from Python's operators, and conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import F32, F64, I16, I32, I64, ir, ptx, word
from mlirt.builder.numba_cuda_intrinsics.untyped import intrinsic, intrinsic_of_literals, types


def _joint(context: Any, operands: Sequence[Any]) -> Any:
    """The type in which operands of an operation are combined; plain integers take the type of other integers."""
    typed = [operand for operand in operands if not isinstance(operand, types.IntegerLiteral)]
    if typed and all(isinstance(operand, types.Integer) for operand in typed):
        operands = typed
    plain = [types.unliteral(operand) for operand in operands]
    if not all(isinstance(operand, types.Number | types.Boolean) for operand in plain):
        return None
    return plain[0] if len(set(plain)) == 1 else context.unify_types(*plain)


Emit = Callable[..., Any]


def _combined(emit: Emit, joint: Any) -> Callable[..., Any]:
    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        pairs = zip(values, signature.args, strict=True)
        return emit(builder, joint, *[context.cast(builder, value, type_, joint) for value, type_ in pairs])

    return codegen


def _unary(emit: Emit) -> Any:
    def typed(context: Any, x: Any) -> Any:
        joint = _joint(context, [x])
        return None if joint is None else (joint(x), _combined(emit, joint))

    return intrinsic(typed)


def _binary(emit: Emit) -> Any:
    def typed(context: Any, x: Any, y: Any) -> Any:
        joint = _joint(context, [x, y])
        return None if joint is None else (joint(x, y), _combined(emit, joint))

    return intrinsic_of_literals(typed)


def _ternary(emit: Emit) -> Any:
    def typed(context: Any, x: Any, y: Any, z: Any) -> Any:
        joint = _joint(context, [x, y, z])
        return None if joint is None else (joint(x, y, z), _combined(emit, joint))

    return intrinsic(typed)


def _is_float(type_: Any) -> bool:
    return isinstance(type_, types.Float)


def _compare(builder: Any, predicate: str, type_: Any, a: Any, b: Any) -> Any:
    if _is_float(type_):
        return builder.fcmp_ordered(predicate, a, b)
    signed = isinstance(type_, types.Integer) and type_.signed
    return (builder.icmp_signed if signed else builder.icmp_unsigned)(predicate, a, b)


def _extreme(predicate: str, instruction: str) -> Emit:
    """Not-a-number wins."""

    def emit(builder: Any, type_: Any, a: Any, b: Any) -> Any:
        if a.type == F32:
            return ptx(builder, f"{instruction}.NaN.f32 $0, $1, $2;", [F32], [a, b], pure=True)[0]
        if type_ == types.float16:
            return ptx(builder, f"{instruction}.NaN.f16 $0, $1, $2;", [a.type], [a, b], pure=True)[0]
        chosen = _compare(builder, predicate, type_, a, b)
        if _is_float(type_):
            chosen = builder.or_(chosen, builder.fcmp_unordered("uno", a, a))
        return builder.select(chosen, a, b)

    return emit


def _extreme_number(instruction: str) -> Emit:
    """The number wins over not-a-number."""

    def emit(builder: Any, type_: Any, a: Any, b: Any) -> Any:
        suffix = "f32" if a.type == F32 else "f64"
        return ptx(builder, f"{instruction}.{suffix} $0, $1, $2;", [a.type], [a, b], pure=True)[0]

    return emit


maximum = _binary(_extreme(">", "max"))
minimum = _binary(_extreme("<", "min"))
maxnum = _binary(_extreme_number("max"))
minnum = _binary(_extreme_number("min"))


def _nonzero(builder: Any, b: Any) -> Any:
    """A divisor for which the quotient is defined."""
    if isinstance(b, ir.Constant):
        return b if b.constant else ir.Constant(b.type, 1)
    return builder.select(builder.icmp_unsigned("==", b, b.type(0)), b.type(1), b)


def _division(signed: str, unsigned: str) -> Emit:
    def emit(builder: Any, type_: Any, a: Any, b: Any) -> Any:
        return getattr(builder, signed if type_.signed else unsigned)(a, _nonzero(builder, b))

    return emit


def _rounded_division(correction: int) -> Emit:
    """The quotient rounded down (-1) or up (+1)."""

    def emit(builder: Any, type_: Any, a: Any, b: Any) -> Any:
        divisor = _nonzero(builder, b)
        quotient = (builder.sdiv if type_.signed else builder.udiv)(a, divisor)
        rest = builder.sub(a, builder.mul(quotient, divisor))
        inexact = builder.icmp_unsigned("!=", rest, rest.type(0))
        negative = builder.icmp_signed("<", builder.xor(a, divisor), rest.type(0))
        if not type_.signed:
            negative = ir.IntType(1)(0)
        off = builder.and_(inexact, negative if correction < 0 else builder.not_(negative))
        return builder.select(off, builder.add(quotient, rest.type(correction)), quotient)

    return emit


def _index(instruction: str) -> Any:
    """A division of indices of 32 bits that are not negative."""

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        pairs = zip(values, signature.args, strict=True)
        a, b = (context.cast(builder, value, type_, types.uint32) for value, type_ in pairs)
        return getattr(builder, instruction)(a, _nonzero(builder, b))

    def typed(context: Any, x: Any, y: Any) -> Any:
        return types.int32(x, y), codegen

    return intrinsic(typed)


div = _index("udiv")
rem = _index("urem")
truncated_div = _binary(_division("sdiv", "udiv"))
truncated_rem = _binary(_division("srem", "urem"))
floor_div = _binary(_rounded_division(-1))
ceil_div = _binary(_rounded_division(1))


@_binary
def divide(builder: Any, type_: Any, a: Any, b: Any) -> Any:
    """The quotient of floating-point numbers, rounded correctly."""
    return builder.fdiv(a, b)


@_binary
def divide_closely(builder: Any, type_: Any, a: Any, b: Any) -> Any:
    """A quotient for results of half precision: of float32 numbers, at most 2 units in the last place off."""
    if a.type == F32:
        return ptx(builder, "div.full.f32 $0, $1, $2;", [F32], [a, b], pure=True)[0]
    return builder.fdiv(a, b)


@_binary
def rounded_product(builder: Any, type_: Any, a: Any, b: Any) -> Any:
    """A product that is rounded for itself, whatever it is added to."""
    suffix = "f32" if a.type == F32 else "f64"
    return ptx(builder, f"mul.rn.{suffix} $0, $1, $2;", [a.type], [a, b], pure=True)[0]


@_ternary
def fma(builder: Any, type_: Any, a: Any, b: Any, c: Any) -> Any:
    suffix = "f32" if a.type == F32 else "f64"
    return ptx(builder, f"fma.rn.{suffix} $0, $1, $2, $3;", [a.type], [a, b, c], pure=True)[0]


@_unary
def absolute(builder: Any, type_: Any, x: Any) -> Any:
    if _is_float(type_):
        suffix = "f32" if x.type == F32 else "f64"
        return ptx(builder, f"abs.{suffix} $0, $1;", [x.type], [x], pure=True)[0]
    return builder.select(builder.icmp_signed("<", x, x.type(0)), builder.neg(x), x)


@_unary
def nan_as_zero(builder: Any, type_: Any, x: Any) -> Any:
    """A number that may become an integer of 64 bits: devices give the least one for not-a-number, 0 is meant."""
    return builder.select(builder.fcmp_ordered("ord", x, x), x, x.type(0.0))


@_unary
def logical_not(builder: Any, type_: Any, x: Any) -> Any:
    return builder.not_(x)


@intrinsic_of_literals
def select(context: Any, condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where the condition holds, else `no`."""
    joint = _joint(context, [yes, no])
    if joint is None:
        return None

    def codegen(target: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        flag = target.cast(builder, values[0], signature.args[0], types.boolean)
        sides = [target.cast(builder, v, t, joint) for v, t in zip(values[1:], signature.args[1:], strict=True)]
        return builder.select(flag, *sides)

    return joint(condition, yes, no), codegen


@intrinsic
def integer_power(context: Any, base: Any, exponent: Any) -> Any:
    """`base ** exponent` of integers; 0 for negative exponents, except of 1 and -1."""
    joint = _joint(context, [base, exponent])

    def power(x: Any, n: Any) -> Any:
        if n < 0:
            return x if (x == 1 or x == -1) and n % 2 != 0 else (x * x if x == 1 or x == -1 else x - x)
        result = x - x + 1
        while n > 0:
            if n % 2 == 1:
                result = result * x
            n = n // 2
            x = x * x
        return result

    def codegen(target: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        operands = [target.cast(builder, v, t, joint) for v, t in zip(values, signature.args, strict=True)]
        result = target.compile_internal(builder, power, types.int64(joint, joint), operands)
        return target.cast(builder, result, types.int64, joint)

    return joint(base, exponent), codegen


# bfloat16 numbers are kept as their 16 bits.


def _bfloat16(builder: Any, x: Any) -> Any:
    return ptx(builder, "cvt.rn.bf16.f32 $0, $1;", [I16], [x], pure=True)[0]


def _float32_of_bfloat16(builder: Any, bits: Any) -> Any:
    return builder.bitcast(builder.shl(builder.zext(bits, I32), I32(16)), F32)


bfloat16 = word(types.uint16, [types.float32], _bfloat16)
float32_of_bfloat16 = word(types.float32, [types.uint16], _float32_of_bfloat16)


def _bits_as(result: Any, llvm: Any) -> Any:
    @intrinsic
    def reinterpret(context: Any, x: Any) -> Any:
        def codegen(target: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
            return builder.bitcast(values[0], llvm)

        return result(types.unliteral(x)), codegen

    return reinterpret


bits_as_float16 = _bits_as(types.float16, I16)
bits_as_float32 = _bits_as(types.float32, F32)
bits_as_float64 = _bits_as(types.float64, F64)
bits_as_int8, bits_as_uint8 = _bits_as(types.int8, ir.IntType(8)), _bits_as(types.uint8, ir.IntType(8))
bits_as_int16, bits_as_uint16 = _bits_as(types.int16, I16), _bits_as(types.uint16, I16)
bits_as_int32, bits_as_uint32 = _bits_as(types.int32, I32), _bits_as(types.uint32, I32)
bits_as_int64, bits_as_uint64 = _bits_as(types.int64, I64), _bits_as(types.uint64, I64)
