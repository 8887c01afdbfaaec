"""Warp-specialised matrix products: a matrix unit multiplies tiles that TMA copies to shared memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.symbolic import Dim, ceil_div, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, rank
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.builder.placement import Packed
from mlirt.kernels.lib.cuda.warpgroups.group_choice import GroupWork
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.group_unit import GroupUnit
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.packing import packed_along_depth
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import (
    WIDTH,
    ResultShape,
    RowEpilogue,
    bytes_ahead,
    is_pointwise,
    large_extras,
    result_width,
    scalar_operations,
    width_of_results,
)
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory, MatrixSource
from mlirt.kernels.lib.tactics.lowering import Lowering

_MAX_WARP_ROWS = 4  # rows or columns for which a warp per element does better


@dataclass(frozen=True)
class Factor:
    """An operand as a batch of matrices in memory.

    `batch` are the dimensions of the result's batch that the memory has. `by_depth`: neighbours along its own dimension
    are neighbours in memory.
    """

    memory: MappedMemory
    batch: tuple[int, ...]
    by_depth: bool
    known: bool
    in_fragment_order: bool = False

    @property
    def is_one_matrix(self) -> bool:
        """Whether the matrices of the batch lie one below the other."""
        sizes, steps = self.memory.sizes, self.memory.steps
        below = all(steps[axis] == steps[axis + 1] * sizes[axis + 1] for axis in range(len(self.batch)))
        return not self.known and not self.by_depth and below

    def joined(self, rows: Dim) -> Factor:
        """The batch as one matrix."""
        sizes, steps = (rows, self.memory.sizes[-1]), self.memory.steps[-2:]
        return replace(self, memory=replace(self.memory, sizes=sizes, steps=steps), batch=())

    def source(self, k: KernelBuilder, own: int) -> MatrixSource:
        flags = {"known": self.known, "in_fragment_order": self.in_fragment_order}
        return MatrixSource(k, self.memory, own, self.batch, by_depth=self.by_depth, **flags)


@dataclass(frozen=True)
class Operand:
    """An operand of the op and which of its last two axes are its own and the depth."""

    value: SSAValue
    own: int
    deep: int
    is_right: bool = False


def work(op: MatmulOp, lowering: Lowering, unit: GroupUnit) -> GroupWork | None:
    """What there is to do; None where the tactic does not apply."""
    kind = _kind(op, lowering, unit)
    if kind is None or accumulator_type(op.epilogue) != kind.accumulator_type or not is_pointwise(op):
        return None
    left, right = _operands(op)
    factors = [_factor(one, op, lowering) for one in (left, right)]
    if factors[0] is None or factors[1] is None:
        return None
    batch, rows, columns = _shape(op, factors[0])
    depth = dims(left.value.type)[left.deep]
    few = any(isinstance(size, int) and size <= _MAX_WARP_ROWS for size in (rows, columns))
    if few or depth == 0:
        return None
    piece = kind.depth if factors[1].by_depth else 1
    return GroupWork.of(
        *(rows, columns, batch, depth, kind, lowering, piece),
        *(large_extras(op), result_width(op), scalar_operations(op), bytes_ahead(op)),
    )


def _shape(op: MatmulOp, left: Factor) -> tuple[tuple[Dim, ...], Dim, Dim]:
    """The batch, rows and columns of the product: the batch is more rows where all entries have the same columns."""
    *batch, rows, columns = dims(op.output.type)
    entries = [size for axis, size in enumerate(batch) if axis not in left.batch]
    shared = all(size == 1 for size in dims(op.rhs.type)[:-2]) and all(size == 1 for size in entries)
    if shared and left.is_one_matrix:
        return (), product(batch) * rows, columns
    return tuple(batch), rows, columns


def _kind(op: MatmulOp, lowering: Lowering, unit: GroupUnit) -> Kind | None:
    return Kind.of(element_of(op.lhs.type), element_of(op.rhs.type), lowering.target, unit.instruction)


def _operands(op: MatmulOp) -> tuple[Operand, Operand]:
    last = rank(op.output.type) - 1
    flipped = bool(op.transpose_lhs.value.data), not op.transpose_rhs.value.data
    left = Operand(op.lhs, last - 1 + flipped[0], last - flipped[0])
    return left, Operand(op.rhs, last - 1 + flipped[1], last - flipped[1], is_right=True)


def _factor(one: Operand, op: MatmulOp, lowering: Lowering, tile: GroupTile | None = None) -> Factor | None:
    """An operand in memory; known ones are packed for a tile with lines along the depth. None: it cannot be copied."""
    element = scalar_type(element_of(one.value.type))
    sizes, results = dims(one.value.type), dims(op.output.type)
    if lowering.known(one.value) is not None:
        if tile is None:
            return Factor(MappedMemory(one.value, element, 0, (), ()), (), by_depth=False, known=True)
        width = width_of_results(op, tile, results[-1]) if one.is_right else 0
        packed = lowering.packed(one.value, partial(packed_along_depth, one.own > one.deep, width))
        return _packed_factor(packed, element, lowering, one.is_right)
    place = lowering.placements[one.value]
    batch = tuple(axis for axis in range(len(sizes) - 2) if sizes[axis] != 1)
    if any(sizes[axis] != results[axis] for axis in batch):
        return None
    # A dimension of length 1 may as well be contiguous.
    by_depth = place.strides[one.deep] != 1 and place.strides[one.own] == 1 and sizes[one.own] != 1
    axes = (*batch, one.deep, one.own) if by_depth else (*batch, one.own, one.deep)
    steps = tuple(place.strides[axis] for axis in axes)
    memory = MappedMemory(place.buffer, element, place.offset, tuple(sizes[axis] for axis in axes), steps)
    if not memory.fits() or (by_depth and byte_width(element) != 2):
        return None
    return Factor(memory, batch, by_depth, known=False)


def _packed_factor(packed: Packed, element: Attribute, lowering: Lowering, is_right: bool) -> Factor:
    """`packed` is `[batch.., own, depth]`."""
    buffer, array = lowering.placements.new_weight(packed, "packed"), packed.array
    batch = tuple(axis for axis in range(array.ndim - 2) if array.shape[axis] != 1)
    axes = (*batch, array.ndim - 2, array.ndim - 1)
    steps = tuple(step // array.itemsize for step in array.strides)
    sizes = tuple(array.shape[axis] for axis in axes)
    memory = MappedMemory(buffer, element, 0, sizes, tuple(steps[axis] for axis in axes))
    return Factor(memory, batch, by_depth=False, known=True, in_fragment_order=is_right)


def build_product(op: MatmulOp, tile: GroupTile, lowering: Lowering, unit: GroupUnit) -> None:
    """The kernel and its launch before `op`."""
    kind = _kind(op, lowering, unit)
    assert kind is not None
    left, right = (_factor(one, op, lowering, tile) for one in _operands(op))
    assert left is not None
    assert right is not None
    batch, rows, columns = _shape(op, left)
    one, _ = _operands(op)
    depth: Dim = dims(one.value.type)[one.deep]
    last = rank(op.output.type) - 1
    axes = tuple(range(last))
    shape = ResultShape((), axes, (last,)) if not batch else ResultShape(axes[:-1], axes[-1:], (last,))
    k = lowering.kernel("matmul")
    width = width_of_results(op, tile, columns) if right.in_fragment_order else WIDTH
    epilogue = RowEpilogue(k, op, shape, lowering, width)
    sizes = GroupSizes(rows, columns, batch, ceil_div(depth, kind.depth))
    left = left.joined(rows) if left.batch and not batch else left
    sources = left.source(k, tile.rows), right.source(k, tile.columns)
    unit.product(k, tile, sizes, kind, sources, epilogue).build(op)
