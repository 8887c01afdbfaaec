"""Words of the kernel language for every target: sizes, memory, functions of numbers, and loops without an order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import reduce as fold
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, Operation, Region, SSAValue

from mlirt.dialects import symbolic
from mlirt.dialects.fused.scalar_builder import compute_type, scalar_type
from mlirt.dialects.kernel.core import LoadOp, ReduceKind, ReduceOp, StoreOp, YieldOp, element_of_buffer
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import element_of, is_float
from mlirt.kernels.lib.builder.kernel_builder import Extent, Stride
from mlirt.kernels.lib.language.context import builder, emit
from mlirt.kernels.lib.language.loops import Box, Range, RegionLoop, static_range
from mlirt.kernels.lib.language.operators import as_type, operate
from mlirt.kernels.lib.language.values import Index, Number, Value, bool_of, is_run_time, value_of
from mlirt.kernels.lib.loops.block_lanes import number as element_constant

__all__ = [
    "Box", "Elements", "Strided", "Tensor", "cast", "ceil", "ceil_div", "clamp", "constant", "exp", "extent",
    "float_of", "floor", "floor_div", "index_of", "inline", "integer_of", "is_inside", "is_nan", "log", "loop_over",
    "narrowed", "parallel", "place", "prod", "reduction", "round_even", "size", "split", "sqrt", "static_range",
    "stride", "strided", "tanh", "widened",
]  # fmt: skip


def size(name: str, dim: Dim) -> Value:
    """A size of the host program: on a CPU an argument of the kernel, one for each name; on a GPU perhaps a number."""
    if is_run_time(dim):
        raise TypeError("expected a size that the host program knows, not a value of the kernel")
    return value_of(builder().named_size(name, dim))


def extent(size: Extent) -> Value:
    """A size of the host program as a value: on a CPU an argument, a new one for each number; on a GPU that number."""
    return value_of(builder().extent(size))


def stride(step: Dim) -> Index:
    """A distance in elements: a number of the code, or an argument as `size`, a new one each time on a CPU."""
    made = builder().stride(step)
    return made if isinstance(made, int) else value_of(made)


def constant(number: float, type_: Attribute) -> Value:
    """A number of a type, for example of a tensor's elements."""
    return value_of(element_constant(builder(), number, type_))


def place(index: SSAValue | int) -> Value:
    """A place as a value of the run, also where it is known when the kernel is read."""
    return value_of(builder().index(index))


def split(number: SSAValue, sizes: Sequence[Dim]) -> list[Value]:
    """The indices of a row-major number in a box of sizes of the host program."""
    k, rest, indices = builder(), value_of(number), list[Value]()
    for dim in reversed(sizes[1:]):
        length = k.size(dim)
        indices.append(value_of(k.rem(rest, length)))
        rest = value_of(k.div(rest, length))
    return [rest, *reversed(indices)]


def clamp(index: SSAValue, length: Index) -> Value:
    """The nearest place in `range(length)`."""
    return value_of(builder().clamp(index, length))


def is_inside(index: SSAValue, length: SSAValue) -> bool:
    """Whether `0 <= index < length`, in one comparison of unsigned numbers."""
    return bool_of(builder().compare("ult", index, length))


# Numbers.


def ceil_div(a: Any, b: Any) -> Any:
    """The quotient rounded up, of numbers that are not negative, of sizes of the host program, or of values."""
    return builder().ceil_div(a, b) if is_run_time(a) or is_run_time(b) else symbolic.ceil_div(a, b)


def floor_div(place: SSAValue, by: Index) -> Value:
    """The quotient of a place that may be negative, rounded down; `//` is for places that are not."""
    return value_of(builder().floor_div(place, by))


def prod(numbers: Sequence[Any]) -> Any:
    """The product of numbers, of sizes, or of values: `math.prod` for both."""
    return fold(lambda a, b: operate("Mult", a, b), numbers, 1)


def float_of(place: Index, type_: Attribute) -> Value:
    """A place or a length, which fits into an int32, as a floating-point number."""
    return emit(arith.SIToFPOp(builder().to_integer(builder().index(place), i32), type_))  # pyright: ignore[reportArgumentType]


def integer_of(place: SSAValue | int, type_: Attribute) -> Value:
    """A place or a length as an integer of a type."""
    return builder().to_integer(builder().index(place), type_)


