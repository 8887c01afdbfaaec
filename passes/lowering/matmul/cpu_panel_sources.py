"""Where a kernel finds the panels of a right operand: packed at build time, in place, or packed by itself."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.core import StoreOp, YieldOp
from mlirt.dialects.kernel.tile import TileForEachOp
from mlirt.dialects.kernel.tile_loads import TileLoadOp, TileLoadTransposedOp
from mlirt.dialects.kernel.worker import slots_for
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.passes.lowering.matmul.cpu_tile_kernel import Place, TileKernel, Vectors


@dataclass(frozen=True)
class PackedAtBuild:
    """`weights` is `[b.., panels, depth, width]`."""

    weights: SSAValue

    def __call__(self, kernel: TileKernel, panel: SSAValue, slot: SSAValue, place: Place) -> Vectors:
        k = kernel.k
        *batches, _, _, _ = kernel.steps(kernel.product.rhs)
        base = kernel.address(place.batches, batches)
        lines = ceil_div(kernel.product.depth, kernel.word)
        at = k.add(base, k.mul(panel, kernel.size("panel_size", lines * (kernel.word * kernel.width))))
        return Vectors(self.weights, kernel.named(at, "w_at"), kernel.word * kernel.width)


@dataclass(frozen=True)
class InPlace:
    """Rows of the right operand are read where they are."""

    rhs: SSAValue

    def __call__(self, kernel: TileKernel, panel: SSAValue, slot: SSAValue, place: Place) -> Vectors:
        *_, depth_step = kernel.steps(kernel.product.rhs)
        return Vectors(self.rhs, _start(kernel, place), depth_step)


@dataclass(frozen=True)
class PackedByWorker:
    """Each worker packs the panel that it is about to use in its part of `memory`, transposed where columns lie apart.

    The part is that of its slot, which no other worker has.
    """

    rhs: SSAValue
    memory: SSAValue

    def __call__(self, kernel: TileKernel, panel: SSAValue, slot: SSAValue, place: Place) -> Vectors:
        k = kernel.k
        start = k.mul(slot, kernel.size("panel_size", kernel.product.depth * kernel.width))
        vectors = Vectors(self.memory, kernel.named(start, "packed_at"), kernel.width)
        if kernel.product.rhs.column == 1:
            kernel.either_edge(place.column, lambda valid: self._copy(kernel, vectors, place, valid))
        else:
            kernel.either_edge(place.column, lambda valid: self._transpose(kernel, vectors, place, valid))
        return vectors

    def _copy(self, kernel: TileKernel, vectors: Vectors, place: Place, valid: SSAValue | None) -> None:
        k = kernel.k
        *_, step = kernel.steps(kernel.product.rhs)
        start = _start(kernel, place)

        def row(number: SSAValue) -> None:
            at = k.add(start, k.mul(number, step))
            shape = (1, kernel.shape.vectors, kernel.lanes)
            tile = k.value(TileLoadOp(self.rhs, at, k.constant(0), shape, valid))
            self._keep(kernel, tile, kernel.named(k.add(vectors.at, k.mul(number, kernel.width)), "to"))

        k.count(k.constant(0), kernel.size("depth", kernel.product.depth), 1, "k", row)

    def _transpose(self, kernel: TileKernel, vectors: Vectors, place: Place, valid: SSAValue | None) -> None:
        """Squares of `lanes` columns, each a row in memory, and as many steps of the sum."""
        k, lanes, depth = kernel.k, kernel.lanes, kernel.product.depth
        *_, column_step, _ = kernel.steps(kernel.product.rhs)
        start, step = _start(kernel, place), k.index(column_step)

        def square(vector: SSAValue, number: SSAValue, left: SSAValue | None) -> None:
            beside = k.mul(vector, lanes)
            at = k.add(k.add(start, k.mul(beside, step)), number)
            rows = None if valid is None else k.sub(valid, beside)
            tile = k.value(TileLoadTransposedOp(self.rhs, at, step, lanes, rows, left))
            to = k.add(k.add(vectors.at, k.mul(number, kernel.width)), beside)
            self._keep(kernel, tile, kernel.named(to, "to"), left)

        def squares(vector: SSAValue) -> None:
            whole = kernel.size("whole_squares", depth // lanes * lanes)
            k.count(k.constant(0), whole, lanes, "k", lambda number: square(vector, number, None))
            if depth % lanes != 0:
                left = kernel.named(k.sub(kernel.size("depth", depth), whole), "left")
                k.when(k.compare("sgt", left, 0), lambda: square(vector, whole, left))

        count = k.constant(kernel.shape.vectors) if valid is None else k.ceil_div(valid, lanes)
        k.count(k.constant(0), count, 1, "vector", squares)

    def _keep(self, kernel: TileKernel, tile: SSAValue, to: SSAValue, rows: SSAValue | None = None) -> None:
        """Rows of a tile into the panel, from the element `to` on."""
        k = kernel.k
        each = TileForEachOp(tile, rows, None)
        element, row, vector, lane = each.body.block.args
        with k.inside(each.body.block):
            strides = [1, kernel.width, kernel.lanes, 1]
            k.insert(StoreOp(element, self.memory, [to, row, vector, lane], strides))
            k.insert(YieldOp(operands=[[]]))
        k.insert(each)


def _start(kernel: TileKernel, place: Place) -> SSAValue:
    """The first element of the right operand that a panel needs."""
    *batches, _, column_step, _ = kernel.steps(kernel.product.rhs)
    start = kernel.address([*place.batches, place.column], [*batches, column_step])
    return kernel.named(start, "b_at")


def packing_bytes(kernel: TileKernel, tasks: Dim) -> Dim:
    """The memory in which workers pack: a panel for each task that is under way at once."""
    return slots_for(tasks) * kernel.product.depth * (kernel.width * 4)
