"""Convolutions of planes by warpgroups: threads bring pixels to shared memory with their channels side by side.

Output channels are rows of the product and pixels its columns, so that results are runs of planes. A block takes tile
after tile:

    warp           has the weights of each position of the window copied to a ring of stages
    other warps    read planes and write the lines of a box, one for each slab of channels, to another ring
    warpgroups     multiply, for each position of the window, its weights with the lines some further in the same box;
                   where there is room for all boxes of a tile, one multiplies while the other one writes results

Matrix units see what threads have written behind a fence of each, and the arrival of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.kernel.simt import MAX_ALIGNMENT, WARP
from mlirt.dialects.kernel.warpgroup import GROUP_LINES, LINE, ROWS, WARPGROUP
from mlirt.dialects.symbolic import Dim, minimum, product
from mlirt.dialects.symbolic import ceil_div as dim_ceil_div
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.group_product import fits_narrow
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import Work
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.pipeline import leads_warpgroup
from mlirt.kernels.lib.cuda.warpgroups.plane_box_tile import CONSUMERS, FILLERS, LOADED, PIECE, PRODUCERS, PlaneBoxTile
from mlirt.kernels.lib.cuda.warpgroups.plane_boxes import PlaneAxis, PlaneBox
from mlirt.kernels.lib.cuda.warpgroups.plane_results import PlaneResults
from mlirt.kernels.lib.cuda.warpgroups.sources import MatrixSource, Slot
from mlirt.kernels.lib.language import Index, Value, build, kernel
from mlirt.kernels.lib.language.hopper_words import (
    SharedTile,
    each_warpgroup,
    fence_async,
    fence_mbarriers,
    launch_dependents,
    mbarriers,
    wait_dependency,
    warp_uniform,
    wgmma,
    wgmma_result,
    wgmma_wait,
)
from mlirt.kernels.lib.language.simt_words import (
    Access,
    block_id,
    count_where,
    element_at,
    fragment,
    grid_size,
    load_fragment,
    shared_memory,
    store_fragment,
    sync_threads,
    thread_id,
    zeros,
)
from mlirt.kernels.lib.language.words import ceil_div, extent, is_inside, place, size, split, static_range

_FEW_PRODUCTS = 32  # of a box


@dataclass(frozen=True)
class Planes:
    """The input of a convolution: elements from a pointer on, with the steps of image, channel, depth and row."""

    pointer: SSAValue
    steps: tuple[Dim, ...]
    images: Dim
    channels: int
    deep: PlaneAxis


class PlaneBoxProduct:
    """One kernel. A box, or slab, has some channels of one plane along the depth of a window."""

    def __init__(
        self,
        k: KernelBuilder,
        tile: PlaneBoxTile,
        box: PlaneBox,
        planes: Planes,
        rows: int,
        kind: Kind,
        weights: MatrixSource,
        results: PlaneResults,
    ) -> None:
        self.k, self.tile, self.box, self.planes, self.kind = k, tile, box, planes, kind
        self.stays = False
        self.weights, self.results = weights, results
        self.depth = tile.line // byte_width(kind.element)
        self.slabs = -(-planes.channels // self.depth) * planes.deep.taps
        self.apart = box.across.apart
        self.places = (
            planes.images,
            planes.deep.places,
            dim_ceil_div(box.down.places, tile.height),
            dim_ceil_div(box.across.places, tile.columns),
            planes.deep.apart,
            box.down.apart,
            -(-rows // tile.rows),
        )
        self.parts = planes.deep.apart * box.down.apart * -(-rows // tile.rows)
        self.tiles = product(self.places)
        self.stage, self.kept = box.lines * self.depth, self.apart * ROWS * self.depth
        self.steps = self.slabs * box.taps

    def build(self, layer: Operation, *, stays: bool) -> None:
        """Write the kernel and launch it before `layer`; with `stays` a block has all its weights in shared memory."""
        k, self.stays = self.k, stays
        build(k, self._kernel)
        k.function.attributes["dependent_launch"] = UnitAttr()
        k.function.attributes["architecture"] = StringAttr(k.lowering.target.arch)
        if fits_narrow(k, layer, self.tiles * self.box.lines * self.depth):
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)
        processors = k.lowering.target.gpu.processors
        if self.stays:  # all tiles of a block have the same output channels and remainders
            processors -= processors % self.parts
        blocks = minimum(self.tiles, processors)
        k.finish(layer, grid=(blocks, 1, 1), block=[(CONSUMERS + PRODUCERS) * WARPGROUP])

    @kernel
    def _kernel(self) -> None:
        tile, thread = self.tile, thread_id()
        boxes = shared_memory("boxes", tile.stages * self.stage, self.kind.element, MAX_ALIGNMENT)
        weights = shared_memory("weights", tile.kept * self.kept, self.kind.element, MAX_ALIGNMENT)
        full, empty = mbarriers("full", tile.stages), mbarriers("empty", tile.stages)
        count = 1 if self.stays else tile.kept
        ready, free = mbarriers("ready", count), mbarriers("free", count)
        order = mbarriers("order", CONSUMERS)
        self.results.allocate()
        if thread == 0:
            for stage in range(tile.stages):
                full[stage].init(FILLERS)
                empty[stage].init(CONSUMERS)
            for stage in range(count):
                ready[stage].init(1)
                free[stage].init(1)
            for group in range(CONSUMERS):
                order[group].init(1)
            fence_mbarriers()
        sync_threads()
        launch_dependents()

        block, blocks = block_id(), grid_size()
        count = ceil_div(size("tiles", self.tiles) - block, blocks)
        group = warp_uniform(thread // WARPGROUP)
        if group >= CONSUMERS:
            producer = thread - CONSUMERS * WARPGROUP
            warp = warp_uniform(producer // WARP)
            with each_warpgroup(threads=WARP):
                if warp == 0:
                    if producer == 0:
                        if self.stays:
                            first = self._first_row(block)
                            ready[0].expect(tile.kept * self.apart * ROWS * tile.line)
                            for kept in range(tile.kept):
                                row = first + kept // self.steps * (self.apart * ROWS)
                                slot = Slot(SharedTile(weights, kept * self.kept), ready[0])
                                self._load_weights(row, kept % self.steps, slot)
                        else:
                            stage, parity = place(0), place(1)
                            for i in range(count):
                                first = self._first_row(block + i * blocks)
                                for turn in range(CONSUMERS * self.steps):
                                    of, step = self._reader(turn)
                                    row = first + of % tile.across * (self.apart * ROWS)
                                    free[stage].wait(parity)
                                    ready[stage].expect(self.apart * ROWS * tile.line)
                                    slot = Slot(SharedTile(weights, stage * self.kept), ready[stage])
                                    self._load_weights(row, step, slot)
                                    stage, parity = _advance(stage, parity, tile.kept)
                else:
                    stage, parity = place(0), place(1)
                    wait_dependency()
                    for i in range(count):
                        image, *spatial, _ = split(block + i * blocks, self.places)
                        for slab in range(self.slabs):
                            empty[stage].wait(parity)
                            channel, z = slab // self.planes.deep.taps, slab % self.planes.deep.taps
                            at = self._corner(spatial, z)
                            self._fill(boxes, stage * self.stage, producer - WARP, image, channel * self.depth, at)
                            fence_async()
                            full[stage].arrive()
                            stage, parity = _advance(stage, parity, tile.stages)
        else:
            wait_dependency()
            with each_warpgroup():
                stage, parity = place(0), place(0)
                leads = leads_warpgroup(thread)
                own, first = group % tile.across, group // tile.across * tile.own_height
                if self.stays:
                    ready[0].wait(0)
                for i in range(count):
                    image, *spatial, part = split(block + i * blocks, self.places)
                    deep, y, x, inner, row = spatial
                    work = Work(place(part * tile.rows), place(x * (tile.columns * self.apart)), place(0))
                    deep = deep * self.planes.deep.apart + inner
                    lines = [
                        self.results.begin(
                            thread,
                            own,
                            work,
                            [image, deep, (y * tile.height + first + number) * self.box.down.apart + row],
                        )
                        for number in static_range(tile.own_height)
                    ]
                    totals = [
                        zeros(self.kind.accumulator_type, tile.columns // 2)
                        for _ in static_range(tile.own_height * self.apart)
                    ]
                    if self.takes_turns:
                        # The other one has begun all its products: it writes results while this one multiplies.
                        # Barriers tell phases apart by parity: nobody may wait for the phase after the next one.
                        order[group].wait((i + 1 + group) % 2)
                    for slab in range(self.slabs):
                        full[stage].wait(parity)
                        previous = place(0)
                        if self.stays:
                            for tap in self._taps():
                                kept = own * self.steps + slab * self.box.taps + tap
                                b = stage * self.stage + self._line(first, tap) * self.depth
                                totals = self._add_all(totals, weights, kept * self.kept, boxes, b)
                        else:
                            for tap in range(self.box.taps):
                                turn = self._turn(i, group, slab * self.box.taps + tap)
                                kept = turn % tile.kept
                                ready[kept].wait(turn // tile.kept % 2)
                                b = stage * self.stage + self._line(first, tap) * self.depth
                                totals = self._add_all(totals, weights, kept * self.kept, boxes, b)
                                wgmma_wait(pending=tile.own_height * self.apart)
                                if leads and tap > 0:
                                    free[previous].arrive()
                                previous = kept
                        if self.takes_turns and leads and slab == self.slabs - 1:
                            order[1 - group].arrive()
                        wgmma_wait(pending=0)
                        if leads:
                            if not self.stays:
                                free[previous].arrive()
                            empty[stage].arrive()
                        stage, parity = _advance(stage, parity, tile.stages)
                    totals = [wgmma_result(total) for total in totals]
                    for number in static_range(tile.own_height):
                        self.results.write(totals[number * self.apart : (number + 1) * self.apart], lines[number])
                    fence_async()  # in machine code nobody tells the results in shared memory from the boxes

    @kernel
    def _first_row(self, tile: Value) -> Value:
        """The first line of the weights of a tile."""
        *_, deep, y, part = split(tile, self.places)
        number = (deep * self.places[-2] + y) * self.places[-1] + part
        return number * (self.tile.across * self.apart * ROWS)

    @kernel
    def _load_weights(self, row: Value, step: Index, slot: Slot) -> None:
        self.weights.start_tile(place(row), [])
        self.weights.load(step, slot)

    @kernel
    def _taps(self) -> Sequence[int]:
        """Positions of a window; few are not a loop, so that their places are numbers in the code."""
        products = self.box.taps * self.tile.own_height * self.apart
        return static_range(self.box.taps) if products <= _FEW_PRODUCTS else range(self.box.taps)

    @property
    def takes_turns(self) -> bool:
        """Whether warpgroups multiply one after the other: the boxes of a tile have to be there for both."""
        return self.slabs <= self.tile.stages

    @kernel
    def _turn(self, tile: Index, group: Value, step: Index) -> Value:
        """The number of a step of a warpgroup among all of a block, whose weights are copied in that order."""
        if self.takes_turns:
            return (tile * CONSUMERS + group) * self.steps + step
        return (tile * self.steps + step) * CONSUMERS + group

    @kernel
    def _reader(self, turn: Index) -> tuple[Index, Index]:
        """The warpgroup that has a turn of a tile, and its step."""
        if self.takes_turns:
            return turn // self.steps, turn % self.steps
        return turn % CONSUMERS, turn // CONSUMERS

    @kernel
    def _add_all(self, totals: Sequence[Value], weights: Value, a: Value, boxes: Value, b: Value) -> list[Value]:
        """The sums of all rows of a warpgroup with the products of a position of the window."""
        return [
            self._add(totals[number], weights, a, boxes, b, number)
            for number in static_range(self.tile.own_height * self.apart)
        ]

    @kernel
    def _add(self, total: Value, weights: Value, a: Value, boxes: Value, b: Value, number: int) -> Value:
        """The sums of a row of the tile and a remainder with the products of a position of the window."""
        tile, box = self.tile, self.box
        row, remainder = number // self.apart, number % self.apart
        line = row * (box.down.stride * box.pitch) + box.across.further(remainder)
        left = SharedTile(weights, a + remainder * (ROWS * self.depth))
        right = SharedTile(boxes, b + line * self.depth)
        return wgmma(self.kind.mma, total, left, right, tile.columns, tile.line, columns_step=GROUP_LINES)

    @kernel
    def _line(self, row: Value, tap: Index) -> Value:
        """The line of the first pixel of a row of the tile at a position of the window."""
        box, across = self.box, self.box.across
        down, along = tap // across.taps, tap % across.taps * across.dilation + box.lead
        line = (row * box.down.stride + down * box.down.dilation) * box.pitch
        if across.stride == 1:
            return line + along
        return line + along % across.stride * box.part + along // across.stride

    @kernel
    def _corner(self, spatial: Sequence[Value], tap: Index) -> list[Value]:
        """The first pixel of a box, in a plane of a window: may be before that of the image."""
        box, axis = self.box, self.planes.deep
        deep, y, x, inner, row = spatial
        return [
            deep * axis.stride + tap * axis.dilation + _further(axis, inner) - axis.pre,
            y * (self.tile.height * box.down.stride) + _further(box.down, row) - box.down.pre,
            x * (self.tile.columns * box.across.stride) - (box.across.pre + box.lead),
        ]

    @kernel
    def _fill(
        self, boxes: Value, start: Index, thread: Value, image: Value, channel: Index, at: Sequence[Value]
    ) -> None:
        """Lines of a slab of channels from one on; zeros outside of the image, and behind the last channel."""
        box, pieces = self.box, self.depth // PIECE
        places, each = pieces * box.rows * box.runs, LOADED * FILLERS
        for step in range(-(-places // each)):
            numbers = [step * each + part * FILLERS + thread for part in static_range(LOADED)]
            loaded = [self._load(number, image, channel, at, places % each == 0) for number in numbers]
            for part in static_range(LOADED):
                piece, row, run = split(numbers[part], (pieces, box.rows, box.runs))
                exists = True if places % each == 0 else numbers[part] < places
                for pixel in static_range(box.together):
                    line = self._line_of(row, run * box.together + pixel)
                    values = fragment([element_at(one, pixel) for one in loaded[part]])
                    index = start + line * self.depth + self._swizzled(piece, line) * PIECE
                    store_fragment(
                        values, boxes, index, Access(static_range(PIECE), valid=count_where(exists, PIECE), wide=True)
                    )

    @kernel
    def _line_of(self, row: Value, pixel: Value) -> Value:
        """The line of a pixel of a row of the box."""
        stride, line = self.box.across.stride, row * self.box.pitch
        if stride == 1:
            return line + pixel
        return line + pixel % stride * self.box.part + pixel // stride

    @kernel
    def _swizzled(self, piece: Value, line: Value) -> Value:
        """Where a piece of 16 bytes lies in its line."""
        return piece ^ (line % 8 if self.tile.line == LINE else line // 2 % 4)

    @kernel
    def _load(self, number: Value, image: Value, channel: Index, at: Sequence[Value], whole: bool) -> list[Value]:
        """Neighbouring pixels of the channels of a place of a box."""
        box, planes = self.box, self.planes
        piece, row, run = split(number, (self.depth // PIECE, box.rows, box.runs))
        z, y, x = at[0], at[1] + row, at[2] + run * box.together
        inside = is_inside(y, extent(box.down.length)) and is_inside(x, extent(box.across.length))
        if planes.deep != PlaneAxis(1, 1, 1):
            inside = inside and is_inside(z, extent(planes.deep.length))
        if not whole:
            inside = inside and number < self.depth // PIECE * box.rows * box.runs
        first = channel + piece * PIECE
        images, channels, depths, rows = (self.k.size(step) for step in planes.steps)
        index = image * images + first * channels + z * depths + y * rows + x
        found = list[Value]()
        for own in static_range(PIECE):
            exists = inside if planes.channels % self.depth == 0 else inside and first + own < planes.channels
            access = Access(static_range(box.together), valid=count_where(exists, box.together), wide=True)
            found.append(load_fragment(planes.pointer, index + channels * own, access))
        return found


@kernel
def _further(axis: PlaneAxis, remainder: Value) -> Value:
    """Pixels that the window of a remainder begins further."""
    return place(0) if axis.apart == 1 else (remainder + axis.cut) // axis.apart


@kernel
def _advance(stage: Index, parity: Index, count: int) -> tuple[Index, Index]:
    """The stage after this one; behind the last one comes the first one with the other parity."""
    wraps = stage == count - 1
    return 0 if wraps else stage + 1, 1 - parity if wraps else parity


__all__ = ["PlaneBoxProduct", "Planes"]
