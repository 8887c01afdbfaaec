"""Whether Winograd's way pays for a convolution, and how it is cut into tasks: a model of cycles, no IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from mlirt.dialects.cpu_device import CpuDevice, WinogradCosts
from mlirt.kernels.convolution.cpu.tile_choice import choose_tile, cycles
from mlirt.kernels.convolution.cpu.winograd_transforms import SCHEMES, WINDOW, Scheme
from mlirt.kernels.lib.tile import RegisterTile

_MAX_PATCHES = 128
_GROUPS = (1, 2, 4, 8, 16)
# A kernel's tasks are dealt out in so many parts for each worker.
_PARTS = 2
# A little accuracy is lost, so it has to be worth it.
MIN_GAIN = 1.15


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
    shape: RegisterTile
    panels: int
    panels_per_group: int
    is_shared: bool = False
    """Whether the patches are transformed for all tasks before the first one begins."""

    @property
    def groups(self) -> int:
        return self.panels // self.panels_per_group


def choose_cut(image: Image, cpu: CpuDevice, threads: int, least_gain: float = MIN_GAIN) -> Cut | None:
    """The best cut; None where it is not `least_gain` times as fast as a direct convolution."""
    best = _best_cut(image, cpu, threads)
    return best if best is not None and gain_of(image, best, cpu, threads) >= least_gain else None


@lru_cache(maxsize=1024)
def _best_cut(image: Image, cpu: CpuDevice, threads: int) -> Cut | None:
    fitting = [cut for cut in _cuts(image, cpu) if _task_bytes(image, cut) <= cpu.winograd.task_bytes]
    return min(fitting, key=lambda cut: winograd_cycles(image, cut, threads, cpu), default=None)


def gain_of(image: Image, cut: Cut, cpu: CpuDevice, threads: int) -> float:
    """How many times as fast as a direct convolution a cut is."""
    return direct_cycles(image, cpu, threads) / winograd_cycles(image, cut, threads, cpu)


def _cuts(image: Image, cpu: CpuDevice) -> Iterator[Cut]:
    for scheme in (one for one in SCHEMES if all(one.result % size == 0 for size in image.window)):
        seen: set[tuple[int, RegisterTile]] = set()
        for wanted in range(1, min(image.patches(scheme), _MAX_PATCHES) + 1):
            shape = choose_tile(wanted, image.blocks_out, cpu)
            per_task = -(-wanted // shape.pixels) * shape.pixels
            if (per_task, shape) not in seen:
                seen.add((per_task, shape))
                yield from _groupings(image, scheme, per_task, shape, cpu.winograd)


def _groupings(image: Image, scheme: Scheme, per_task: int, shape: RegisterTile, costs: WinogradCosts) -> Iterator[Cut]:
    panels, pieces = -(-image.blocks_out // shape.blocks), -(-image.patches(scheme) // per_task)
    input_bytes = scheme.points * image.blocks_in * pieces * per_task * image.lanes * 4
    for groups in _GROUPS:
        if panels % groups == 0:
            yield Cut(scheme, per_task, shape, panels, panels // groups)
            if input_bytes <= costs.near_bytes:
                yield Cut(scheme, per_task, shape, panels, panels // groups, is_shared=True)


def _task_bytes(image: Image, cut: Cut) -> int:
    """What a task makes on the way: its transformed input, and sums of products."""
    blocks = image.blocks_in + cut.panels_per_group * cut.shape.blocks
    return cut.scheme.points * blocks * cut.per_task * image.lanes * 4


def winograd_cycles(image: Image, cut: Cut, threads: int, cpu: CpuDevice) -> float:
    """Cycles until the last worker is done."""
    costs = cpu.winograd
    depth, points = image.blocks_in * image.lanes, cut.scheme.points
    pieces = image.batch * -(-image.patches(cut.scheme) // cut.per_task)
    tasks, parts = pieces * cut.groups, threads * _PARTS
    # Parts are taken as they come: only the size of the last one matters.
    waves = max(-(-tasks // parts) + (_PARTS - 1) * (tasks // parts), tasks / threads)
    tiles = points * cut.panels_per_group * (cut.per_task // cut.shape.pixels)
    weights = points * cut.panels_per_group * depth * cut.shape.blocks * image.lanes * 4
    products = max(tiles * (depth * cycles(cut.shape, cpu) + costs.tile), weights / costs.near_rate)
    blocks_out = min(cut.panels_per_group * cut.shape.blocks, image.blocks_out)
    output = costs.output * cut.per_task * points * blocks_out
    total = waves * output + max(waves * products, _weight_cycles(weights, min(waves, cut.groups), waves, costs))
    piece = costs.input * cut.per_task * points * image.blocks_in
    if cut.is_shared:
        piece += points * depth * cut.per_task * 4 / costs.exchange_rate
        return total + piece * pieces / threads + costs.kernel
    # Every part begins with a piece of its own, even where another one has it too.
    return total + piece * max(waves / cut.groups, min(_PARTS, waves))


def _weight_cycles(group: int, groups: float, reads: float, costs: WinogradCosts) -> float:
    """To read `groups` groups of weights of so many bytes once, and some again until there are `reads` in all."""
    again = 0 if group * groups <= costs.near_bytes else (reads - groups) * group / costs.shared_rate
    return groups * group / costs.memory_rate + again


def direct_cycles(image: Image, cpu: CpuDevice, threads: int) -> float:
    """Cycles of the direct convolution."""
    shape = choose_tile(image.length, image.blocks_out, cpu)
    taps, depth = WINDOW * WINDOW, image.blocks_in * image.lanes
    panels, tiles = -(-image.blocks_out // shape.blocks), -(-image.length // shape.pixels)
    products = image.batch * image.rows * tiles * panels * (taps * depth * cycles(shape, cpu) + cpu.winograd.tile)
    weights = taps * depth * image.blocks_out * image.lanes * 4
    return max(products, _weight_cycles(weights, 1, 1, cpu.winograd)) / threads
