"""Matrix products on a GPU in tiles: halves and bytes on the matrix units, single precision by each thread for itself.

Matrix units read bytes along the depth alone: known factors are packed that way, others have to lie so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_half, rank
from mlirt.kernels.lib.builder.placement import Packed
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.cuda.tiles.loaders import MIN_COPY, Loader, Matrix, MatrixLoader, TransposingLoader
from mlirt.kernels.lib.cuda.tiles.problem import Plan, Problem, Sizes, unit_kind
from mlirt.kernels.lib.cuda.tiles.product import Operands, Place, lower_product
from mlirt.kernels.lib.cuda.tiles.results import Epilogue
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemories, TileMemory
from mlirt.kernels.lib.cuda.warpgroups.packing import packed_along_depth
from mlirt.kernels.lib.language import Value, builder, kernel
from mlirt.kernels.lib.language.words import extent, place, stride
from mlirt.kernels.lib.loops.loop_nest import Nest
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (MatmulOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_PIECE = 16  # bytes
_MAX_BATCHES = 65535  # blocks along the third axis of a grid
_MAX_WARP_ROWS = 4  # rows or columns for which a warp per element does better


@dataclass(frozen=True)
class Factor:
    """An operand as a batch of matrices: along its own dimension (rows or columns) and along the depth."""

    value: SSAValue
    own_step: Dim
    depth_step: Dim
    own_size: Dim
    batch_steps: tuple[Dim, ...]
    packed: Packed | None = None
    """The factor itself, where it is known and lies in another way than here."""

    @property
    def by_depth(self) -> bool:
        """Whether neighbours along its own dimension are neighbours in memory."""
        return self.own_step == 1 and self.depth_step != 1


@dataclass(frozen=True)
class Product:
    """A matrix product that tiles can compute."""

    problem: Problem
    left: Factor
    right: Factor


def estimates(op: MatmulOp, lowering: Lowering) -> Mapping[str, float]:
    found = _product(op, lowering)
    return {} if found is None else found.problem.estimates()


def _product(op: MatmulOp, lowering: Lowering) -> Product | None:
    elements = _elements(op)
    kind = unit_kind(*elements, lowering.target)
    if kind is None and elements != (f32, f32):
        return None
    if accumulator_type(op.epilogue) != (f32 if kind is None else kind.accumulator_type):
        return None
    left, right, depth = _factors(op, lowering)
    if kind is not None and kind.accumulator_type != f32:
        left, right = (_packed(one, lowering, by_depth=False) for one in (left, right))
        if left.by_depth or right.by_depth:
            return None
    sizes = Sizes(left.own_size, right.own_size, depth, product(dims(op.output.type)[:-2]))
    if not _applies(sizes, left, right):
        return None
    if kind is None:
        left, right = (_by_own(one, lowering) for one in (left, right))
    return Product(Problem(sizes, elements[0], kind, lowering), left, right)


def _elements(op: MatmulOp) -> tuple[Attribute, Attribute]:
    """What is multiplied: beside a half, float32 is rounded to such a half as it is read."""
    left, right = element_of(op.lhs.type), element_of(op.rhs.type)
    return right if left == f32 and is_half(right) else left, left if right == f32 and is_half(left) else right


def _by_own(factor: Factor, lowering: Lowering) -> Factor:
    """Known matrices so that nothing of them is transposed, or copied in parts of 16 bytes; others as they are."""
    is_good = factor.by_depth and _wide(factor, lowering) * byte_width(f32) == _PIECE
    return factor if is_good else _packed(factor, lowering, by_depth=True)


def _packed(factor: Factor, lowering: Lowering, *, by_depth: bool) -> Factor:
    """Known matrices whose lines, in whole pieces of 16 bytes, go along the depth or (`by_depth`) their own dimension;
    others as they are.
    """
    if lowering.known(factor.value) is None:
        return factor
    packed = lowering.packed(factor.value, partial(packed_along_depth, factor.by_depth != by_depth, 0))
    array = packed.array
    steps = [step // array.itemsize if size != 1 else 0 for step, size in zip(array.strides, array.shape, strict=True)]
    line = array.shape[-1]
    own, deep = (1, line) if by_depth else (line, 1)
    return Factor(factor.value, own, deep, factor.own_size, tuple(steps[:-2]), packed)


def lower(op: MatmulOp, lowering: Lowering) -> bool:
    found = _product(op, lowering)
    plan = None if found is None else found.problem.plan(lowering.choice(op))
    if found is None or plan is None:
        return False
    left, right, depth, batch = found.left, found.right, plan.sizes.depth, dims(op.output.type)[:-2]

    def make(place: Place, tiles: TileMemories) -> tuple[Loader, Loader]:
        return (
            _loader(left, depth, place, place.row, tiles.left, batch, lowering, by_depth[0]),
            _loader(right, depth, place, place.column, tiles.right, batch, lowering, by_depth[1]),
        )

    alone = plan.kind is None
    by_depth = [factor.by_depth or plan.shape.transposes for factor in (left, right)]
    operands = Operands(
        left_by_depth=by_depth[0],
        right_by_depth=by_depth[1],
        are_async=(alone or _is_async(left, plan, lowering), alone or _is_async(right, plan, lowering)),
        make=make,
    )
    width = rank(op.output.type)
    epilogue = Epilogue(op)
    borders = frozenset({width - 2, width - 1})
    lower_product(plan, operands, epilogue, borders, partial(_indices, width), lowering, "matmul")
    return True


def _wide(factor: Factor, lowering: Lowering) -> int:
    """Elements of one access."""
    if factor.packed is not None:
        return _PIECE // factor.packed.array.dtype.itemsize
    return widest_access(factor.value, _other_steps(factor), lowering)


def _is_async(factor: Factor, plan: Plan, lowering: Lowering) -> bool:
    element = element_of(factor.value.type)
    is_rounded = element == f32 and is_half(plan.element)
    return _wide(factor, lowering) * byte_width(element) >= MIN_COPY and not is_rounded


def _applies(sizes: Sizes, left: Factor, right: Factor) -> bool:
    if 1 not in (left.own_step, left.depth_step) or 1 not in (right.own_step, right.depth_step):
        return False
    if isinstance(sizes.batch, int) and sizes.batch > _MAX_BATCHES:
        return False
    if sizes.depth == 0:
        return False
    few_rows = isinstance(sizes.rows, int) and sizes.rows <= _MAX_WARP_ROWS and right.depth_step == 1
    few_columns = isinstance(sizes.columns, int) and sizes.columns <= _MAX_WARP_ROWS and left.depth_step == 1
    return not few_rows and not few_columns


def _factors(op: MatmulOp, lowering: Lowering) -> tuple[Factor, Factor, Dim]:
    lhs_axes = (-1, -2) if op.transpose_lhs.value.data else (-2, -1)
    rhs_axes = (-2, -1) if op.transpose_rhs.value.data else (-1, -2)
    depth = dims(op.lhs.type)[lhs_axes[1]]
    return _factor(op.lhs, op, lhs_axes, lowering), _factor(op.rhs, op, rhs_axes, lowering), depth


def _factor(value: SSAValue, op: MatmulOp, axes: tuple[int, int], lowering: Lowering) -> Factor:
    steps, sizes, results = lowering.placements[value].strides, dims(value.type), dims(op.output.type)
    batch: tuple[Dim, ...] = tuple(
        0 if size == 1 and result != 1 else step
        for size, result, step in zip(sizes[:-2], results[:-2], steps[:-2], strict=True)
    )
    own, deep = axes
    # A dimension of length 1 may as well be contiguous.
    own_step = 1 if sizes[own] == 1 and steps[deep] != 1 else steps[own]
    deep_step = 1 if sizes[deep] == 1 and own_step != 1 else steps[deep]
    return Factor(value, own_step, deep_step, sizes[own], batch)


def _other_steps(factor: Factor) -> list[Dim]:
    return [factor.depth_step if factor.by_depth else factor.own_step, *factor.batch_steps]


def _loader(
    factor: Factor,
    depth: Dim,
    place: Place,
    first: Value,
    tile: TileMemory,
    batch: tuple[Dim, ...],
    lowering: Lowering,
    by_depth: bool,
) -> Loader:
    """What brings a factor to a tile; one that does not lie by depth, where the tile does, is transposed on its way."""
    outer = stride(factor.depth_step if factor.by_depth else factor.own_step)
    base = _batch_offset(place.batch, batch, factor.batch_steps)
    transposes = by_depth and not factor.by_depth
    wide = 1 if transposes else _wide(factor, lowering)
    lines, width = (depth, factor.own_size) if factor.by_depth else (factor.own_size, depth)
    matrix = Matrix(_memory(factor), base, outer, lines, width, factor.by_depth, wide)
    make = TransposingLoader if transposes else MatrixLoader
    return make(matrix, tile, place.thread, place.threads, first)


def _memory(factor: Factor) -> Value:
    """Where a factor lies, uint8 as signless ones."""
    return builder().bits(factor.value) if factor.packed is None else builder().weights(factor.packed, "packed")


@kernel
def _batch_offset(batch: Value, sizes: tuple[Dim, ...], steps: tuple[Dim, ...]) -> Value:
    """Where the matrices of a batch entry start."""
    offset, moved = place(0), [pair for pair in zip(sizes, steps, strict=True) if pair[0] != 1]
    for number, (size, step) in reversed(list(enumerate(moved))):
        offset = offset + batch % extent(size) * stride(step)
        if number > 0:
            batch = batch // extent(size)
    return offset


@kernel
def _indices(rank_: int, nest: Nest, column: Value, batch: Value) -> Callable[[Value], list[Value]]:
    """The indices along the loops of the result's nest: batch dimensions, the row, the column."""
    found: dict[int, Value] = {}
    for loop, (size, group) in reversed(list(enumerate(zip(nest.extents, nest.groups, strict=True)))):
        if group[0] == rank_ - 1:
            found[loop] = column
        elif group[0] != rank_ - 2:
            found[loop] = batch % extent(size)
            batch = batch // extent(size)

    def at(row: Value) -> list[Value]:
        return [found.get(loop, row) for loop in range(len(nest.groups))]

    return at
