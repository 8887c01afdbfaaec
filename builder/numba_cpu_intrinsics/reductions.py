"""One scalar out of the lanes of a vector, combined in pairs, always in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import Vector
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value, maximum, minimum
from mlirt.builder.numba_cpu_intrinsics.untyped import intrinsic, ir


def _halved(value: Value, combine: Callable[[Value, Value], Value]) -> Value:
    """Fold the upper half of the lanes onto the lower one until one lane is left."""
    builder, lanes = value.builder, value.lanes
    while lanes > 1:
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
    return value.lane(0)


def _reduction(combine: Callable[[Value, Value], Value]) -> Any:
    def typed(context: Any, vector: Any) -> Any:
        if not isinstance(vector, Vector):
            return None

        def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
            return _halved(Value.of(builder, operands[0], sig.args[0]), combine).llvm

        return vector.element(vector), codegen

    return intrinsic(typed)


sum_of_lanes = _reduction(lambda a, b: a + b)
product_of_lanes = _reduction(lambda a, b: a * b)
maximum_of_lanes = _reduction(maximum)
minimum_of_lanes = _reduction(minimum)
all_lanes = _reduction(lambda a, b: a & b)
any_lane = _reduction(lambda a, b: a | b)
