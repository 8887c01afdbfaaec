"""Tiles of all kinds cover what there is to compute, and the cheapest ones are worth a measurement."""

from __future__ import annotations

import pytest

from mlirt.kernels.attention.cuda.flash_shape import FlashShape
from mlirt.kernels.attention.cuda.group_shape import GroupShape
from mlirt.kernels.convolution.cuda.plane_tiles import PlaneTile
from mlirt.kernels.lib.cpu.amx_choice import MatrixTile
from mlirt.kernels.lib.cuda.tiles.shape import MATRIX_UNIT
from mlirt.kernels.lib.cuda.warpgroups.box_tile import BoxTile
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.tile import RegisterTile, Tile, worth_measuring
from mlirt.kernels.rnn.cpu.shape import RecurrentTile

KINDS = (
    *(MATRIX_UNIT[1], GroupTile(64, 64, 6), BoxTile(64, 64, 8, 2, 1), PlaneTile(64, 64, (1, 2))),
    *(RegisterTile(64, 64), RecurrentTile(64, 64, 16, 64), MatrixTile(64, 64, 16)),
    *(FlashShape(64, 64, 4), GroupShape.of(1, 64, 2)),
)


@pytest.mark.parametrize("tile", KINDS, ids=lambda tile: type(tile).__name__)
def test_every_kind_covers_rows_and_columns(tile: Tile) -> None:
    assert [tile.cover(64, 64), tile.cover(65, 64), tile.cover(65, 129), tile.cover(1, 1)] == [1, 2, 6, 1]


def test_a_tile_of_registers_has_names_for_both_of_its_readers() -> None:
    tile = RegisterTile(14, 2)
    assert (tile.pixels, tile.blocks, tile.vectors, tile.width(16)) == (14, 2, 2, 32)


def test_the_cheapest_are_worth_a_measurement() -> None:
    costs = [(3.0, "c"), (1.0, "a"), (1.5, "b"), (1.2, "d")]
    assert list(worth_measuring(costs, 2.0, 9).items()) == [("a", 1.0), ("d", 1.2), ("b", 1.5)]
    assert list(worth_measuring(costs, 2.0, 2)) == ["a", "d"]
    assert worth_measuring([], 2.0, 2) == {}


def test_what_a_block_of_attention_has() -> None:
    """Four warps with 32 queries each, and two warpgroups with 64."""
    warps, groups = FlashShape(128, 64, 4), GroupShape.of(2, 128, 3, "o")
    assert (warps.name, warps.queries, warps.keys, warps.warp_rows, warps.threads) == ("128x64w4", 128, 64, 2, 128)
    assert (groups.name, groups.groups, groups.warp_rows, groups.threads) == ("128x128s3o", 2, 1, 384)
