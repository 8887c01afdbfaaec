"""A launch with numbers for everything: what a set of shapes makes of one of the manifest's launches."""

from dataclasses import dataclass

from mlirt.runtime.tensor_maps import MapLayout


@dataclass(frozen=True)
class Address:
    """A place in memory: `offset` bytes into the buffer `root` that owns it."""

    root: int
    offset: int


@dataclass(frozen=True)
class TensorMap:
    """A tensor at a place in memory that the device copies boxes from."""

    address: Address
    layout: MapLayout


BoundArgument = Address | TensorMap | int | float


@dataclass(frozen=True)
class BoundLaunch:
    """A launch with numbers for everything; `index` is its place in the manifest."""

    index: int
    args: tuple[BoundArgument, ...]
    grid: tuple[int, int, int]
