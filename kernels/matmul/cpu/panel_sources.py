"""Where a kernel finds the panels of a right operand: packed at build time, in place, or packed by itself."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.worker import slots_for
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.tile_words import elements, load, load_transposed
from mlirt.kernels.lib.language.words import ceil_div, size, strided
from mlirt.kernels.matmul.cpu.tile_kernel import Place, TileKernel, Vectors


@dataclass(frozen=True)
class PackedAtBuild:
    """`weights` is `[b.., panels, depth, width]`."""

    weights: SSAValue

    @kernel
    def __call__(self, kernel: TileKernel, panel: Index, slot: Value, place: Place) -> Vectors:
        *batches, _, _, _ = kernel.steps(kernel.product.rhs)
        base = kernel.address(place.batches, batches)
        lines = ceil_div(kernel.product.depth, kernel.word)
        w_at = base + panel * size("panel_size", lines * (kernel.word * kernel.width))
        return Vectors(self.weights, w_at, kernel.word * kernel.width)


@dataclass(frozen=True)
class InPlace:
    """Rows of the right operand are read where they are."""

    rhs: SSAValue

    def __call__(self, kernel: TileKernel, panel: Index, slot: Value, place: Place) -> Vectors:
        *_, depth_step = kernel.steps(kernel.product.rhs)
        return Vectors(self.rhs, _start(kernel, place), depth_step)


@dataclass(frozen=True)
class PackedByWorker:
    """Each worker packs the panel that it is about to use in its part of `memory`, transposed where columns lie apart.

    The part is that of its slot, which no other worker has.
    """

    rhs: SSAValue
    memory: SSAValue

    @kernel
    def __call__(self, kernel: TileKernel, panel: Index, slot: Value, place: Place) -> Vectors:
        packed_at = slot * size("panel_size", kernel.product.depth * kernel.width)
        vectors = Vectors(self.memory, packed_at, kernel.width)
        pack = self._copy if kernel.product.rhs.column == 1 else self._transpose
        kernel.either_edge(place.column, lambda valid: pack(kernel, vectors, place, valid))
        return vectors

    @kernel
    def _copy(self, kernel: TileKernel, vectors: Vectors, place: Place, valid: SSAValue | None) -> None:
        *_, step = kernel.steps(kernel.product.rhs)
        b_at = _start(kernel, place)
        for k in range(size("depth", kernel.product.depth)):
            tile = load(self.rhs, b_at + k * step, 0, (1, kernel.shape.vectors, kernel.lanes), valid)
            to = vectors.at + k * kernel.width
            self._keep(kernel, tile, to)

    @kernel
    def _transpose(self, kernel: TileKernel, vectors: Vectors, place: Place, valid: Value | None) -> None:
        """Squares of `lanes` columns, each a row in memory, and as many steps of the sum."""
        lanes, depth = kernel.lanes, kernel.product.depth
        *_, step, _ = kernel.steps(kernel.product.rhs)
        b_at = _start(kernel, place)

        def square(vector: Index, k: Index, left: Value | None) -> None:
            beside = vector * lanes
            at = b_at + beside * step + k
            rows = None if valid is None else valid - beside
            tile = load_transposed(self.rhs, at, step, lanes, rows, left)
            to = vectors.at + k * kernel.width + beside
            self._keep(kernel, tile, to, left)

        for vector in range(kernel.shape.vectors if valid is None else ceil_div(valid, lanes)):
            whole = size("whole_squares", depth // lanes * lanes)
            for k in range(0, whole, lanes):
                square(vector, k, None)
            if depth % lanes != 0:
                left = size("depth", depth) - whole
                if left > 0:
                    square(vector, whole, left)

    @kernel
    def _keep(self, kernel: TileKernel, tile: Value, to: Value, rows: Value | None = None) -> None:
        """Rows of a tile into the panel, from the element `to` on."""
        memory = strided(self.memory, 1, kernel.width, kernel.lanes, 1)
        for element, row, vector, lane in elements(tile, rows):
            memory[to, row, vector, lane] = element


def _start(kernel: TileKernel, place: Place) -> Value:
    """The first element of the right operand that a panel needs."""
    *batches, _, column_step, _ = kernel.steps(kernel.product.rhs)
    return kernel.address([*place.batches, place.column], [*batches, column_step])


def packing_bytes(kernel: TileKernel, tasks: Dim) -> Dim:
    """The memory in which workers pack: a panel for each task that is under way at once."""
    return slots_for(tasks) * kernel.product.depth * (kernel.width * 4)
