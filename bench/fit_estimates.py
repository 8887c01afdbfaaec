"""Fits the estimates of products on GPUs to measured times, and says what is lost by choosing with them.

    python bench/tactic_times.py times.json
    python bench/fit_estimates.py times.json [--family warpgroups|tiles] [--rounds 6] [--device h200] [-o mine.toml]

`warpgroups` and `tiles` are tables of a device file (dialects/devices/): the numbers of kernels/lib/cuda/warpgroups/
group_choice.py, and those of the tiles in single precision in kernels/lib/cuda/tiles/shape.py. They begin as those of
the GPU that is here, or of a device that is named, and are changed one after the other, each by steps that become
smaller, as long as the errors become smaller: the squares of the logarithms of estimated over measured times, and,
counted ten times, the time that is lost where the tactic with the least estimate is not the fastest. The same times
give the same numbers, which are printed as a device file, or written to one: `mlirt.compile(.., device="mine.toml")`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src")]

from mlirt.builder.host import cuda_target  # noqa: E402
from mlirt.builder.tactics.sites import find_sites  # noqa: E402
from mlirt.dialects.context import RtContext  # noqa: E402
from mlirt.dialects.device_files import gpu_device  # noqa: E402
from mlirt.dialects.gpu_device import GpuDevice, WarpgroupEstimates  # noqa: E402
from mlirt.dialects.registry import register_dialects  # noqa: E402
from mlirt.dialects.source_parser import parse_source  # noqa: E402
from mlirt.kernels.lib.cuda.tiles import shape as tiles  # noqa: E402
from mlirt.kernels.lib.cuda.warpgroups import group_choice  # noqa: E402
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile  # noqa: E402

_STEPS = (0.2, 0.1, 0.05, 0.02)
_LOSS_COUNTS = 10.0


class Family:
    """Numbers of a device that estimates of some tactics are made from; they are changed one by one."""

    table: str
    """The table of a device file that they stand in."""
    watched: tuple[type, str]
    """The class and the method that estimates a tactic of the family."""

    def __init__(self, device: GpuDevice) -> None:
        self.device = device

    def get(self, name: str) -> float:
        """A number, such as `latency` or `float_64x64.busy`."""
        where, _, field = name.rpartition(".")
        record = getattr(self.device, self.table)
        return getattr(record.shapes[where], field) if where else getattr(record, name)

    def set(self, name: str, value: float) -> None:
        """Change a number."""
        where, _, field = name.rpartition(".")
        record = getattr(self.device, self.table)
        if where:
            changes: dict[str, Any] = {
                "shapes": {**record.shapes, where: replace(record.shapes[where], **{field: value})}
            }
        else:
            changes = {name: value}
        changed: dict[str, Any] = {self.table: replace(record, **changes)}
        self.device = replace(self.device, **changed)

    @property
    def names(self) -> tuple[str, ...]:
        """The numbers that are fitted."""
        raise NotImplementedError

    def fits(self, choice: Any) -> bool:
        """Whether a choice is one that these numbers are for."""
        raise NotImplementedError

    def estimate(self, work: Any, tactic: str) -> float | None:
        """The microseconds of a tactic; None for one of another family."""
        raise NotImplementedError

    def file(self, like: str) -> str:
        """A device file: `like` another one, with these numbers."""
        heads: dict[str, list[str]] = {self.table: []}
        for name in self.names:
            where, _, field = name.rpartition(".")
            heads.setdefault(f"{self.table}.shapes.{where}" if where else self.table, []).append(
                f"{field} = {self.get(name):.4g}"
            )
        tables = "".join("".join(f"{line}\n" for line in (f"\n[{head}]", *lines)) for head, lines in heads.items())
        name, *changes = like.split("+")
        figures = "".join(f"{change.replace('=', ' = ')}\n" for change in changes)
        return f'kind = "gpu"\nfull_name = "{self.device.full_name}"\nlike = "{name}"\n{figures}{tables}'


class Warpgroups(Family):
    """Products by warpgroups."""

    table = "warpgroups"
    watched = (group_choice.GroupWork, "cycles")

    @property
    def names(self) -> tuple[str, ...]:
        """All but the length of a cycle."""
        return tuple(one.name for one in fields(WarpgroupEstimates) if one.name != "cycles_per_microsecond")

    def fits(self, choice: Any) -> bool:
        """All."""
        return True

    def estimate(self, work: Any, tactic: str) -> float | None:
        """The microseconds of a tactic; None for one of another family."""
        tile = GroupTile.named(tactic.rpartition(":")[2]) if "wgmma" in tactic else None
        if tile is None:
            return None
        return replace(work, device=self.device).cycles(tile) / self.device.warpgroups.cycles_per_microsecond


class Tiles(Family):
    """Tiles in single precision."""

    table = "tiles"
    watched = (tiles.Work, "microseconds")

    @property
    def names(self) -> tuple[str, ...]:
        """What a launch takes, parts and single loads, and the times of each shape."""
        times = [f"{shape.entry}.{field}" for shape in tiles.SINGLE for field in ("floor", "busy", "start")]
        return ("launch", "parts_per_cycle", "scattered_load", *times)

    def fits(self, choice: Any) -> bool:
        """Those of single precision."""
        return replace(choice, parts=1) in tiles.SINGLE

    def estimate(self, work: Any, tactic: str) -> float | None:
        """The microseconds of a tactic; None for one of another family."""
        file, _, name = tactic.partition(":")
        known = tiles.choice_named(tiles.SINGLE, name)
        if known is None or file not in ("cuda_tiles", "cuda_implicit_gemm"):
            return None
        return replace(work, device=self.device).microseconds(known)


FAMILIES: dict[str, type[Family]] = {"warpgroups": Warpgroups, "tiles": Tiles}


@dataclass(frozen=True)
class Layer:
    """A layer's measured times, its work for the family, and the estimates of its other tactics, in microseconds."""

    times: Mapping[str, float]
    work: object
    others: Mapping[str, float]

    def estimate(self, family: Family, tactic: str) -> float:
        """Of a tactic, with the constants as they are now."""
        found = family.estimate(self.work, tactic)
        return self.others.get(tactic, math.inf) if found is None else found

    def lost(self, family: Family) -> float:
        """How much longer than the fastest tactic the one with the least estimate takes, as a part."""
        chosen = min(self.times, key=lambda tactic: self.estimate(family, tactic))
        return self.times[chosen] / min(self.times.values()) - 1

    def errors(self, family: Family) -> list[float]:
        """Logarithms of estimated over measured times, of the tactics of the family."""
        found = {tactic: family.estimate(self.work, tactic) for tactic in self.times}
        return [math.log(one / self.times[tactic]) for tactic, one in found.items() if one is not None]


