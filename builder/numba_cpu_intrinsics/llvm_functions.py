"""Functions of LLVM in generated source as words: instructions whose definition has all that there is to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_value import Value
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, intrinsic, ir


def _called(function: Any, *kinds: Any) -> Any:
    """The call of a function whose name lacks the type of its operands; scalars are spread where others are vectors."""
    name = function.literal_value
    results = [Value.of(None, None, kind) for kind in kinds]
    first = max(results, key=lambda one: one.lanes)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        values = [
            Value.of(builder, one, kind).splat(first.lanes) for one, kind in zip(operands, sig.args, strict=False)
        ]
        llvm = [value.llvm for value in values[: len(kinds)]]
        bits = f"{'f' if first.is_float else 'i'}{first.width}"
        suffix = f"v{first.lanes}{bits}" if first.lanes else bits
        kind = ir.FunctionType(first.llvm_type, [first.llvm_type] * len(llvm))
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"{name}.{suffix}"), llvm)

    return first.type(*kinds, function), codegen


@intrinsic(prefer_literal=True)
def llvm_function_1(context: Any, a: Any, function: Any) -> Any:
    """A function of one number, such as "llvm.ctpop"."""
    return _called(function, a)


@intrinsic(prefer_literal=True)
def llvm_function_2(context: Any, a: Any, b: Any, function: Any) -> Any:
    """A function of two numbers, such as "llvm.umax"."""
    return _called(function, a, b)


@intrinsic(prefer_literal=True)
def llvm_function_3(context: Any, a: Any, b: Any, c: Any, function: Any) -> Any:
    """A function of three numbers, such as "llvm.fshl"."""
    return _called(function, a, b, c)
