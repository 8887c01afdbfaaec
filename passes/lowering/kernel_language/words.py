"""Words of the kernel language for every target: sizes, memory, functions of numbers, and loops without an order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import math
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.core import LoadOp, ReduceKind, StoreOp, element_of_buffer
from mlirt.dialects.symbolic import Dim
from mlirt.passes.lowering.kernel_builder import Extent, Stride
from mlirt.passes.lowering.kernel_language.context import builder, emit
from mlirt.passes.lowering.kernel_language.loops import Box, Range, RegionLoop, static_range
from mlirt.passes.lowering.kernel_language.operators import as_type
from mlirt.passes.lowering.kernel_language.values import Index, Value, value_of

__all__ = [
    "Box", "Strided", "ceil_div", "constant", "exp", "log", "loop_over", "parallel", "reduction", "size", "sqrt",
    "static_range", "strided", "tanh",
]  # fmt: skip


def size(name: str, dim: Dim) -> Value:
    """A size of the host program: on a CPU an argument of the kernel, one for each name; on a GPU perhaps a number."""
    return value_of(builder().named_size(name, dim))


def constant(number: float, type_: Attribute) -> Value:
    """A number of a type."""
    return value_of(builder().constant(number, type_))


# Numbers.


def ceil_div(a: Index, b: Index) -> Index:
    """The quotient rounded up, of numbers that are not negative."""
    return -(-a // b) if isinstance(a, int) and isinstance(b, int) else value_of(builder().ceil_div(a, b))


def exp(number: Value) -> Value:
    """e to the power of a floating-point number."""
    return emit(math.ExpOp(number))


def log(number: Value) -> Value:
    """The natural logarithm of a floating-point number."""
    return emit(math.LogOp(number))


def sqrt(number: Value) -> Value:
    """The square root of a floating-point number."""
    return emit(math.SqrtOp(number))


def tanh(number: Value) -> Value:
    """The hyperbolic tangent of a floating-point number."""
    return emit(math.TanhOp(number))


# Memory.


@dataclass(frozen=True, eq=False)
class Strided:
    """Memory in which `[i, j, ..]` is the element at the sum of index times stride."""

    memory: SSAValue
    strides: Sequence[Stride]

    def __getitem__(self, indices: Sequence[Index]) -> Value:
        places = [builder().index(index) for index in indices]
        return emit(LoadOp(self.memory, places, self.strides))

    def __setitem__(self, indices: Sequence[Index], value: Any) -> None:
        (stored,) = as_type(element_of_buffer(self.memory), value)
        builder().insert(StoreOp(stored, self.memory, [builder().index(index) for index in indices], self.strides))


def strided(memory: SSAValue, *strides: Index) -> Strided:
    """Memory with a stride for each index, in elements."""
    return Strided(memory, strides)


# Loops without an order.


def parallel(*extents: Any) -> RegionLoop[Any]:
    """Independent iterations over a box: of workers or threads outside, of threads of a block or lanes inside."""
    box = Box(*extents)
    return RegionLoop(lambda: _given(builder().parallel(box.extents()), box.given))


def loop_over(enter: Callable[[], AbstractContextManager[Any]]) -> RegionLoop[Any]:
    """A region that a method of a builder opens as what a `for` goes over."""
    return RegionLoop(enter)


@contextmanager
def _given(region: AbstractContextManager[Any], given: Callable[[Any], Any]) -> Generator[Any]:
    with region as indices:
        yield given(indices)


def reduction(kind: ReduceKind, over: Box | Range, start: SSAValue, element: Callable[..., Any]) -> Value:
    """Combine `element(index)`, or of a tuple of indices, over a box in no order that anyone may rely on."""
    k = builder()
    extents: list[Extent] = over.extents()
    return value_of(k.reduce(kind, extents, start, lambda indices: element(over.given(indices))))
