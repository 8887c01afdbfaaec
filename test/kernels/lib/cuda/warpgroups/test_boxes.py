"""Boxes of pixels: each position of a window finds in them what it reads, and nothing is read beyond their lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlirt.dialects.kernel.warpgroup import GROUP_LINES, ROWS
from mlirt.kernels.lib.cuda.warpgroups.box_tile import BoxTile
from mlirt.kernels.lib.cuda.warpgroups.pixel_boxes import PixelBoxes

_WALK = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 3), st.just(0))


@given(st.tuples(_WALK, _WALK), st.tuples(st.integers(1, 5), st.integers(1, 5)), st.integers(1, 40))
def test_positions_find_their_pixels(
    spatial: tuple[tuple[int, int, int, int], ...], taps: tuple[int, int], width: int
) -> None:
    boxes = PixelBoxes.of(spatial, taps, width, 128)
    assert sorted(boxes.taps) == [(i, j) for i in range(taps[0]) for j in range(taps[1])]
    if not boxes.fit:
        return
    rows = [(row // GROUP_LINES * boxes.step + row % GROUP_LINES, row) for row in range(ROWS)]
    tile = {divmod(line, boxes.pitch) for line, _ in rows}
    assert {(y, x) for y in range(boxes.height) for x in range(width)} <= tile
    for box in boxes.boxes:
        for i, tap in enumerate(box.down.taps):
            for j, other in enumerate(box.across.taps):
                moved = i * box.down.step * boxes.pitch + j * box.across.step
                assert max(line for line, _ in rows) + moved < box.rows * boxes.pitch
                for y, x in ((0, 0), (boxes.height - 1, width - 1)):
                    down, across = divmod(y * boxes.pitch + x + moved, boxes.pitch)
                    for place, one, at, (stride, dilation, pre, _) in zip(
                        (down, across), (box.down, box.across), ((y, tap), (x, other)), spatial, strict=True
                    ):
                        assert (place + one.first) * stride + one.remainder == at[0] * stride + at[1] * dilation - pre


def box_tile(
    height: int, width: int, columns: int, groups: int, stages: int, *, extra: int, ping_pong: bool
) -> BoxTile:
    return BoxTile(height * width, columns, height, groups, stages, extra, ping_pong)


@given(
    st.builds(
        box_tile,
        *[st.integers(1, 64)] * 3,
        st.integers(1, 5),
        st.integers(1, 9),
        extra=st.integers(0, 2),
        ping_pong=st.booleans(),
    )
)
def test_names_of_tiles(tile: BoxTile) -> None:
    assert BoxTile.named(tile.name) == tile
