"""Minimum and maximum of vectors of floats by the instructions of x86, register by register.

They give their second operand where either is not a number. LLVM has no operation that means this, and merges the
comparisons that would spell it out with those that look for numbers.
"""

from __future__ import annotations

from typing import Any

from mlirt.builder.numba_cpu_intrinsics.processor import has_feature
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, ir

_INDEX = ir.IntType(32)
_CURRENT_ROUNDING = 4
# Of a register's bits: the feature that has them, and the instruction, for float32 and float64.
_REGISTERS = (
    (512, "avx512f", "avx512.{}.ps.512", "avx512.{}.pd.512"),
    (256, "avx", "avx.{}.ps.256", "avx.{}.pd.256"),
    (128, "sse2", "sse.{}.ps", "sse2.{}.pd"),
)


def extremum_or_second(builder: Any, name: str, a: Any, b: Any) -> Any:
    """The `max` or `min` of two vectors, lane by lane; `b` where either is not a number, or both are equal."""
    kind = a.type
    width = 32 if isinstance(kind.element, ir.FloatType) else 64
    bits, instruction = _register(kind.count * width, is_double=width == 64)
    lanes = bits // width
    register = ir.VectorType(kind.element, lanes)
    rounding = [_INDEX] if bits == 512 else []
    signature = ir.FunctionType(register, [register, register, *rounding])
    function = cgutils.get_or_insert_function(builder.module, signature, "llvm.x86." + instruction.format(name))
    parts = [
        builder.call(
            function,
            [_lanes(builder, whole, start, lanes) for whole in (a, b)] + [one(_CURRENT_ROUNDING) for one in rounding],
        )
        for start in range(0, kind.count, lanes)
    ]
    while len(parts) > 1:
        parts = [_joined(builder, *pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return _lanes(builder, parts[0], 0, kind.count)


def _register(bits: int, is_double: bool) -> tuple[int, str]:
    """The bits of the widest register that a vector fills, or of the narrowest one, and its instruction."""
    there = [row for row in _REGISTERS if row[0] == 128 or has_feature(row[1])]
    size, _, *names = next((row for row in there if row[0] <= bits), there[-1])
    return size, names[is_double]


def _lanes(builder: Any, vector: Any, start: int, count: int) -> Any:
    """Some lanes of a vector; what lies beyond it may be anything."""
    if count == vector.type.count:
        return vector
    picked = [min(lane, vector.type.count - 1) for lane in range(start, start + count)]
    order = ir.Constant(ir.VectorType(_INDEX, count), picked)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), order)


def _joined(builder: Any, low: Any, high: Any) -> Any:
    both = ir.VectorType(_INDEX, 2 * low.type.count)
    return builder.shuffle_vector(low, high, ir.Constant(both, list(range(both.count))))
