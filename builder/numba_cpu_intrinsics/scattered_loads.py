"""Vectors of elements whose places were computed for each lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import REGISTER_TYPES, Vector
from mlirt.builder.numba_cpu_intrinsics.memory import Memory, first_lanes
from mlirt.builder.numba_cpu_intrinsics.untyped import intrinsic, ir, types


def _loaded(pointer: Any, places: Any, operands: Sequence[Any], builder: Any) -> Any:
    memory, lanes = Memory(builder, pointer, operands[0]), places.lanes
    taking_part = ir.Constant(ir.VectorType(ir.IntType(1), lanes), [1] * lanes)
    mask = first_lanes(builder, lanes, operands[2]) if len(operands) > 2 else taking_part
    return memory.read_at(operands[1], lanes, mask).llvm


@intrinsic
def load_at(context: Any, pointer: Any, places: Any) -> Any:
    """The elements at a vector of places."""
    result = Vector(REGISTER_TYPES[pointer.element], places.lanes)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        return _loaded(pointer, places, operands, builder)

    return result(pointer, places), codegen


@intrinsic
def load_at_first(context: Any, pointer: Any, places: Any, count: Any) -> Any:
    """The elements at the first `count` of a vector of places; zeros in the other lanes."""
    result = Vector(REGISTER_TYPES[pointer.element], places.lanes)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        return _loaded(pointer, places, operands, builder)

    return result(pointer, places, types.int64), codegen
