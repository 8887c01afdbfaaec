"""Which tiles warpgroups get: those that fit, in the order of an estimate."""

from __future__ import annotations

import pytest

from mlirt.dialects.device_files import gpu_device
from mlirt.kernels.lib.cuda.warpgroups.group_choice import GroupWork, best, estimates_of
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile, tiles_for

H200 = gpu_device("h200")


def work(rows: int, columns: int, depth: int, extras: int = 0, device: str = "h200") -> GroupWork:
    return GroupWork(rows, columns, 1, depth // 64, may_split=True, extras=extras, device=gpu_device(device))


@pytest.mark.parametrize("tile", tiles_for(H200), ids=lambda tile: tile.name)
def test_tiles_fit_and_have_names(tile: GroupTile) -> None:
    assert tile.fits(H200)
    assert GroupTile.named(tile.name) == tile


@pytest.mark.parametrize(
    "name",
    [
        "64x64",
        "96x64s4",
        "64x40s4",
        "128x256s6",
        "128x64s4c2",
        "64x64s6c3",
        "64x64s1",
        "128x64s4t",
        "64x64s4c2t",
        "64x64s4e1",
        "128x32s4e1",
        "64x128s4t3",
        "64x64s4t5",
        "128x64s8d",
        "128x128s2d",
    ],
)
def test_others_do_not_fit(name: str) -> None:
    tile = GroupTile.named(name)
    assert tile is None or not tile.fits(H200)


@pytest.mark.parametrize(
    ("sizes", "tile"),
    [
        ((4096, 4096, 4096), "128x256s4"),
        ((100352, 64, 576), "128x64s4d"),
        ((49, 512, 4608), "64x64s11c8"),
        ((3136, 64, 64), "64x32s16"),
    ],
)
def test_persistent_blocks_for_large_products_and_share_long_sums_of_small_ones(
    sizes: tuple[int, int, int], tile: str
) -> None:
    found = best(work(*sizes))
    assert found is not None
    assert found.name == tile


def test_the_choices_are_few_and_near_the_best() -> None:
    some = work(512, 768, 3072)
    costs = list(estimates_of(some).values())
    assert 3 <= len(costs) <= 12
    assert costs == sorted(costs)
    assert costs[-1] < 2 * costs[0]


def test_no_block_of_a_cluster_is_without_work() -> None:
    for depth in (64, 128, 320, 576):
        for name in estimates_of(work(64, 64, depth)):
            tile = GroupTile.named(name)
            assert tile is not None
            share = -(-depth // 64 // tile.split)
            assert tile.split == 1 or share * (tile.split - 1) < depth // 64


def test_operands_are_copied_ahead_where_there_are_some() -> None:
    with_residual = GroupWork(100352, 256, 1, 1, may_split=True, extras=1, ahead=1, width=1, device=H200)
    assert {tile.extra for name in estimates_of(with_residual) if (tile := GroupTile.named(name))} == {0, 1}
    assert {tile.extra for name in estimates_of(work(100352, 256, 64)) if (tile := GroupTile.named(name))} == {0}


def test_pieces_of_columns_are_whole() -> None:
    pieces = GroupWork(512, 96, 1, 8, may_split=True, piece=64, device=H200)
    tiles = [GroupTile.named(name) for name in estimates_of(pieces)]
    assert all(tile is not None and tile.columns % 64 == 0 for tile in tiles)


@pytest.mark.parametrize(
    ("sizes", "tiles"),
    [
        ((2048, 4096, 2048), ("128x256s4", "128x256s4", "128x160s6", "128x160s6")),
        ((4096, 1024, 2048), ("128x256s4", "128x256s4", "128x160s6", "128x256s4")),
        ((6272, 512, 2048), ("64x128s9t", "64x128s9t", "128x256s4", "128x192s5")),
    ],
)
def test_tiles_follow_from_the_device(sizes: tuple[int, int, int], tiles: tuple[str, ...]) -> None:
    """2048 x 4096 results are 256 tiles of 128x256: two rounds of 132 processors, and three of 114."""
    devices = ("h200", "h100-sxm", "h100-pcie", "h200+processors=148")
    found = [best(work(*sizes, device=device)) for device in devices]
    assert tuple(tile.name for tile in found if tile is not None) == tiles


def test_a_tile_needs_the_shared_memory_of_the_device() -> None:
    small = work(4096, 4096, 4096, device="h200+shared_bytes=101376")
    assert all(tile is not None and tile.shared_bytes <= 101376 for tile in map(GroupTile.named, estimates_of(small)))
