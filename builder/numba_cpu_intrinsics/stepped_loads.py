"""Vectors of elements that lie a few elements apart or backwards: their memory is loaded whole and they are picked out.

No byte before the first or behind the last of the elements is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import REGISTER_TYPES, Vector
from mlirt.builder.numba_cpu_intrinsics.lane_value import Value
from mlirt.builder.numba_cpu_intrinsics.memory import Memory, first_lanes
from mlirt.builder.numba_cpu_intrinsics.scalable import fills_register, picked
from mlirt.builder.numba_cpu_intrinsics.untyped import intrinsic, ir, types

_I32, _I64 = ir.IntType(32), ir.IntType(64)


@dataclass(frozen=True)
class Steps:
    """`lanes` elements, `step` apart: where the vectors start that hold them, and where each is.

    Places are counted from the lowest element. The last vector ends with the highest one.
    """

    step: int
    lanes: int

    @property
    def reach(self) -> int:
        """How far the highest element lies from the lowest one."""
        return (self.lanes - 1) * abs(self.step)

    def starts(self) -> list[int]:
        whole = [number * self.lanes for number in range(abs(self.step) - 1)]
        return [*whole, self.reach - self.lanes + 1]

    def place(self, lane: int) -> int:
        return lane * self.step if self.step > 0 else self.reach + lane * self.step

    def vector_of(self, lane: int) -> int:
        """The number of the vector that holds the element of a lane."""
        starts, place = self.starts(), self.place(lane)
        return max(number for number, start in enumerate(starts) if start <= place)


def _loaded(memory: Memory, steps: Steps, at: Any, count: Any = None) -> Value:
    """The elements as a vector; with a `count` of at least one only the first ones, other lanes are zero."""
    builder, lanes = memory.builder, steps.lanes
    lowest = at if steps.step > 0 else builder.sub(at, _I64(steps.reach))
    result: Value | None = None
    for number, start in enumerate(steps.starts()):
        place = builder.add(lowest, _I64(start))
        vector = memory.read(place, lanes) if count is None else _some(memory, steps, place, start, count)
        own = [lane for lane in range(lanes) if steps.vector_of(lane) == number]
        if result is None:
            result = vector
        places = [lanes + steps.place(lane) - start if lane in own else lane for lane in range(lanes)]
        if number == 0:
            places = [steps.place(lane) if lane in own else 0 for lane in range(lanes)]
        result = vector.like(_picked(builder, result.llvm, vector.llvm, places))
    assert result is not None
    return result


def _picked(builder: Any, left: Any, right: Any, places: Sequence[int]) -> Any:
    if fills_register(left.type):
        return picked(builder, left, right, places)
    return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(_I32, len(places)), places))


def _some(memory: Memory, steps: Steps, place: Any, start: int, count: Any) -> Value:
    """One of the vectors without what lies beyond the first `count` elements."""
    builder = memory.builder
    step = _I64(abs(steps.step))
    if steps.step > 0:
        past = builder.add(builder.mul(builder.sub(count, _I64(1)), step), _I64(1 - start))
        return memory.read_masked(place, steps.lanes, first_lanes(builder, steps.lanes, past))
    before = builder.sub(builder.mul(builder.sub(_I64(steps.lanes), count), step), _I64(start))
    return memory.read_masked(place, steps.lanes, builder.not_(first_lanes(builder, steps.lanes, before)))


def _result(pointer: Any, step: Any, lanes: Any) -> Any:
    return Vector(REGISTER_TYPES[pointer.element], lanes.literal_value), step.literal_value


@intrinsic(prefer_literal=True)
def load_steps(context: Any, pointer: Any, at: Any, step: Any, lanes: Any) -> Any:
    """`lanes` elements that lie `step`, a small number that is known, apart."""
    result, distance = _result(pointer, step, lanes)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        memory = Memory(builder, sig.args[0], operands[0])
        return _loaded(memory, Steps(distance, result.lanes), operands[1]).llvm

    return result(pointer, types.int64, step, lanes), codegen


@intrinsic(prefer_literal=True)
def load_steps_first(context: Any, pointer: Any, at: Any, step: Any, lanes: Any, count: Any) -> Any:
    """The first `count` of `lanes` elements that lie `step` apart; zeros in the other lanes."""
    result, distance = _result(pointer, step, lanes)

    def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
        memory = Memory(builder, sig.args[0], operands[0])
        return _loaded(memory, Steps(distance, result.lanes), operands[1], operands[4]).llvm

    return result(pointer, types.int64, step, lanes, types.int64), codegen
