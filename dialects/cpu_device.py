"""What is known of a family of processors: its vectors, ports and caches, and the times that estimates follow from."""

from __future__ import annotations

from dataclasses import dataclass

_LANE_BITS, _LANE_REGISTERS = (128, 256), 32


@dataclass(frozen=True)
class RegisterTileCosts:
    """Of kernels with a tile of accumulators in registers: bytes, cycles, and bytes per cycle of a core."""

    near_bytes: int
    """What the second-level cache keeps while other data streams through it."""
    panel_bytes: float
    """That a core reads of a panel per cycle from its second-level cache, when that works at its best."""
    far_bytes: float
    """That arrive per cycle from beyond that cache; half of the time they do so behind the arithmetic."""
    task: float
    """To start a task."""
    loads_show: float
    """The part of the loads that multiplications do not hide."""
    stream_shows: float
    """The same of the stream of a panel."""
    crowded: float
    """Times as long, where rows of a factor compete for the ways of one set of the first-level cache."""


@dataclass(frozen=True)
class WinogradCosts:
    """Of Winograd's convolutions, in cycles and bytes per cycle."""

    input: float
    """To transform a patch of one block of channels, for each of its points."""
    output: float
    """The same back."""
    tile: float
    """To begin and end a tile."""
    kernel: float
    near_bytes: int
    """Of weights that stay in the second-level cache."""
    memory_rate: float
    """Bytes of weights that arrive in a cycle behind the products, from memory."""
    shared_rate: float
    """From the shared cache, once used."""
    near_rate: float
    """From the second-level cache."""
    exchange_rate: float
    """Bytes in a cycle that one worker writes for another one."""
    task_bytes: int
    """What the tasks of one worker may make on the way."""


@dataclass(frozen=True)
class MatrixUnitCosts:
    """Of the matrix unit: cycles that a sum waits for the one before it, and rows of registers loaded in a cycle."""

    latency: float
    loads: float


@dataclass(frozen=True)
class CpuDevice:
    """A family of processors. `multiplies` and `loads` of vectors begin in a cycle; a product takes `latency` ones."""

    name: str
    full_name: str
    vector_bits: int
    registers: int
    """Vector registers."""
    multiplies: int
    loads: int
    latency: int
    l1_ways: int
    """Of the first-level cache."""
    l1_way_bytes: int
    """Rows that lie a multiple of this many bytes apart compete for the ways of one set."""
    special: tuple[str, ...]
    """Features that some kernels are made for, where a machine has them."""
    tiles: RegisterTileCosts
    winograd: WinogradCosts
    matrix_unit: MatrixUnitCosts

    @property
    def multiplies_by_lane(self) -> bool:
        """Whether instructions multiply by one of four lanes of a register (64-bit Arm): numbers come by fours then."""
        return self.vector_bits in _LANE_BITS and self.registers == _LANE_REGISTERS

    def __str__(self) -> str:
        return f"{self.name}: vectors of {self.vector_bits} bits"
