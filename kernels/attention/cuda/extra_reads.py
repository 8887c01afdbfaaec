"""Which elements of an extra operand a thread reads for its scores with a tile of keys. No IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from mlirt.dialects.symbolic import Dim
from mlirt.kernels.attention.walks import Walk

_GROUP = 8  # keys whose accumulators four threads have, two each


class Rows(Enum):
    """How tiles of keys lie in the rows of a picture."""

    NONE = auto()
    """The operand is not read by rows."""
    IN_TILE = auto()
    """A tile has whole rows."""
    AROUND_TILE = auto()
    """A row has whole tiles."""
    BY_GROUP = auto()
    """Groups of neighbouring keys are in one row each."""


@dataclass(frozen=True)
class Piece:
    """Elements that one access reads: `keys` counts the first key of their group in the tile; `offsets` in elements."""

    keys: int
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class ExtraReads:
    """What a thread reads for a row of scores, piece by piece; `places` has piece and element for each of its keys."""

    rows: Rows
    pieces: tuple[Piece, ...]
    places: tuple[tuple[int, int], ...]
    group: int = _GROUP
    """Keys of a group, where pieces are groups."""

    @staticmethod
    def of(walk: Walk, keys: Sequence[int], tile: int) -> ExtraReads:
        """Of the keys at these distances from a thread's first one, in tiles of so many."""
        if walk.key_row == 0:
            return _one_piece(Rows.NONE, keys)
        step, row, width = walk.key, walk.key_row, walk.widths[1]
        if not isinstance(step, int) or not isinstance(row, int):
            return _by_group(keys, 1, 1)
        if width % tile == 0:
            return _one_piece(Rows.AROUND_TILE, [key * step for key in keys])
        if tile % width == 0 and width % _GROUP == 0:
            found = _one_piece(Rows.IN_TILE, [key * step + key // width * row for key in keys])
            if step == 0 or step * width + row == 0 or len(found.pieces[0].offsets) == len(keys):
                return found
        return _by_group(keys, step, _GROUP if width % _GROUP == 0 else 1)

    def repeats(self, walk: Walk) -> bool:
        """Whether all tiles read the same elements."""
        return self.rows is Rows.IN_TILE and walk.key_row + walk.key * walk.widths[1] == 0


def _one_piece(rows: Rows, offsets: Sequence[int]) -> ExtraReads:
    unique = tuple(dict.fromkeys(offsets)) if rows is not Rows.NONE else tuple(offsets)
    places = [unique.index(offset) for offset in offsets] if rows is not Rows.NONE else range(len(unique))
    return ExtraReads(rows, (Piece(0, unique),), tuple((0, place) for place in places))


def _by_group(keys: Sequence[int], step: Dim, group: int) -> ExtraReads:
    pieces, places = dict[int, list[int]](), list[tuple[int, int]]()
    for key in keys:
        first = key // group * group
        offsets = pieces.setdefault(first, [])
        offset = (key - first) * step
        assert isinstance(offset, int)
        if offset not in offsets:
            offsets.append(offset)
        places.append((list(pieces).index(first), offsets.index(offset)))
    made = tuple(Piece(first, tuple(offsets)) for first, offsets in pieces.items())
    return ExtraReads(Rows.BY_GROUP, made, tuple(places), group)
