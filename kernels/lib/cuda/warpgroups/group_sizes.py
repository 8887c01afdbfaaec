"""The sizes of a product by warpgroups, and where one of its tiles starts."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.language import Value


@dataclass(frozen=True)
class GroupSizes:
    """A batch of products; `batch` has the lengths of the dimensions that its index consists of, `steps` the number of
    tiles along the depth.

    `shares_rows`: all entries of the batch read the same rows, so that their tiles are worked on together.
    """

    rows: Dim
    columns: Dim
    batch: tuple[Dim, ...]
    steps: Dim
    shares_rows: bool = False


@dataclass(frozen=True)
class Work:
    """A tile: where it starts, and the entry of the batch as one index."""

    row: Value
    column: Value
    batch: Value
