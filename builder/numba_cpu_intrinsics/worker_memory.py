"""Memory that each worker has of its own while a kernel runs: `worker_memory_float32(n)`, for every element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.lane_types import REGISTER_TYPES, Pointer, llvm_memory
from mlirt.builder.numba_cpu_intrinsics.untyped import cgutils, intrinsic, ir

_LINE = 64  # bytes of a line of the cache


def _memory_maker(element: str) -> Any:
    pointer = Pointer(element, constant=False)

    def typed(context: Any, elements: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, operands: Sequence[Any]) -> Any:
            kind = llvm_memory(element)
            place = cgutils.alloca_once(builder, ir.ArrayType(kind, elements.literal_value))
            place.align = _LINE
            return builder.bitcast(place, kind.as_pointer())

        return pointer(elements), codegen

    return intrinsic(prefer_literal=True)(typed)


# So many elements on the stack, from a whole line of the cache on.
WORKER_MEMORIES: dict[str, Any] = {f"worker_memory_{element}": _memory_maker(element) for element in REGISTER_TYPES}
