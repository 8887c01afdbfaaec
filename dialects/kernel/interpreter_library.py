"""What a call of a library does, on NumPy memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirt.dialects.kernel.library_convolution import LibraryConvolutionOp
from mlirt.dialects.kernel.library_op import LibraryOp
from mlirt.dialects.kernel.library_product import LibraryProductOp
from mlirt.dialects.tensor_types import numpy_dtype

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter import Argument
    from mlirt.dialects.tensor_op import Array


def run_call(op: LibraryOp, arguments: Sequence[Argument]) -> None:
    """Write what a library computes to the memory of the third argument."""
    count = len(arguments) - len(op.numbers)
    buffers, numbers = [_from_base(one) for one in arguments[:count]], [_number(one) for one in arguments[count:]]
    if isinstance(op, LibraryConvolutionOp):
        _convolve(op, buffers, numbers)
    elif isinstance(op, LibraryProductOp):
        _multiply(op, buffers, numbers)


def _convolve(op: LibraryConvolutionOp, buffers: Sequence[Array], numbers: Sequence[int]) -> None:
    images, channels, height, width, kernels, down, across, rows, columns = numbers
    shapes = (
        (images, channels, height, width),
        (kernels, channels // op.groups.value.data, down, across),
        (images, kernels, rows, columns),
    )
    last = bool(op.channels_last.value.data)
    given, kernel, result = (_dense(memory, shape, last) for memory, shape in zip(buffers, shapes, strict=False))
    bias = buffers[4][:kernels] if op.is_biased else None
    result[...] = op.reference(given, kernel, bias).astype(result.dtype)


def _dense(memory: Array, shape: tuple[int, int, int, int], channels_last: bool) -> Array:
    """The tensor in memory without gaps."""
    from math import prod

    first, channels, *plane = shape
    if not channels_last:
        return memory[: prod(shape)].reshape(shape)
    return memory[: prod(shape)].reshape(first, *plane, channels).transpose(0, 3, 1, 2)


def _multiply(op: LibraryProductOp, buffers: Sequence[Array], numbers: Sequence[int]) -> None:
    rows, columns, depth, batch, *steps = numbers
    left, right, result = (
        _matrices(memory, shape, batch, steps[2 * k : 2 * k + 2], transposed)
        for k, (memory, shape, transposed) in enumerate(
            zip(buffers, [(rows, depth), (depth, columns), (rows, columns)], _transposed(op), strict=False)
        )
    )
    bias = buffers[4][:columns] if op.is_biased else None
    result[...] = op.reference(left, right, bias).astype(numpy_dtype(op.elements[2]))


def _transposed(op: LibraryProductOp) -> tuple[bool, bool, bool]:
    return bool(op.transpose_left.value.data), bool(op.transpose_right.value.data), False


def _matrices(memory: Array, shape: tuple[int, int], batch: int, steps: Sequence[int], transposed: bool) -> Array:
    """A batch of matrices in memory, as a view; `transposed` ones lie column by column."""
    from numpy.lib.stride_tricks import as_strided

    line, matrix = (step * memory.itemsize for step in steps)
    within = (memory.itemsize, line) if transposed else (line, memory.itemsize)
    return as_strided(memory, (batch, *shape), (matrix, *within))


def _number(argument: Argument) -> int:
    assert isinstance(argument, int)
    return argument


def _from_base(argument: Argument) -> Array:
    from mlirt.dialects.kernel.interpreter import OffsetBuffer

    assert isinstance(argument, OffsetBuffer)
    return argument.array[argument.base :]