def read(path: Path, family: Family) -> list[Layer]:
    """The layers that the family can compute."""
    layers: list[Layer] = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        seen: list[object] = []
        candidates = _candidates(row["network"], family, seen)
        times = {name: time for name, time in row["microseconds"].items() if name in candidates}
        if seen and any(family.estimate(seen[0], name) is not None for name in times):
            layers.append(Layer(times, seen[0], candidates))
    return layers


def _candidates(text: str, family: Family, seen: list[object]) -> dict[str, float]:
    """The estimates of a layer's tactics; notes the work that the family estimates."""
    owner, method = family.watched
    plain = vars(owner)[method]

    def noted(work: object, tile: object) -> float:
        if family.fits(tile):
            seen.append(work)
        return plain(work, tile)

    context = RtContext()
    register_dialects(context)
    module, _ = parse_source(context, text, "layer.mlir")
    with mock.patch.object(owner, method, noted):
        (site,) = find_sites(module, context, replace(cuda_target(), device="", arch=family.device.arch))
    return {one.name: math.inf if one.cost is None else one.cost for one in site.candidates}


def summary(layers: list[Layer], family: Family) -> str:
    """What the constants are worth."""
    errors = [abs(error) for layer in layers for error in layer.errors(family)]
    lost = sum(layer.lost(family) for layer in layers) / len(layers)
    return f"{len(layers)} layers, {len(errors)} times: mean error {sum(errors) / len(errors):.1%}, lost {lost:.1%}"


def _badness(layers: list[Layer], family: Family) -> float:
    errors = [error for layer in layers for error in layer.errors(family)]
    squares = sum(error * error for error in errors) / len(errors)
    return squares + _LOSS_COUNTS * sum(layer.lost(family) ** 2 for layer in layers) / len(layers)


def fit(layers: list[Layer], family: Family, rounds: int) -> None:
    """Change the constants of the family in place."""
    best = _badness(layers, family)
    for size in _STEPS:
        for _ in range(rounds):
            before = best
            for name in family.names:
                kept = family.get(name)
                for factor in (1 + size, 1 / (1 + size)):
                    family.set(name, kept * factor)
                    found = _badness(layers, family)
                    if found < best:
                        best, kept = found, kept * factor
                        break
                family.set(name, kept)
            if before - best < 1e-4 * before:
                break


def main() -> None:
    """Read, fit, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", type=Path)
    parser.add_argument("--family", choices=sorted(FAMILIES), default="warpgroups")
    parser.add_argument("--rounds", type=int, default=6, help="with each size of steps, at most (default: %(default)s)")
    parser.add_argument(
        "--device", help="the device whose numbers are changed (default: the GPU that is here, or h200)"
    )
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help="the device file to write")
    options = parser.parse_args()
    target = cuda_target()
    like = options.device or target.device or target.gpu.name
    family = FAMILIES[options.family](gpu_device(like))
    layers = read(options.times, family)
    print(f"as it is: {summary(layers, family)}")
    fit(layers, family, options.rounds)
    print(f"fitted: {summary(layers, family)}")
    if options.output is None:
        print(family.file(like), end="")
    else:
        options.output.write_text(family.file(like), encoding="utf-8")


if __name__ == "__main__":
    main()
