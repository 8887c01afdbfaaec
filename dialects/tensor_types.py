"""Tensor types with symbolic dimensions: how to make them, read them, and where their elements lie in memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    Float8E4M3FNType,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.symbolic import Dim, broadcast_parts, product, sym, symbols

if TYPE_CHECKING:
    import numpy as np

Tensor: TypeAlias = TensorType[Attribute]

_ELEMENTS: dict[str, Attribute] = {
    "float16": Float16Type(),
    "bfloat16": BFloat16Type(),
    "float8_e4m3fn": Float8E4M3FNType(),
    "float32": Float32Type(),
    "float64": Float64Type(),
    "bool": IntegerType(1),
    **{f"int{width}": IntegerType(width) for width in (8, 16, 32, 64)},
    **{f"uint{width}": IntegerType(width, Signedness.UNSIGNED) for width in (8, 16, 32, 64)},
}
_UNSIGNED = frozenset(element for name, element in _ELEMENTS.items() if name.startswith("uint"))
_NAMES = {element: name for name, element in _ELEMENTS.items()}
_WIDTHS = {"bool": 1, "float8_e4m3fn": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}

# An unnamed `?` equals nothing but itself, and unifies with everything.
UNKNOWN_PREFIX = "?"


def element_type(name: str) -> Attribute:
    """The element type for a NumPy dtype name (`float32`, `bfloat16`, `uint8`, ...); raises `KeyError` for others."""
    return _ELEMENTS[name]


@cache
def dtype_name(of: np.dtype[Any]) -> str:
    """The name of a dtype, which NumPy puts together each time."""
    return of.name


def element_name(element: Attribute) -> str:
    """The NumPy dtype name of an element type; raises `KeyError` for a type that tensors cannot hold."""
    return _NAMES[element]


def numpy_dtype(element: Attribute) -> np.dtype[Any]:
    """The NumPy dtype of an element type (bfloat16 and float8 by ml_dtypes)."""
    import numpy as np

    name = _NAMES[element]
    if name in ("bfloat16", "float8_e4m3fn"):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


def byte_width(element: Attribute) -> int:
    """Bytes of one element in memory; booleans take one."""
    name = _NAMES[element]
    return _WIDTHS.get(name) or int(name.removeprefix("u").removeprefix("int")) // 8


def is_float(element: Attribute) -> bool:
    """Whether elements are floating-point numbers that layers compute with; 8-bit ones are only stored."""
    return isinstance(element, Float16Type | BFloat16Type | Float32Type | Float64Type)


def is_half(element: Attribute) -> bool:
    """Whether elements are floating-point numbers of 16 bits."""
    return isinstance(element, Float16Type | BFloat16Type)


def is_float8(element: Attribute) -> bool:
    """Whether elements are 8-bit floats: they are converted, moved, and multiplied as matrices."""
    return isinstance(element, Float8E4M3FNType)


def is_bool(element: Attribute) -> bool:
    return element == _ELEMENTS["bool"]


def is_unsigned(element: Attribute) -> bool:
    return element in _UNSIGNED


def integer_range(element: Attribute) -> tuple[int, int]:
    """The least and the greatest number of an integer element type."""
    bits = 1 if is_bool(element) else 8 * byte_width(element)
    return (0, 2**bits - 1) if is_unsigned(element) or bits == 1 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


_DIMS = "_dims"
"""Where a type keeps its dimensions once they were asked for."""


@lru_cache(maxsize=8192)
def _cached_tensor(
    element: Attribute,
    dims: tuple[Dim, ...],
    channels: Dim | None,
    halo: tuple[int, ...],
    order: tuple[int, ...],
    row: int,
    fill: int,
) -> Tensor:
    shape = [dim if isinstance(dim, int) else DYNAMIC_INDEX for dim in dims]
    order = () if order == tuple(range(len(dims))) else order
    if order or row or halo or channels is not None or DYNAMIC_INDEX in shape:
        return TensorType(element, shape, DimsAttr.of(dims, channels, halo, order, row, fill))
    return TensorType(element, shape)


def tensor(
    element: Attribute,
    dims: Sequence[Dim],
    channels: Dim | None = None,
    halo: Sequence[int] = (),
    order: Sequence[int] = (),
    row: int = 0,
    fill: int = 0,
) -> Tensor:
    """The tensor type with these dimensions; the other arguments say how it lies in memory, as `DimsAttr` tells."""
    return _cached_tensor(element, tuple(dims), channels, tuple(halo), tuple(order), row, fill)


def dims(of: Attribute) -> tuple[Dim, ...]:
    """The dimensions of a tensor type; a `?` without an encoding becomes a symbol named `?k`."""
    known = vars(of).get(_DIMS)  # nothing is asked more often, and types never change
    if known is None:
        known = vars(of)[_DIMS] = _dims(of)
    return known


def _dims(of: Attribute) -> tuple[Dim, ...]:
    assert isinstance(of, TensorType)
    if isinstance(of.encoding, DimsAttr):
        return of.encoding.dims()
    sizes = of.get_shape()
    if DYNAMIC_INDEX not in sizes:
        return sizes
    return tuple(size if size != DYNAMIC_INDEX else sym(f"{UNKNOWN_PREFIX}{k}") for k, size in enumerate(sizes))


def is_tensor(of: Attribute) -> bool:
    """Whether values of a type are tensors, not numbers or memory."""
    return of.name == TensorType.name


def number_as_tensor(of: Attribute) -> Tensor:
    """The type of a tensor without dimensions that holds a number of a type; that of an `index` holds an int64."""
    return tensor(_ELEMENTS["int64"] if isinstance(of, IndexType) else of, ())


def element_of(of: Attribute) -> Attribute:
    """The element type of a tensor type."""
    return cast("Tensor", of).get_element_type()


def with_dims(of: Attribute, new: Sequence[Dim]) -> Tensor:
    """The same element type with other dimensions."""
    return tensor(element_of(of), new)


def with_element(of: Attribute, element: Attribute) -> Tensor:
    """The same dimensions with another element type."""
    return tensor(element, dims(of))


def rank(of: Attribute) -> int:
    return len(dims(of))


def element_count(of: Attribute) -> Dim:
    """Number of logical elements."""
    return product(dims(of))


def halo(of: Attribute) -> tuple[int, ...]:
    """Cells around the two spatial dimensions of a blocked tensor; empty for ordinary tensors."""
    assert isinstance(of, TensorType)
    return of.encoding.halo_cells() if isinstance(of.encoding, DimsAttr) else ()


def halo_fill(of: Attribute) -> int:
    """What all bytes of a halo are."""
    assert isinstance(of, TensorType)
    return of.encoding.fill.data if isinstance(of.encoding, DimsAttr) else 0


def channels(of: Attribute) -> Dim | None:
    """Logical channel count of a blocked tensor, `None` for ordinary tensors."""
    assert isinstance(of, TensorType)
    return of.encoding.channel_count() if isinstance(of.encoding, DimsAttr) else None


def memory_order(of: Attribute) -> tuple[int, ...]:
    """The dimensions of a tensor type from the outermost to the innermost in memory."""
    assert isinstance(of, TensorType)
    encoding, count = of.encoding, len(of.get_shape())
    return encoding.memory_order() if isinstance(encoding, DimsAttr) else tuple(range(count))


def row_length(of: Attribute) -> int:
    """Elements from one innermost row to the next; 0 where rows follow each other without gaps."""
    assert isinstance(of, TensorType)
    return of.encoding.row.data if isinstance(of.encoding, DimsAttr) else 0


def is_row_major(of: Attribute) -> bool:
    """Whether the dimensions lie in memory in their own order, without gaps between rows."""
    return not row_length(of) and memory_order(of) == tuple(range(rank(of)))


def channels_last(rank: int) -> tuple[int, ...]:
    """The memory order of images (or signals, or volumes) whose channels, dimension 1, lie innermost."""
    return (0, *range(2, rank), 1)


def with_order(of: Attribute, order: Sequence[int] = (), row: int = 0) -> Tensor:
    """The same tensor in another memory order; row-major without arguments."""
    return tensor(element_of(of), dims(of), channels(of), halo(of), order, row, halo_fill(of))


def stored_dims(of: Attribute) -> tuple[Dim, ...]:
    """The dimensions as they lie in memory: halo cells and gaps at the end of rows included."""
    result = list(dims(of))
    for k, cells in enumerate(halo(of)):
        result[2 + k] = result[2 + k] + 2 * cells
    if row := row_length(of):
        result[memory_order(of)[-1]] = row
    return tuple(result)


def strides(of: Attribute) -> tuple[tuple[Dim, ...], Dim]:
    """Strides in elements, and the offset of the element at index zero."""
    from mlirt.dialects.layout import Layout  # tools that only read IR start without it

    steps = Layout.ordered(stored_dims(of), memory_order(of)).strides()
    offset: Dim = 0
    for k, cells in enumerate(halo(of)):
        offset = offset + steps[2 + k] * cells
    return steps, offset


def stored_bytes(of: Attribute) -> Dim:
    """Bytes that the tensor takes in memory, halo and gaps included."""
    return product(stored_dims(of)) * byte_width(element_of(of))


def is_unknown(dim: Dim) -> bool:
    """Whether a dimension is an unnamed `?`, or computed from one."""
    return not isinstance(dim, int) and any(name.startswith(UNKNOWN_PREFIX) for name in symbols(dim))


def compatible(left: Attribute, right: Attribute) -> bool:
    """Whether two tensor types may stand for the same value: dimensions equal where both are known.

    Of lengths that broadcast one may stand for all: a run in which it is another is refused.
    """
    if left is right:
        return True
    if element_of(left) != element_of(right) or rank(left) != rank(right):
        return False
    return all(map(_may_be_equal, dims(left), dims(right)))


def _may_be_equal(left: Dim, right: Dim) -> bool:
    if left == right or is_unknown(left) or is_unknown(right):
        return True
    return not set(broadcast_parts(left)).isdisjoint(broadcast_parts(right))
