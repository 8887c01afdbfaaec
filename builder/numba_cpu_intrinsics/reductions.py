"""One scalar out of the lanes of a vector, combined in pairs, always in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import Vector
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value, maximum, minimum
from mlirt.builder.numba_cpu_intrinsics.untyped import intrinsic, ir, types

Combine = Callable[[Value, Value], Value]


def _halved(value: Value, combine: Combine, left: int) -> Value:
    """Fold the upper half of the lanes onto the lower one until as many lanes as wanted are left."""
    builder, lanes = value.builder, value.lanes
    while lanes > left:
        lanes //= 2
        kind = ir.VectorType(ir.IntType(32), lanes)
        low, high = (
            Value(
                builder,
                builder.shuffle_vector(value.llvm, value.llvm, ir.Constant(kind, list(range(start, start + lanes)))),
                value.element,
                lanes,
            )
            for start in (0, lanes)
        )
        value = combine(low, high)
    return value


def _reduction(combine: Combine) -> Any:
    def typed(context: Any, vector: Any) -> Any:
        if not isinstance(vector, Vector):
            return None

        def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
            return _halved(Value.of(builder, operands[0], sig.args[0]), combine, 1).lane(0).llvm

        return vector.element(vector), codegen

    return intrinsic(typed)


def _folding(combine: Combine) -> Any:
    def typed(context: Any, vector: Any, lanes: Any) -> Any:
        result = Vector(vector.element, lanes.literal_value)

        def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
            return _halved(Value.of(builder, operands[0], sig.args[0]), combine, result.lanes).llvm

        return result(vector, lanes), codegen

    return intrinsic(prefer_literal=True)(typed)


def _add(a: Value, b: Value) -> Value:
    return a + b


def _multiply(a: Value, b: Value) -> Value:
    return a * b


def _and(a: Value, b: Value) -> Value:
    return a & b


def _or(a: Value, b: Value) -> Value:
    return a | b


def _flags(builder: Any, vector: Any) -> tuple[Any, Any]:
    """A vector of booleans as a whole number, and its type."""
    kind = ir.IntType(vector.type.count)
    return builder.bitcast(vector, kind), kind


def _over_flags(decide: Callable[[Any, Any, Any], Any], combine: Combine) -> Any:
    """A reduction that is one comparison for vectors of booleans."""

    def typed(context: Any, vector: Any) -> Any:
        if not isinstance(vector, Vector):
            return None

        def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
            if sig.args[0].element == types.boolean:
                return decide(builder, *_flags(builder, operands[0]))
            return _halved(Value.of(builder, operands[0], sig.args[0]), combine, 1).lane(0).llvm

        return vector.element(vector), codegen

    return intrinsic(typed)


sum_of_lanes, fold_sum = _reduction(_add), _folding(_add)
product_of_lanes, fold_product = _reduction(_multiply), _folding(_multiply)
maximum_of_lanes, fold_maximum = _reduction(maximum), _folding(maximum)
minimum_of_lanes, fold_minimum = _reduction(minimum), _folding(minimum)
all_lanes = _over_flags(lambda builder, flags, kind: builder.icmp_unsigned("==", flags, kind(-1)), _and)
any_lane = _over_flags(lambda builder, flags, kind: builder.icmp_unsigned("!=", flags, kind(0)), _or)
fold_all, fold_any = _folding(_and), _folding(_or)
