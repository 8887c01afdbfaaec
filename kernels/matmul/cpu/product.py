"""A matrix product as loops: batches, rows, columns and the sum, with the strides of every operand along each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, rank
from mlirt.kernels.lib.builder.placement import Placements
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, affine, collapse, direct
from mlirt.kernels.lib.loops.scalar_regions import indices_in


@dataclass(frozen=True)
class Walk:
    """The strides of one operand in elements; `offset` is where its first element lies."""

    value: SSAValue
    batches: tuple[Dim, ...]
    row: Dim
    column: Dim
    depth: Dim = 0
    offset: Dim = 0


@dataclass(frozen=True)
class Product:
    """`out[b.., i, j] = epilogue(sum over k of lhs[b.., i, k] * rhs[b.., k, j], extras[b.., i, j])`.

    Batches through which everything walks like through rows are rows. `axes` tells for each batch loop, then for the
    rows and the columns, which dimensions of the result they walk.
    """

    batches: tuple[Dim, ...]
    rows: Dim
    columns: Dim
    depth: Dim
    lhs: Walk
    rhs: Walk
    extras: tuple[Walk, ...]
    out: Walk
    axes: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(op: MatmulOp, places: Placements, rhs_steps: Sequence[Dim] | None = None) -> Product:
        """The loops of an op. `rhs_steps` are the strides of its right operand where that was packed: one for each
        batch dimension; its rows and columns are the packer's affair.
        """
        left, right, results = dims(op.lhs.type), dims(op.rhs.type), dims(op.output.type)
        m, depth_of_lhs = (-1, -2) if op.transpose_lhs.value.data else (-2, -1)
        n, depth_of_rhs = (-2, -1) if op.transpose_rhs.value.data else (-1, -2)
        rhs_places = places[op.rhs].strides if rhs_steps is None else None
        rhs_batches = _batches(right, (rhs_steps or ()) if rhs_places is None else rhs_places, results)
        column, depth = (0, 0) if rhs_places is None else (rhs_places[n], rhs_places[depth_of_rhs])
        rhs = Affine(op.rhs, (*rhs_batches, 0, column))
        return _product(op, places, (m, depth_of_lhs), left[depth_of_lhs], rhs, depth)

    @staticmethod
    def of_packed(op: PackedMatmulOp, places: Placements) -> Product:
        """The loops of a product whose right operand is one packed matrix."""
        rhs = Affine(op.codes, (0,) * rank(op.output.type))
        return _product(op, places, (-2, -1), op.depth, rhs, 0)


def _product(
    op: MatmulOp | PackedMatmulOp,
    places: Placements,
    lhs_axes: tuple[int, int],
    depth: Dim,
    rhs: Affine,
    rhs_depth: Dim,
) -> Product:
    width = rank(op.output.type)
    rows_axis, columns_axis = width - 2, width - 1
    m, depth_of_lhs = lhs_axes
    results, strides = dims(op.output.type), places[op.lhs].strides
    lhs_batches = _batches(dims(op.lhs.type), strides, results)
    operands = [
        Affine(op.lhs, (*lhs_batches, strides[m], 0)),
        rhs,
        *(affine(value, places[value], one, width) for value, one in zip(op.extras, op.access, strict=True)),
        direct(op.output, places[op.output]),
    ]
    keep = indices_in(op.epilogue) | {columns_axis}
    nest = collapse(Nest.of(results, operands), frozenset(keep))
    *outer, columns = nest.extents
    has_rows = bool(outer) and nest.operands[1].steps[-2] == 0
    walks = [_walk(one, has_rows) for one in nest.operands]
    left, right = (
        Walk(walk.value, walk.batches, walk.row, walk.column, step, walk.offset)
        for walk, step in zip(walks[:2], [strides[depth_of_lhs], rhs_depth], strict=True)
    )
    border = len(outer) - has_rows
    rows_axes = nest.groups[border] if has_rows else (rows_axis,)
    return Product(
        batches=tuple(outer[:border]),
        rows=outer[border] if has_rows else 1,
        columns=columns,
        depth=depth,
        lhs=left,
        rhs=right,
        extras=tuple(walks[2:-1]),
        out=walks[-1],
        axes=(*nest.groups[:border], rows_axes, nest.groups[-1]),
    )


def _walk(one: Affine, has_rows: bool) -> Walk:
    if has_rows:
        return Walk(one.value, one.steps[:-2], one.steps[-2], one.steps[-1], offset=one.offset)
    return Walk(one.value, one.steps[:-1], 0, one.steps[-1], offset=one.offset)


def _batches(sizes: Sequence[Dim], steps: Sequence[Dim], results: Sequence[Dim]) -> list[Dim]:
    """The strides along batch dimensions; a dimension of length 1 is the same for all."""
    count = len(results) - 2
    return [
        0 if size == 1 and result != 1 else step
        for size, result, step in zip(sizes[:count], results[:count], steps[:count], strict=True)
    ]