def index_of(number: SSAValue) -> Value:
    """A signed integer, such as a place that a tensor holds, as a place."""
    return builder().from_integer(number)


def cast(number: SSAValue, source: Attribute, target: Attribute) -> Value:
    """A number of one element type as one of another, as tensors are converted."""
    return value_of(builder().scalars(target).cast(number, source))


def widened(element: SSAValue, wide: Attribute) -> Value:
    """An element as it is loaded from a tensor, as a number of the type that a kernel computes in."""
    k = builder()
    return value_of(k.scalars(wide).cast(k.ready(element), element.type))


def narrowed(number: SSAValue, wide: Attribute, element: Attribute) -> Value:
    """A number of the type that a kernel computes in, as an element that can be stored to a tensor."""
    k = builder()
    return value_of(k.typed(k.scalars(element).cast(number, wide), element))


def inline(region: Region, scalars: Sequence[SSAValue], indices: Sequence[SSAValue] = ()) -> tuple[Value, ...]:
    """What a scalar region of a fused op, such as its epilogue, makes of numbers at indices of the iteration space."""
    return tuple(map(value_of, builder().inline(region, scalars, indices)))


def is_nan(number: SSAValue) -> bool:
    """Whether a floating-point number is not a number."""
    return bool_of(emit(arith.CmpfOp(number, number, "uno")))


def _function(made: type[Operation], number: Number) -> Value:
    if not is_run_time(number) or not is_float(number.type):
        raise TypeError(f"expected a floating-point number of the run, not {getattr(number, 'type', number)}")
    return emit(made(number))  # pyright: ignore[reportCallIssue]


def floor(number: Number) -> Value:
    """The largest whole number that is not above a floating-point number."""
    return _function(math.FloorOp, number)


def ceil(number: Number) -> Value:
    """The smallest whole number that is not below a floating-point number."""
    return _function(math.CeilOp, number)


def round_even(number: Number) -> Value:
    """The nearest whole number to a floating-point number, the even one of two that are as near."""
    return _function(math.RoundEvenOp, number)


def exp(number: Number) -> Value:
    """e to the power of a floating-point number."""
    return _function(math.ExpOp, number)


def log(number: Number) -> Value:
    """The natural logarithm of a floating-point number."""
    return _function(math.LogOp, number)


def sqrt(number: Number) -> Value:
    """The square root of a floating-point number."""
    return _function(math.SqrtOp, number)


def tanh(number: Number) -> Value:
    """The hyperbolic tangent of a floating-point number."""
    return _function(math.TanhOp, number)


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


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of the network: `[i, j, ..]` has an index for each dimension; order, halo and strides are its own.

    Elements are converted to and from the type `wide`, or that in which numbers of their type are computed: float32 for
    halves.
    """

    value: SSAValue
    wide: Attribute | None = None

    def __getitem__(self, indices: Sequence[SSAValue | int]) -> Value:
        k = builder()
        return widened(k.load(self.value, [k.index(index) for index in indices]), self._type())

    def __setitem__(self, indices: Sequence[SSAValue | int], value: Any) -> None:
        k, (number,) = builder(), as_type(scalar_type(self._type()), value)
        stored = narrowed(number, self._type(), element_of(self.value.type))
        k.store(stored, self.value, [k.index(index) for index in indices])

    def _type(self) -> Attribute:
        return self.wide or compute_type(element_of(self.value.type))


@dataclass(frozen=True, eq=False)
class Elements:
    """As `Tensor`, for elements that are moved as they are, without a conversion."""

    value: SSAValue

    def __getitem__(self, indices: Sequence[SSAValue | int]) -> Value:
        return builder().load(self.value, [builder().index(index) for index in indices])

    def __setitem__(self, indices: Sequence[SSAValue | int], element: SSAValue) -> None:
        builder().store(element, self.value, [builder().index(index) for index in indices])


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


def reduction(kind: ReduceKind, over: Box | Range, start: SSAValue, element: Callable[[Any], Any]) -> Value:
    """Combine `element(index)`, or of a tuple of indices, over a box in no order that anyone may rely on."""
    k = builder()
    op = ReduceOp(kind, [k.extent(one) for one in over.extents()], start)
    with k.inside(op.body.block):
        k.insert(YieldOp(operands=[[element(over.given(list(op.body.block.args)))]]))
    return emit(op)
