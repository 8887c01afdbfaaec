"""How a word of generated CUDA source is made of LLVM instructions and inline PTX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mlirt.builder.numba_cuda_intrinsics.untyped import intrinsic, ir, types

I1, I8, I16, I32, I64 = (ir.IntType(width) for width in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
VOID = ir.VoidType()
SHARED = 3  # address spaces
GLOBAL = 1

# The letter that an inline PTX operand of an LLVM type has.
_LETTERS = {I16: "h", I32: "r", I64: "l", F32: "f", F64: "d"}

# numba's scalar types by the name that generated source calls them; bfloat16 is held as its bits.
SCALARS: dict[str, Any] = {
    "bool_": types.boolean,
    "float16": types.float16,
    "bfloat16": types.uint16,
    **{name: getattr(types, name) for name in ("float32", "float64")},
    **{f"{sign}int{width}": getattr(types, f"{sign}int{width}") for sign in ("", "u") for width in (8, 16, 32, 64)},
}
SIZES = {
    "bool_": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
    **{f"{sign}int{width}": width // 8 for sign in ("", "u") for width in (8, 16, 32, 64)},
}  # fmt: skip


MAKERS: dict[str, Callable[..., Any]] = {}
"""The functions that make a word of its parameters, by the name that generated source calls them."""

M = TypeVar("M", bound=Callable[..., Any])


def maker(function: M) -> M:
    """Let generated source make words by a function."""
    MAKERS[function.__name__] = function
    return function


def llvm_type(type_: Any) -> Any:
    """The LLVM type of a scalar in memory; numba holds a float16 as its bits."""
    if isinstance(type_, types.Integer):
        return ir.IntType(type_.bitwidth)
    return {types.float16: I16, types.float32: F32, types.float64: F64}[type_]


def ptx(
    builder: Any,
    text: str,
    results: Sequence[Any],
    operands: Sequence[Any],
    *,
    memory: bool = False,
    pure: bool = False,
    convergent: bool = False,
) -> list[Any]:
    """Inline PTX: `$0`.. are the results, then the operands.

    `memory`: it orders all accesses of memory around it. `convergent`: the threads of a warp execute it together, so it
    must not be copied into branches.
    """
    letters = ["=" + _LETTERS[result] for result in results] + [_LETTERS[operand.type] for operand in operands]
    constraints = ",".join([*letters, *(["~{memory}"] if memory else [])])
    result_type = VOID if not results else results[0] if len(results) == 1 else ir.LiteralStructType(list(results))
    function = ir.FunctionType(result_type, [operand.type for operand in operands])
    call = builder.call(ir.InlineAsm(function, text, constraints, side_effect=not pure), list(operands))
    if convergent:
        call.attributes.add("convergent")
    if not results:
        return []
    return [call] if len(results) == 1 else [builder.extract_value(call, k) for k in range(len(results))]


def pack(builder: Any, element: Any, values: Sequence[Any]) -> Any:
    """Values as the array that numba keeps a tuple of one type in."""
    array = ir.Constant(ir.ArrayType(element, len(values)), ir.Undefined)
    for position, value in enumerate(values):
        array = builder.insert_value(array, value, position)
    return array


def unpack(builder: Any, array: Any, count: int) -> list[Any]:
    return [builder.extract_value(array, position) for position in range(count)]


def word(result: Any, arguments: Sequence[Any], emit: Callable[..., Any]) -> Any:
    """A function for generated source with fixed types: `emit(builder, *values)` gives its LLVM value."""
    count = len(arguments)

    def codegen(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        pairs = zip(values, signature.args, arguments, strict=True)
        converted = [v if have == want else context.cast(builder, v, have, want) for v, have, want in pairs]
        made = emit(builder, *converted)
        return context.get_dummy_value() if result == types.void else made

    names = ", ".join(f"a{k}" for k in range(count))
    namespace: dict[str, Any] = {"signature": result(*arguments), "codegen": codegen}
    # numba reads the number of parameters off the function: it has to be spelled out.
    exec(f"def made(context{', ' if names else ''}{names}):\n    return signature, codegen\n", namespace)
    return intrinsic(namespace["made"])
