"""The sizes of a product by warpgroups, and where one of its tiles starts."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.language import Value


@dataclass(frozen=True)
class GroupSizes:
    """A batch of products; `batch` has the lengths of the dimensions that its index consists of, `steps` the number of
    tiles along the depth.
    """

    rows: Dim
    columns: Dim
    batch: tuple[Dim, ...]
    steps: Dim


@dataclass(frozen=True)
class Work:
    """A tile: where it starts, and the entry of the batch as one index."""

    row: Value
    column: Value
    batch: Value
