"""What one op of a kernel touches in memory: a first element, at a sum of products, and runs from there on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.kernel.amx import LANES, AmxBeginOp, AmxDotAddOp, AmxStoreOp
from mlirt.dialects.kernel.core import LoadOp, StoreOp, stride_values
from mlirt.dialects.kernel.tile import tile_shape
from mlirt.dialects.kernel.tile_bytes import FOUR, TileDotAddOp
from mlirt.dialects.kernel.tile_loads import TileLoadOp, TileLoadPatchOp, TileLoadTransposedOp
from mlirt.dialects.kernel.tile_products import TileCombineOp, TileMultiplyAddLanesOp, TileMultiplyAddOp

Factor: TypeAlias = "SSAValue | int"

_HARMLESS = {"kernel.prefetch"}  # any address will do


@dataclass(frozen=True)
class Run:
    """`step` apart, as many as the least of `counts` says, at least one."""

    counts: tuple[Factor, ...]
    step: Factor = 1


@dataclass(frozen=True)
class Touched:
    """Elements of a buffer: the sum of the `terms` (products), and from there all combinations of the `runs`."""

    buffer: SSAValue
    terms: tuple[tuple[Factor, Factor], ...] = ()
    runs: tuple[Run, ...] = ()
    is_unknown: bool = False


def touched_by(op: Operation) -> Iterator[Touched]:
    """What an op touches; anything at all of its buffers where there is no rule for it."""
    rule = _RULES.get(type(op))
    if rule is not None:
        yield from rule(op)
    elif op.name not in _HARMLESS:
        for operand in op.operands:
            type_: Attribute = operand.type
            if isinstance(type_, MemRefType):  # maps of tensors have extents of their own
                yield Touched(operand, is_unknown=True)


def _at(start: SSAValue) -> tuple[tuple[Factor, Factor], ...]:
    return ((start, 1),)


def _element(op: LoadOp | StoreOp) -> Iterator[Touched]:
    yield Touched(op.buffer, tuple(zip(op.indices, stride_values(op), strict=True)))


def _rows(most: int, only: SSAValue | None) -> tuple[Factor, ...]:
    return (most,) if only is None else (most, only)


def _multiply_add(op: TileMultiplyAddOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.tile.type)
    depth = op.depth.value.data
    yield Touched(op.x, _at(op.x_at), (Run(_rows(rows, op.rows), op.row_step), Run((depth,), op.step)))
    yield Touched(op.w, _at(op.w_at), (Run((depth * columns * lanes,)),))


def _multiply_add_lanes(op: TileMultiplyAddLanesOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.tile.type)
    yield Touched(op.x, _at(op.x_at), (Run(_rows(rows, op.rows), op.row_step), Run((columns * lanes,))))
    yield Touched(op.w, _at(op.w_at), (Run((columns * lanes,)),))


def _combine(op: TileCombineOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.tile.type)
    yield Touched(op.x, _at(op.x_at), (Run(_rows(rows, op.rows), op.row_step), Run((columns * lanes,))))


def _dot_add(op: TileDotAddOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.tile.type)
    depth = op.depth.value.data
    length = FOUR * (depth - 1) + op.last.value.data
    yield Touched(op.x, _at(op.x_at), (Run(_rows(rows, op.rows), op.row_step), Run((length,))))
    yield Touched(op.w, _at(op.w_at), (Run((FOUR * depth * columns * lanes,)),))


def _load(op: TileLoadOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.result.type)
    yield Touched(op.x, _at(op.x_at), (Run((rows,), op.row_step), Run(_rows(columns * lanes, op.valid))))


def _load_transposed(op: TileLoadTransposedOp) -> Iterator[Touched]:
    lanes = tile_shape(op.result.type)[2]
    rows = Run(_rows(lanes, op.rows), op.row_step)
    yield Touched(op.x, _at(op.x_at), (rows, Run(_rows(lanes, op.valid))))


def _load_patch(op: TileLoadPatchOp) -> Iterator[Touched]:
    rows, columns, lanes = tile_shape(op.result.type)
    yield Touched(
        op.x,
        _at(op.x_at),
        (
            Run(_rows(rows, op.rows), op.row_step),
            Run(_rows(columns, op.columns), op.column_step),
            Run((lanes,)),
        ),
    )


def _amx_dot_add(op: AmxDotAddOp) -> Iterator[Touched]:
    depth = _amx_depth(op)
    pixels = op.rows.value.data * op.pixels.value.data
    yield Touched(op.x, _at(op.x_at), (Run((pixels,), op.step), Run((depth,))))
    yield Touched(op.w, _at(op.w_at), (Run((depth * op.columns.value.data * LANES,)),))


def _amx_depth(op: Operation) -> int:
    """The depth that the registers of a kernel are laid out for; the largest, where there are several."""
    top = op
    while (parent := top.parent_op()) is not None and parent.name != "kernel.func":
        top = parent
    kernel = top.parent_op() or top
    return max(inner.depth.value.data for inner in kernel.walk() if isinstance(inner, AmxBeginOp))


def _amx_store(op: AmxStoreOp) -> Iterator[Touched]:
    count = op.rows.value.data * op.columns.value.data * op.pixels.value.data * LANES
    yield Touched(op.y, (), (Run((count,)),))


_RULES: dict[type[Operation], Callable[..., Iterator[Touched]]] = {
    LoadOp: _element,
    StoreOp: _element,
    TileMultiplyAddOp: _multiply_add,
    TileMultiplyAddLanesOp: _multiply_add_lanes,
    TileCombineOp: _combine,
    TileDotAddOp: _dot_add,
    TileLoadOp: _load,
    TileLoadTransposedOp: _load_transposed,
    TileLoadPatchOp: _load_patch,
    AmxDotAddOp: _amx_dot_add,
    AmxStoreOp: _amx_store,
}
