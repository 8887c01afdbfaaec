"""Whether Winograd's way pays for a convolution, and how it is cut into tasks: a model of cycles, no IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from mlirt.passes.lowering.convolution.cpu_tile_choice import TileShape, choose_tile, cycles
from mlirt.passes.lowering.convolution.cpu_winograd_transforms import SCHEMES, WINDOW, Scheme

# Cycles to transform a patch of one block of channels there and back, for each of its points.
_INPUT, _OUTPUT = 4.5, 3.0
# Cycles to begin and end a tile, and a kernel.
_TILE, _KERNEL = 60, 3000
# Measured: bytes of weights that arrive in a cycle behind the products, from memory and, once used, from the shared
# cache, or from the second-level cache where they stay in it.
_NEAR, _MEMORY_RATE, _SHARED_RATE, _NEAR_RATE = 1_200_000, 3.2, 12, 20
# Bytes in a cycle that one worker writes for another one.
_EXCHANGE_RATE = 5.5
# What the tasks of one worker may make on the way.
_TASK_BYTES = 1_200_000
_MOST_PATCHES = 128
_GROUPS = (1, 2, 4, 8, 16)
# A kernel's tasks are dealt out in so many parts for each worker.
_PARTS = 2
# A little accuracy is lost, so it has to be worth it.
LEAST_GAIN = 1.15


@dataclass(frozen=True)
class Image:
    """`batch` results of `phases` times `rows` x `length` pixels, in blocks of `lanes` channels.

    They are pooled in windows of so many rows and pixels, which must not lie in several patches.
    """

    batch: int
    rows: int
    length: int
    blocks_in: int
    blocks_out: int
    lanes: int
    phases: int = 1
    window: tuple[int, int] = (1, 1)

    def patches(self, scheme: Scheme) -> int:
        """How many patches there are in one result."""
        return self.phases * -(-self.rows // scheme.result) * -(-self.length // scheme.result)


@dataclass(frozen=True)
class Cut:
    """A task is `per_task` patches by `panels_per_group` of `panels` panels; a panel is as wide as the tile `shape`."""

    scheme: Scheme
    per_task: int
    shape: TileShape
    panels: int
    panels_per_group: int
    is_shared: bool = False
    """Whether the patches are transformed for all tasks before the first one begins."""

    @property
    def groups(self) -> int:
        return self.panels // self.panels_per_group


@lru_cache(maxsize=1024)
def choose_cut(image: Image, vector_bits: int, threads: int, least_gain: float = LEAST_GAIN) -> Cut | None:
    """The best cut; None where it is not `least_gain` times as fast as a direct convolution."""
    fitting = [cut for cut in _cuts(image, vector_bits) if _task_bytes(image, cut) <= _TASK_BYTES]
    if not fitting:
        return None
    best = min(fitting, key=lambda cut: winograd_cycles(image, cut, threads))
    gain = direct_cycles(image, vector_bits, threads) / winograd_cycles(image, best, threads)
    return best if gain >= least_gain else None


def _cuts(image: Image, vector_bits: int) -> Iterator[Cut]:
    for scheme in (one for one in SCHEMES if all(one.result % size == 0 for size in image.window)):
        seen: set[tuple[int, TileShape]] = set()
        for wanted in range(1, min(image.patches(scheme), _MOST_PATCHES) + 1):
            shape = choose_tile(wanted, image.blocks_out, vector_bits)
            per_task = -(-wanted // shape.pixels) * shape.pixels
            if (per_task, shape) not in seen:
                seen.add((per_task, shape))
                yield from _groupings(image, scheme, per_task, shape)


def _groupings(image: Image, scheme: Scheme, per_task: int, shape: TileShape) -> Iterator[Cut]:
    panels, pieces = -(-image.blocks_out // shape.blocks), -(-image.patches(scheme) // per_task)
    input_bytes = scheme.points * image.blocks_in * pieces * per_task * image.lanes * 4
    for groups in _GROUPS:
        if panels % groups == 0:
            yield Cut(scheme, per_task, shape, panels, panels // groups)
            if input_bytes <= _NEAR:
                yield Cut(scheme, per_task, shape, panels, panels // groups, is_shared=True)


def _task_bytes(image: Image, cut: Cut) -> int:
    """What a task makes on the way: its transformed input, and sums of products."""
    blocks = image.blocks_in + cut.panels_per_group * cut.shape.blocks
    return cut.scheme.points * blocks * cut.per_task * image.lanes * 4


def winograd_cycles(image: Image, cut: Cut, threads: int) -> float:
    """Cycles until the last worker is done."""
    depth, points = image.blocks_in * image.lanes, cut.scheme.points
    pieces = image.batch * -(-image.patches(cut.scheme) // cut.per_task)
    tasks, parts = pieces * cut.groups, threads * _PARTS
    # Parts are taken as they come: only the size of the last one matters.
    turns = max(-(-tasks // parts) + (_PARTS - 1) * (tasks // parts), tasks / threads)
    tiles = points * cut.panels_per_group * (cut.per_task // cut.shape.pixels)
    weights = points * cut.panels_per_group * depth * cut.shape.blocks * image.lanes * 4
    products = max(tiles * (depth * cycles(cut.shape) + _TILE), weights / _NEAR_RATE)
    blocks_out = min(cut.panels_per_group * cut.shape.blocks, image.blocks_out)
    output = _OUTPUT * cut.per_task * points * blocks_out
    total = turns * output + max(turns * products, _weight_cycles(weights, min(turns, cut.groups), turns))
    piece = _INPUT * cut.per_task * points * image.blocks_in
    if cut.is_shared:
        piece += points * depth * cut.per_task * 4 / _EXCHANGE_RATE
        return total + piece * pieces / threads + _KERNEL
    # Every part begins with a piece of its own, even where another one has it too.
    return total + piece * max(turns / cut.groups, min(_PARTS, turns))


def _weight_cycles(group: int, groups: float, reads: float) -> float:
    """To read `groups` groups of weights of so many bytes once, and some again until there are `reads` in all."""
    again = 0 if group * groups <= _NEAR else (reads - groups) * group / _SHARED_RATE
    return groups * group / _MEMORY_RATE + again


def direct_cycles(image: Image, vector_bits: int, threads: int) -> float:
    """Cycles of the direct convolution."""
    shape = choose_tile(image.length, image.blocks_out, vector_bits)
    taps, depth = WINDOW * WINDOW, image.blocks_in * image.lanes
    panels, tiles = -(-image.blocks_out // shape.blocks), -(-image.length // shape.pixels)
    products = image.batch * image.rows * tiles * panels * (taps * depth * cycles(shape) + _TILE)
    weights = taps * depth * image.blocks_out * image.lanes * 4
    return max(products, _weight_cycles(weights, 1, 1)) / threads
