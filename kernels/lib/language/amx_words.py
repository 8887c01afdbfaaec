"""Words of the kernel language for the matrix unit of x86 processors (AMX): sums of int8 products in its registers.

`shape` is the tile that the registers hold: rows and columns of registers, and the pixels of a row of them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeAlias

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.amx import AmxBeginOp, AmxClearOp, AmxDotAddOp, AmxEndOp, AmxStoreOp
from mlirt.kernels.lib.language.context import builder
from mlirt.kernels.lib.language.values import Index

Shape: TypeAlias = tuple[int, int, int]


@contextmanager
def matrix_unit(shape: Shape, depth: int) -> Generator[None]:
    """What is done inside has the registers of a tile, and reads `depth` bytes of each row at once."""
    builder().insert(AmxBeginOp(*shape, depth))
    yield
    builder().insert(AmxEndOp())


def clear_accumulators(shape: Shape) -> None:
    """Set the registers of a tile to zero."""
    builder().insert(AmxClearOp(shape[0] * shape[1]))


def dot_add(shape: Shape, x: SSAValue, x_at: Index, step: Index, w: SSAValue, w_at: Index) -> None:
    """Add to the registers the products of rows of `x`, which are `step` elements apart, and panels of `w`."""
    k = builder()
    k.insert(AmxDotAddOp(x, k.index(x_at), k.index(step), w, k.index(w_at), *shape))


def store_accumulators(shape: Shape, memory: SSAValue) -> None:
    """Write the registers of a tile to memory, row by row."""
    builder().insert(AmxStoreOp(memory, *shape))
