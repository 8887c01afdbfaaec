"""Fits the estimates of products on GPUs to measured times, and says what is lost by choosing with them.

    python bench/tactic_times.py times.json
    python bench/fit_estimates.py times.json [--family warpgroups|tiles] [--rounds 6]

`warpgroups` are the constants of passes/lowering/warpgroups/group_choice.py, `tiles` those of the tiles in single
precision in passes/lowering/tiles/shape.py. They are changed one after the other, each by steps that become smaller, as
long as the errors become smaller: the squares of the logarithms of estimated over measured times, and, counted ten
times, the time that is lost where the tactic with the least estimate is not the fastest. The same times give the same
constants, which are printed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src")]

from mlirt.builder.host import cuda_target  # noqa: E402
from mlirt.builder.tactics.sites import find_sites  # noqa: E402
from mlirt.dialects.context import RtContext  # noqa: E402
from mlirt.dialects.registry import register_dialects  # noqa: E402
from mlirt.dialects.source_parser import parse_source  # noqa: E402
from mlirt.passes.lowering.tiles import shape as tiles  # noqa: E402
from mlirt.passes.lowering.warpgroups import group_choice  # noqa: E402
from mlirt.passes.lowering.warpgroups.group_tile import GroupTile  # noqa: E402

_STEPS = (0.2, 0.1, 0.05, 0.02)
_LOSS_COUNTS = 10.0


class Warpgroups:
    """Products by warpgroups: the constants are those of the module."""

    watched = (group_choice.GroupWork, "cycles")
    names = (
        *("_PRODUCTS", "_READ_BYTES", "_NARROW", "_LATENCY", "_MOVED_BYTES", "_RESULT", "_OPERATION", "_START"),
        *("_STAYING", "_TILE", "_TURN_STEP", "_NO_OVERLAP", "_EXCHANGE", "_PARTNER"),
    )

    def get(self, name: str) -> float:
        """A constant."""
        return vars(group_choice)[name]

    def set(self, name: str, value: float) -> None:
        """Change a constant."""
        setattr(group_choice, name, value)

    def fits(self, choice: Any) -> bool:
        """Whether a choice is one that these constants are for."""
        return True

    def estimate(self, work: Any, tactic: str) -> float | None:
        """The microseconds of a tactic; None for one of another family."""
        tile = GroupTile.named(tactic.rpartition(":")[2]) if "wgmma" in tactic else None
        return None if tile is None else work.cycles(tile) / vars(group_choice)["_CYCLES_PER_MICROSECOND"]


class Tiles:
    """Tiles in single precision: constants of the module, and fields of the shapes, such as `64x64.busy`."""

    watched = (tiles.Work, "microseconds")
    names = (
        *("_LAUNCH", "_PARTS_PER_CYCLE", "_SCATTERED_LOAD"),
        *(f"{one.rows}x{one.columns}.{field}" for one in tiles.MULTIPLY_ADD for field in ("floor", "busy", "start")),
    )

    def __init__(self) -> None:
        self.shapes = {f"{one.rows}x{one.columns}": one for one in tiles.MULTIPLY_ADD}

    def get(self, name: str) -> float:
        """A constant."""
        where, _, field = name.partition(".")
        return getattr(self.shapes[where], field) if field else vars(tiles)[name]

    def set(self, name: str, value: float) -> None:
        """Change a constant."""
        where, _, field = name.partition(".")
        if field:
            self.shapes[where] = replace(self.shapes[where], **{field: value})
        else:
            setattr(tiles, name, value)

    def fits(self, choice: Any) -> bool:
        """Whether a choice is one that these constants are for."""
        return choice.shape in tiles.MULTIPLY_ADD

    def estimate(self, work: Any, tactic: str) -> float | None:
        """The microseconds of a tactic; None for one of another family."""
        file, _, name = tactic.partition(":")
        known = tiles.choice_named(tuple(self.shapes.values()), name)
        return work.microseconds(known) if known is not None and file in ("cuda_tiles", "cuda_implicit_gemm") else None


FAMILIES: dict[str, Callable[[], Warpgroups | Tiles]] = {"warpgroups": Warpgroups, "tiles": Tiles}


@dataclass(frozen=True)
class Layer:
    """A layer's measured times, its work for the family, and the estimates of its other tactics, in microseconds."""

    times: Mapping[str, float]
    work: object
    others: Mapping[str, float]

    def estimate(self, family: Warpgroups | Tiles, tactic: str) -> float:
        """Of a tactic, with the constants as they are now."""
        found = family.estimate(self.work, tactic)
        return self.others.get(tactic, math.inf) if found is None else found

    def lost(self, family: Warpgroups | Tiles) -> float:
        """How much longer than the fastest tactic the one with the least estimate takes, as a part."""
        chosen = min(self.times, key=lambda tactic: self.estimate(family, tactic))
        return self.times[chosen] / min(self.times.values()) - 1

    def errors(self, family: Warpgroups | Tiles) -> list[float]:
        """Logarithms of estimated over measured times, of the tactics of the family."""
        found = {tactic: family.estimate(self.work, tactic) for tactic in self.times}
        return [math.log(one / self.times[tactic]) for tactic, one in found.items() if one is not None]


def read(path: Path, family: Warpgroups | Tiles) -> list[Layer]:
    """The layers that the family can compute."""
    layers: list[Layer] = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        seen: list[object] = []
        candidates = _candidates(row["network"], family, seen)
        times = {name: time for name, time in row["microseconds"].items() if name in candidates}
        if seen and any(family.estimate(seen[0], name) is not None for name in times):
            layers.append(Layer(times, seen[0], candidates))
    return layers


def _candidates(text: str, family: Warpgroups | Tiles, seen: list[object]) -> dict[str, float]:
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
        (site,) = find_sites(module, context, cuda_target())
    return {one.name: math.inf if one.cost is None else one.cost for one in site.candidates}


def summary(layers: list[Layer], family: Warpgroups | Tiles) -> str:
    """What the constants are worth."""
    errors = [abs(error) for layer in layers for error in layer.errors(family)]
    lost = sum(layer.lost(family) for layer in layers) / len(layers)
    return f"{len(layers)} layers, {len(errors)} times: mean error {sum(errors) / len(errors):.1%}, lost {lost:.1%}"


def _badness(layers: list[Layer], family: Warpgroups | Tiles) -> float:
    errors = [error for layer in layers for error in layer.errors(family)]
    squares = sum(error * error for error in errors) / len(errors)
    return squares + _LOSS_COUNTS * sum(layer.lost(family) ** 2 for layer in layers) / len(layers)


def fit(layers: list[Layer], family: Warpgroups | Tiles, rounds: int) -> None:
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
    options = parser.parse_args()
    family = FAMILIES[options.family]()
    layers = read(options.times, family)
    print(f"as it is: {summary(layers, family)}")
    fit(layers, family, options.rounds)
    print(f"fitted: {summary(layers, family)}")
    print("\n".join(f"{name} = {family.get(name):.4g}" for name in family.names))


if __name__ == "__main__":
    main()
