"""Scalar functions applied to whole fragments, and parts of fragments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import (
    F32,
    I8,
    I32,
    SCALARS,
    ir,
    llvm_type,
    maker,
    pack,
    ptx,
    unpack,
    word,
)
from mlirt.builder.numba_cuda_intrinsics.untyped import intrinsic, types


@maker
def map_fragment(function: Any, result: str, count: int, arguments: Sequence[tuple[str, bool]]) -> Any:
    """`word(..)`: a scalar function of each element; arguments are (type, whether it is a fragment)."""
    given = [types.UniTuple(SCALARS[name], count) if wide else SCALARS[name] for name, wide in arguments]
    scalar = SCALARS[result](*[SCALARS[name] for name, _ in arguments])
    names = ", ".join(f"a{k}" for k in range(len(arguments)))

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        columns = [
            unpack(builder, value, count) if wide else [value] * count
            for value, (_, wide) in zip(values, arguments, strict=True)
        ]
        made = [context.compile_internal(builder, function, scalar, list(row)) for row in zip(*columns, strict=True)]
        return pack(builder, llvm_type(SCALARS[result]), made)

    namespace: dict[str, Any] = {"signature": types.UniTuple(SCALARS[result], count)(*given), "codegen": codegen}
    exec(f"def made(context, {names}):\n    return signature, codegen\n", namespace)
    return intrinsic(namespace["made"])


@maker
def saturate_fragment(type_name: str, count: int) -> Any:
    """`word(integers)`: the nearest byte to each, four in two instructions."""
    sign = "u" if type_name.startswith("u") else "s"
    # The upper two of four first; of two operands the first one becomes the higher byte.
    text = f"cvt.pack.sat.{sign}8.s32.b32 $0, $1, $2, $3;"

    def emit(builder: Any, values: Any) -> Any:
        given = unpack(builder, values, count)
        given += [I32(0)] * (-count % 4)
        made: list[Any] = []
        for first in range(0, count, 4):
            a, b, c, d = given[first : first + 4]
            (upper,) = ptx(builder, text, [I32], [d, c, I32(0)], pure=True)
            (whole,) = ptx(builder, text, [I32], [b, a, upper], pure=True)
            quad = builder.bitcast(whole, ir.VectorType(I8, 4))
            made += [builder.extract_element(quad, I32(k)) for k in range(4)]
        return pack(builder, I8, made[:count])

    return word(types.UniTuple(SCALARS[type_name], count), [types.UniTuple(types.int32, count)], emit)


@maker
def float_fragment(type_name: str, count: int) -> Any:
    """`word(bytes)`: each as a float, which starts as 2**23 + byte; signed ones are made positive first."""
    signed = not type_name.startswith("u")
    offset = 2.0**23 + (128 if signed else 0)

    def emit(builder: Any, values: Any) -> Any:
        given = unpack(builder, values, count)
        given += [I8(0)] * (-count % 4)
        made: list[Any] = []
        for first in range(0, count, 4):
            whole = I32(0)
            for k in range(4):
                # LLVM finds the word that the bytes are parts of in sums, not in vectors.
                whole = builder.or_(whole, builder.shl(builder.zext(given[first + k], I32), I32(8 * k)))
            whole = builder.xor(whole, I32(0x80808080)) if signed else whole
            for k in range(4):
                text = f"prmt.b32 $0, $1, 0x4B000000, {0x7540 + k};"
                (bits,) = ptx(builder, text, [I32], [whole], pure=True)
                made.append(builder.fsub(builder.bitcast(bits, F32), F32(offset)))
        return pack(builder, F32, made[:count])

    return word(types.UniTuple(types.float32, count), [types.UniTuple(SCALARS[type_name], count)], emit)
