"""A product to compute in tiles: its sizes, the choices of tiles for it, and the plan that a choice makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, Float16Type, IntegerType, Signedness, i8
from xdsl.ir import Attribute

from mlirt.dialects.gpu_architectures import ASYNC_COPY, CLUSTERS, MMA, MMA_BF16
from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.target import Target
from mlirt.dialects.tensor_types import is_half
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.cuda.tiles.shape import (
    MATRIX_UNIT,
    MATRIX_UNIT_BYTES,
    MULTIPLY_ADD,
    SINGLE,
    WarpTile,
    Work,
    choice_named,
    choices,
)
from mlirt.kernels.lib.tactics.lowering import Lowering

_UI8 = IntegerType(8, Signedness.UNSIGNED)
_KINDS: dict[tuple[Attribute, Attribute], MmaKind] = {
    (Float16Type(), Float16Type()): MmaKind.F16,
    (BFloat16Type(), BFloat16Type()): MmaKind.BF16,
    (i8, i8): MmaKind.S8,
    (_UI8, i8): MmaKind.U8,
}
_SHAPES = {
    MmaKind.F16: MATRIX_UNIT,
    MmaKind.BF16: MATRIX_UNIT,
    MmaKind.S8: MATRIX_UNIT_BYTES,
    MmaKind.U8: MATRIX_UNIT_BYTES,
}


def unit_kind(left: Attribute, right: Attribute, target: Target) -> MmaKind | None:
    """How the matrix units of a warp multiply elements; None where they do not, or the target has no such ones."""
    kind = _KINDS.get((left, right))
    return kind if kind is not None and target.has(MMA_BF16 if kind == MmaKind.BF16 else MMA) else None


def multiplies_halves(element: Attribute, target: Target) -> bool:
    """Whether elements are halves that the matrix units of a warp multiply."""
    return is_half(element) and unit_kind(element, element, target) is not None


@dataclass(frozen=True)
class Sizes:
    """A batch of products of rows x depth with depth x columns matrices; each batch entry is one index of the grid."""

    rows: Dim
    columns: Dim
    depth: Dim
    batch: Dim


@dataclass(frozen=True)
class Plan:
    """What was chosen for a product."""

    sizes: Sizes
    element: Attribute
    kind: MmaKind | None
    shape: WarpTile
    parts: int
    steps: Dim

    def grid(self) -> tuple[Dim, Dim, Dim]:
        rows, columns = ceil_div(self.sizes.rows, self.shape.rows), ceil_div(self.sizes.columns, self.shape.columns)
        if self.shape.is_cluster:
            return rows * columns * self.parts, 1, self.sizes.batch
        return rows * columns, self.parts, self.sizes.batch


@dataclass(frozen=True)
class Problem:
    """A product; `steps` gives the number of tiles of a shape along the depth, by default as many as cover it.

    `kind` is what the matrix units do, None where each thread multiplies for itself. `is_scattered`: neighbours of the
    right operand's tiles are far apart in memory.
    """

    sizes: Sizes
    element: Attribute
    kind: MmaKind | None
    lowering: Lowering
    steps: Callable[[WarpTile], Dim] | None = None
    is_scattered: bool = False

    @property
    def shapes(self) -> tuple[WarpTile, ...]:
        """The tile shapes for the elements that the target has the instructions and the shared memory for."""
        target = self.lowering.target
        single = SINGLE if target.has(MMA_BF16) else MULTIPLY_ADD
        shapes = single if self.kind is None else _SHAPES[self.kind]
        has_copies = target.has(ASYNC_COPY)
        return tuple(shape for shape in shapes if shape.shared_bytes(has_copies) <= target.gpu.shared_bytes)

    def estimates(self) -> dict[str, float]:
        """About how many microseconds the product takes with each tile shape and number of parts, by their names."""
        may_split = all(isinstance(self._steps(shape), int) for shape in self.shapes)
        work, has_clusters = self._work(), self.lowering.target.has(CLUSTERS)
        found = choices(self.shapes, work.steps, may_split=may_split, has_clusters=has_clusters)
        return {choice.name: work.microseconds(choice) for choice in found}

    def plan(self, name: str) -> Plan | None:
        """What follows from a choice; None where there is none of this name."""
        choice = choice_named(self.shapes, name)
        if choice is None:
            return None
        return Plan(self.sizes, self.element, self.kind, choice, choice.parts, self._steps(choice))

    def _steps(self, shape: WarpTile) -> Dim:
        return ceil_div(self.sizes.depth, shape.depth) if self.steps is None else self.steps(shape)

    def _work(self) -> Work:
        known, device = typical_values(self.lowering.block), self.lowering.target.gpu
        rows, columns, batch = (
            typical(size, known) for size in (self.sizes.rows, self.sizes.columns, self.sizes.batch)
        )
        return Work(
            rows, columns, batch, lambda shape: typical(self._steps(shape), known), self.is_scattered, device=device
        )
