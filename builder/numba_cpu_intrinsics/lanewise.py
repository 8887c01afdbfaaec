"""Makes functions that generated text can call out of formulas on `Value`s; operands are brought to one type first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import Vector
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value
from mlirt.builder.numba_cpu_intrinsics.untyped import intrinsic, lower_builtin, signature, templates, types

Formula = Callable[..., Value]


def joint_type(context: Any, operands: Sequence[Any]) -> Any:
    """The type in which operands are combined: a vector if any of them is one, with the widest scalar type."""
    operands = [types.unliteral(operand) for operand in operands]
    lanes = max((operand.lanes for operand in operands if isinstance(operand, Vector)), default=0)
    vectors = [operand.element for operand in operands if isinstance(operand, Vector)]
    scalars = vectors or operands
    if not all(isinstance(scalar, types.Number | types.Boolean) for scalar in scalars):
        return None
    element = scalars[0] if len(set(scalars)) == 1 else context.unify_types(*scalars)
    return Vector(element, lanes) if lanes else element


def as_type(value: Value, type_: Any) -> Value:
    """A value converted to a scalar type or spread over a vector."""
    if isinstance(type_, Vector):
        return value.to(type_.element).splat(type_.lanes)
    return value.to(type_)


def _values(builder: Any, sig: Any, operands: Sequence[Any]) -> list[Value]:
    return [Value.of(builder, llvm, type_) for llvm, type_ in zip(operands, sig.args, strict=True)]


def _result_type(type_: Any, element: Any) -> Any:
    if element is None:
        return type_
    return Vector(element, type_.lanes) if isinstance(type_, Vector) else element


def _implementation(joint: Any, formula: Formula) -> Callable[..., Any]:
    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        return formula(*(as_type(value, joint) for value in _values(builder, sig, operands))).llvm

    return codegen


def unary(formula: Callable[[Value], Value]) -> Any:
    """`f(x)`, of the type of `x`."""

    def typed(context: Any, x: Any) -> Any:
        joint = joint_type(context, [x])
        return None if joint is None else (joint(x), _implementation(joint, formula))

    return intrinsic(typed)


def binary(formula: Callable[[Value, Value], Value]) -> Any:
    """`f(x, y)`, of the type that both have in common."""

    def typed(context: Any, x: Any, y: Any) -> Any:
        joint = joint_type(context, [x, y])
        return None if joint is None else (joint(x, y), _implementation(joint, formula))

    return intrinsic(typed)


def ternary(formula: Callable[[Value, Value, Value], Value]) -> Any:
    """`f(x, y, z)`, of the type that all have in common."""

    def typed(context: Any, x: Any, y: Any, z: Any) -> Any:
        joint = joint_type(context, [x, y, z])
        return None if joint is None else (joint(x, y, z), _implementation(joint, formula))

    return intrinsic(typed)


def conversion(element: Any, formula: Callable[[Value], Value] | None = None) -> Any:
    """`element(x)` of a scalar or of every lane, rounded further by `formula`."""

    def typed(context: Any, x: Any) -> Any:
        joint = joint_type(context, [x])
        if joint is None:
            return None
        result = _result_type(joint, element)

        def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
            (value,) = _values(builder, sig, operands)
            converted = value.to(element)
            return (formula(converted) if formula else converted).llvm

        return result(x), codegen

    return intrinsic(typed)


def vector_operator(
    function: Any, formula: Callable[[Value, Value], Value], *, count: int = 2, boolean: bool = False
) -> None:
    """Teach numba an operator of Python on vectors, and on a vector and a scalar; `count` is 1 for a prefix."""

    def generic(self: Any, args: Sequence[Any], kws: Any) -> Any:
        if len(args) != count or not any(isinstance(arg, Vector) for arg in args):
            return None
        joint = joint_type(self.context, args)
        return signature(_result_type(joint, types.boolean if boolean else None), *args)

    template = type(f"Vector_{function.__name__}", (templates.AbstractTemplate,), {"generic": generic, "key": function})
    templates.infer_global(function)(template)

    def lowered(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        joint = joint_type(context.typing_context, sig.args)
        values = [as_type(value, joint) for value in _values(builder, sig, operands)]
        return formula(values[0], values[-1]).llvm

    kinds = [(Vector,)] if count == 1 else [(Vector, Vector), (Vector, types.Any), (types.Any, Vector)]
    for kind in kinds:
        lower_builtin(function, *kind)(lowered)
