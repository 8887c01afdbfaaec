"""Matrix units that multiply tiles in shared memory, each with its own tiles and kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlirt.dialects.gpu_architectures import WARPGROUPS
from mlirt.kernels.lib.cuda.warpgroups.group_choice import GroupWork, Named, Tiles, estimates_of, tile_of
from mlirt.kernels.lib.cuda.warpgroups.group_product import GroupProduct
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile, tiles_for


@dataclass(frozen=True)
class GroupUnit:
    """The `instruction` that an architecture has it by, its tiles on a device and by name, and its `product`, which
    takes what `GroupProduct` does.
    """

    instruction: str
    tiles: Tiles
    named: Named
    product: Callable[..., Any]

    def estimates(self, work: GroupWork | None) -> dict[str, float]:
        """Microseconds with each tile that is of use, the cheapest first, without those that are far from it."""
        return estimates_of(work, self.tiles)

    def tile(self, work: GroupWork | None, name: str) -> GroupTile | None:
        """The tile of a name, else the best one; None where there is no work, or the tile cannot do it."""
        return tile_of(work, name, self.tiles, self.named)


HOPPER = GroupUnit(WARPGROUPS, tiles_for, GroupTile.named, GroupProduct)
"""Warpgroups, whose accumulators are in registers."""
