"""LLVM values with arithmetic on them, scalars and vectors alike, so that formulas in this library read as formulas."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.extremum_instructions import extremum_or_second
from mlirt.builder.numba_cpu_intrinsics.lane_types import Vector, llvm_scalar
from mlirt.builder.numba_cpu_intrinsics.processor import has_feature, has_fused_operations, is_x86
from mlirt.builder.numba_cpu_intrinsics.scalable import converted_to_integers, holds_registers
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, ir, types

# Products may be contracted into fused multiply-adds; nothing else about floats is relaxed.
_FLAGS = ("contract",)


@dataclass(frozen=True)
class Value:
    """A value that is being computed: `lanes` is 0 for a scalar."""

    builder: Any
    llvm: Any
    element: Any
    lanes: int = 0

    @staticmethod
    def of(builder: Any, llvm: Any, type_: Any) -> Value:
        """The value of a numba type."""
        if isinstance(type_, Vector):
            return Value(builder, llvm, type_.element, type_.lanes)
        return Value(builder, llvm, types.unliteral(type_))

    @property
    def type(self) -> Any:
        return Vector(self.element, self.lanes) if self.lanes else self.element

    @property
    def llvm_type(self) -> Any:
        scalar = llvm_scalar(self.element)
        return ir.VectorType(scalar, self.lanes) if self.lanes else scalar

    @property
    def is_float(self) -> bool:
        return self.element in (types.float32, types.float64)

    @property
    def is_signed(self) -> bool:
        return self.is_float or bool(getattr(self.element, "signed", False))

    @property
    def is_constant(self) -> bool:
        return isinstance(self.llvm, ir.Constant)

    @property
    def width(self) -> int:
        if self.is_float:
            return 32 if self.element == types.float32 else 64
        return self.llvm_type.element.width if self.lanes else self.llvm_type.width

    # --- making values

    def like(self, llvm: Any, element: Any = None) -> Value:
        """Another value with as many lanes."""
        return Value(self.builder, llvm, self.element if element is None else element, self.lanes)

    def number(self, value: float) -> Value:
        """The same number in every lane."""
        if self.element == types.float32:
            value = struct.unpack("f", struct.pack("f", value))[0]
        elif not self.is_float:
            value = int(value)
        return self.like(ir.Constant(self.llvm_type, [value] * self.lanes if self.lanes else value))

    def _operand(self, other: Value | float) -> Value:
        return other if isinstance(other, Value) else self.number(other)

    def splat(self, lanes: int) -> Value:
        """A scalar in every lane of a vector."""
        if not lanes or self.lanes:
            return self
        vector = ir.VectorType(llvm_scalar(self.element), lanes)
        if self.is_constant:
            llvm = ir.Constant(vector, [self.llvm.constant] * lanes)
        else:
            undefined, index = ir.Constant(vector, ir.Undefined), ir.IntType(32)
            first = self.builder.insert_element(undefined, self.llvm, index(0))
            zeros = ir.Constant(ir.VectorType(index, lanes), [0] * lanes)
            llvm = self.builder.shuffle_vector(first, undefined, zeros)
        return Value(self.builder, llvm, self.element, lanes)

    def repeated(self, lane: int, lanes: int) -> Value:
        """One lane in every lane of a vector."""
        order = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [lane] * lanes)
        return Value(self.builder, self.builder.shuffle_vector(self.llvm, self.llvm, order), self.element, lanes)

    def lane(self, index: int) -> Value:
        """One lane as a scalar."""
        return Value(self.builder, self.builder.extract_element(self.llvm, ir.IntType(32)(index)), self.element)

    # --- arithmetic

    def _binary(self, other: Value | float, float_op: str, int_op: str) -> Value:
        right = self._operand(other)
        if self.is_float:
            return self.like(getattr(self.builder, float_op)(self.llvm, right.llvm, flags=_FLAGS))
        return self.like(getattr(self.builder, int_op)(self.llvm, right.llvm))

    def __add__(self, other: Value | float) -> Value:
        return self._binary(other, "fadd", "add")

    def __sub__(self, other: Value | float) -> Value:
        return self._binary(other, "fsub", "sub")

    def __mul__(self, other: Value | float) -> Value:
        return self._binary(other, "fmul", "mul")

    def rounded_product(self, other: Value) -> Value:
        """A product of floats that is rounded before anything is added to it: it takes no part in contractions."""
        # numba gives operations without flags its own, contraction; this flag only frees the sign of a zero.
        return self.like(self.builder.fmul(self.llvm, other.llvm, flags=("nsz",)))

    def __truediv__(self, other: Value | float) -> Value:
        return self._binary(other, "fdiv", "sdiv" if self.is_signed else "udiv")

    def __mod__(self, other: Value | float) -> Value:
        """The remainder with the sign of the left side, as C has it."""
        return self._binary(other, "frem", "srem" if self.is_signed else "urem")

    def __and__(self, other: Value | int) -> Value:
        return self.like(self.builder.and_(self.llvm, self._operand(other).llvm))

    def __or__(self, other: Value | int) -> Value:
        return self.like(self.builder.or_(self.llvm, self._operand(other).llvm))

    def __xor__(self, other: Value | int) -> Value:
        return self.like(self.builder.xor(self.llvm, self._operand(other).llvm))

    def __lshift__(self, other: Value | int) -> Value:
        return self.like(self.builder.shl(self.llvm, self._operand(other).llvm))

    def __rshift__(self, other: Value | int) -> Value:
        shift = self.builder.ashr if self.is_signed else self.builder.lshr
        return self.like(shift(self.llvm, self._operand(other).llvm))

    def __neg__(self) -> Value:
        return self.like(self.builder.fneg(self.llvm)) if self.is_float else self.number(0) - self

    def __invert__(self) -> Value:
        return self.like(self.builder.not_(self.llvm))

    def compare(self, operator: str, other: Value | float) -> Value:
        """A boolean for each lane; ordered, but `!=` is true for NaN."""
        right = self._operand(other)
        if self.is_float:
            kind = self.builder.fcmp_unordered if operator == "!=" else self.builder.fcmp_ordered
        else:
            kind = self.builder.icmp_signed if self.is_signed else self.builder.icmp_unsigned
        return self.like(kind(operator, self.llvm, right.llvm), types.boolean)

    def __gt__(self, other: Value | float) -> Value:
        return self.compare(">", other)

    def __lt__(self, other: Value | float) -> Value:
        return self.compare("<", other)

    def is_nan(self) -> Value:
        return self.compare("!=", self)

    def choose(self, yes: Value, no: Value | float) -> Value:
        """`yes` in the lanes where this boolean holds, else `no`."""
        return yes.like(self.builder.select(self.llvm, yes.llvm, yes._operand(no).llvm))

    def any_lane(self, rare: Callable[[], Value], usual: Value) -> Value:
        """`usual`; if this boolean holds in any lane, what `rare` computes, of all lanes, behind a branch."""
        builder = self.builder
        flag = self.llvm
        if self.lanes:
            bits = builder.bitcast(flag, ir.IntType(self.lanes))
            flag = builder.icmp_unsigned("!=", bits, bits.type(0))
        before = builder.block
        with cgutils.if_unlikely(builder, flag):
            found = rare()
            after = builder.block
        result = builder.phi(usual.llvm_type)
        result.add_incoming(usual.llvm, before)
        result.add_incoming(found.llvm, after)
        return usual.like(result)

    # --- LLVM's functions

    def _suffix(self) -> str:
        scalar = f"f{self.width}" if self.is_float else f"i{self.width}"
        return f"v{self.lanes}{scalar}" if self.lanes else scalar

    def intrinsic(self, name: str, *others: Value | float) -> Value:
        """`llvm.<name>` of this value and others of its type."""
        operands = [self, *(self._operand(other) for other in others)]
        kind = ir.FunctionType(self.llvm_type, [self.llvm_type] * len(operands))
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.{self._suffix()}")
        return self.like(self.builder.call(function, [operand.llvm for operand in operands]))

    def fma(self, factor: Value | float, addend: Value | float) -> Value:
        """Fused where the machine can, else rounded twice, for polynomials: see `exact_fma`."""
        return self.intrinsic("fma" if has_fused_operations() else "fmuladd", factor, addend)

    def multiply_add(self, factor: Value | float, addend: Value | float) -> Value:
        """Fused where the machine can, else rounded twice; `fma` would call a function there."""
        return self.intrinsic("fmuladd", factor, addend)

    def library_call(self, name: str, *others: Value) -> Value:
        """A function of the C mathematics library, lane by lane."""
        operands = [self, *others]
        scalar = llvm_scalar(self.element)
        kind = ir.FunctionType(scalar, [scalar] * len(operands))
        suffix = "f" if self.element == types.float32 else ""
        function = cgutils.get_or_insert_function(self.builder.module, kind, name + suffix)
        if not self.lanes:
            return self.like(self.builder.call(function, [operand.llvm for operand in operands]))
        result = ir.Constant(self.llvm_type, ir.Undefined)
        for index in range(self.lanes):
            one = self.builder.call(function, [operand.lane(index).llvm for operand in operands])
            result = self.builder.insert_element(result, one, ir.IntType(32)(index))
        return self.like(result)

    # --- bits and conversions

    def bits(self) -> Value:
        """The bits of a float as a signed integer of its width."""
        element = types.int32 if self.width == 32 else types.int64
        return self.reinterpret(element)

    def reinterpret(self, element: Any) -> Value:
        """The same bits as another type of the same width."""
        target = self.like(None, element)
        return target.like(self.builder.bitcast(self.llvm, target.llvm_type))

    def to(self, element: Any) -> Value:
        """The value converted: floats to integers toward zero and saturating (NaN gives 0), integers wrap around."""
        if element == self.element:
            return self
        target = self.like(None, element)
        return target.like(self._converted(target))

    def _converted(self, target: Value) -> Any:
        if target.element == types.boolean:
            return self.compare("!=", 0).llvm
        if self.is_float and target.is_float:
            if self.is_constant and not self.lanes:
                return target.number(self.llvm.constant).llvm
            cast = self.builder.fpext if target.width > self.width else self.builder.fptrunc
            return cast(self.llvm, target.llvm_type)
        if self.is_float:
            return self._saturated(target)
        if target.is_float:
            if self.is_constant and not self.lanes:
                return target.number(self.llvm.constant).llvm
            cast = self.builder.sitofp if self.is_signed else self.builder.uitofp
            return cast(self.llvm, target.llvm_type)
        if target.width == self.width:
            return self.llvm
        if target.width < self.width:
            return self.builder.trunc(self.llvm, target.llvm_type)
        return (self.builder.sext if self.is_signed else self.builder.zext)(self.llvm, target.llvm_type)

    def to_int32_in_range(self) -> Value:
        """A float that an int32 can hold, truncated; what not-a-number gives is not specified."""
        target = self.like(None, types.int32)
        return target.like(self.builder.fptosi(self.llvm, target.llvm_type))

    def _saturated(self, target: Value) -> Any:
        if self.lanes and target.width == 64 and target.is_signed:
            return self._saturated_to_int64(target).llvm
        if self.lanes and holds_registers(self.llvm_type):
            return self._saturated_by_registers(target)
        kind = ir.FunctionType(target.llvm_type, [self.llvm_type])
        name = f"llvm.fpto{'s' if target.is_signed else 'u'}i.sat.{target._suffix()}.{self._suffix()}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [self.llvm])

    def _saturated_by_registers(self, target: Value) -> Any:
        """By the instruction of SVE, for integers as wide as the floats; LLVM would do all this lane by lane."""
        if target.width > self.width:
            return self.to(types.float64)._saturated_by_registers(target)
        wide = {(32, True): types.int32, (32, False): types.uint32, (64, True): types.int64, (64, False): types.uint64}
        is_narrower = target.width < self.width
        whole = self.like(None, wide[self.width, target.is_signed or is_narrower])
        found = whole.like(converted_to_integers(self.builder, self.llvm, whole.llvm_type, whole.is_signed))
        if not is_narrower:
            return found.llvm
        bits = target.width - target.is_signed
        found = minimum(
            maximum(found, found.number(-(1 << bits) if target.is_signed else 0)), found.number((1 << bits) - 1)
        )
        return self.builder.trunc(found.llvm, target.llvm_type)

    def _saturated_to_int64(self, target: Value) -> Value:
        """Without an instruction for it by way of an int32, unless a lane holds what does not fit there."""
        if has_feature("avx512dq"):
            return self._any_to_int64(target)
        small = self.to_int32_in_range().to(target.element)
        return (~(self.intrinsic("fabs") < 2.0**31)).any_lane(lambda: self._any_to_int64(target), small)

    def _any_to_int64(self, target: Value) -> Value:
        """LLVM would do this lane by lane."""
        low, high = target.number(-(2**63)), target.number(2**63 - 1)
        converted = target.like(self.builder.fptosi(self.llvm, target.llvm_type))
        fits = self.compare(">=", -(2.0**63))
        result = fits.choose(converted, low)
        result = self.compare(">=", 2.0**63).choose(high, result)
        return self.is_nan().choose(target.number(0), result)


def maximum(a: Value, b: Value) -> Value:
    """The larger one; NaN where either is NaN. On x86 a constant is compared first, for then one instruction does it
    all; 64-bit Arm has an instruction that gives NaN.
    """
    return _extremum(a, b, "max", ">")


def minimum(a: Value, b: Value) -> Value:
    """The smaller one; NaN where either is NaN."""
    return _extremum(a, b, "min", "<")


def _extremum(a: Value, b: Value, name: str, operator: str) -> Value:
    """The better one by a comparison. Of two equal ones that are no constants it is `a`, and it is `b` that is asked
    whether it is NaN: what a loop has found comes first, and the next step waits for one instruction.
    """
    if not a.is_float:
        return a.compare(operator, b).choose(a, b)
    if not is_x86():
        return a.intrinsic(f"{name}imum", b)
    if b.is_constant or a.is_constant:
        fixed, other = (b, a) if b.is_constant else (a, b)
        return fixed.compare(operator, other).choose(fixed, other)
    if not a.lanes:
        return b.is_nan().choose(b, b.compare(operator, a).choose(b, a))
    better = b.like(extremum_or_second(b.builder, name, b.llvm, a.llvm))
    return b.compare("==", b).choose(better, b)
