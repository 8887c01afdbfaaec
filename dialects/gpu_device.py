"""What is known of a GPU: the figures of its data sheet, and the times that estimates of kernels follow from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

_BLOCK_BYTES = 1024  # of shared memory, that the system takes for each block


@dataclass(frozen=True)
class GrowsWith:
    """Of a number that was fitted on one device: the figure of others that it is taken to be proportional to."""

    figure: str


@dataclass(frozen=True)
class WarpgroupEstimates:
    """Of products by warpgroups (kernels/lib/cuda/warpgroups/group_choice.py), in cycles and bytes per cycle."""

    cycles_per_microsecond: Annotated[float, GrowsWith("clock_mhz")]
    products: Annotated[float, GrowsWith("tensor_products")]
    """Rows x columns of a step that a processor multiplies per cycle."""
    read_bytes: float
    """That a processor reads of tiles."""
    narrow: float
    """Times as long where two warpgroups multiply by few columns."""
    latency: float
    """Of a copy, of which a block has as many under way as stages."""
    moved_bytes: Annotated[float, GrowsWith("processors")]
    """Of results and extra operands that all processors move."""
    result: float
    """Of a thread for a result."""
    operation: float
    """For each operation of the epilogue."""
    start: float
    """Of a launch."""
    staying: float
    """More, of one of persistent blocks."""
    tile: float
    """Before the first product of a tile, and after its last result."""
    ping_pong_step: float
    """Of a step at least, where more than two warpgroups take turns."""
    no_overlap: float
    """The part of the shorter one of products and results that a persistent block does not hide."""
    exchange: float
    """Of accumulators in a cluster."""
    partner: float
    """The same for each of its blocks."""


@dataclass(frozen=True)
class TensorMemoryRates:
    """Of products into tensor memory (kernels/lib/cuda/tensor_memory/tensor_tile.py), per cycle; 0: there is none."""

    products: float = 0
    """Rows x columns of a step that a processor multiplies."""
    read_bytes: float = 0
    """That a processor reads of tiles."""


@dataclass(frozen=True)
class BoxEstimates:
    """Of convolutions on boxes of pixels (kernels/lib/cuda/warpgroups/box_tile.py), in cycles and bytes per cycle."""

    cycles_per_microsecond: Annotated[float, GrowsWith("clock_mhz")]
    products: Annotated[float, GrowsWith("tensor_products")]
    """Rows x columns of a step that a processor multiplies per cycle."""
    read_bytes: float
    """Of shared memory."""
    line: float
    """Of a line of a box."""
    line_bytes: float
    """The bytes of a line that are copied per cycle."""
    known_bytes: float
    """Of weights, before the first product."""
    result: float
    """Of a processor for 128 results."""
    operation: float
    """The same for each operation of the epilogue."""
    alone: float
    """Times as long, where a warpgroup is alone."""
    moved_bytes: Annotated[float, GrowsWith("processors")]
    """Of all processors, near by."""
    far_bytes: Annotated[float, GrowsWith("memory_per_cycle")]
    """Of all processors, where the device's cache is too small."""
    cache_bytes: Annotated[float, GrowsWith("l2_bytes")]
    no_overlap: float
    """The part of the shorter one of products and results that shows where warpgroups take turns."""
    start: float


@dataclass(frozen=True)
class ShapeTimes:
    """Of a tile: `floor` is how many cycles a step takes a block that has a processor for itself. Where it was
    measured, `busy` is for how many a step keeps a processor busy, and `start` how long a block takes beside its steps.
    """

    floor: float
    busy: float = 0
    start: float = 2000


@dataclass(frozen=True)
class TileEstimates:
    """Of tiles by warps (kernels/lib/cuda/tiles/shape.py), in cycles, and bytes per cycle of all processors."""

    cycles_per_microsecond: Annotated[float, GrowsWith("clock_mhz")]
    bytes_per_cycle: Annotated[float, GrowsWith("processors")]
    """That pass the cache."""
    launch: float
    matrix_launch: float
    """Of a launch, where the matrix units multiply."""
    second_launch: float
    parts_per_cycle: Annotated[float, GrowsWith("processors")]
    """Bytes of parts of a sum, which pass the cache faster than what others read at the same time."""
    scattered_load: float
    """Of an element by each thread, from places that are far apart."""
    finished_result: float
    """Of a result, by all blocks of a processor, through shared memory; where matrix units multiply halves or bytes."""
    floats: Annotated[float, GrowsWith("float_products")]
    """Products that a processor makes per cycle."""
    halves: Annotated[float, GrowsWith("tensor_products")]
    bytes: Annotated[float, GrowsWith("tensor_products")]
    shapes: Mapping[str, ShapeTimes] = field(hash=False)
    """By names such as `half_128x64`."""


@dataclass(frozen=True)
class AttentionTimes:
    """Microseconds with a shape: each of many blocks takes `tile` for a tile of keys, and `block` besides; where a
    processor has one block, that takes `alone` for a tile.
    """

    tile: float
    block: float
    alone: float = 0


@dataclass(frozen=True)
class AttentionEstimates:
    """`launch` microseconds of a launch that does nothing; a tile takes `slower` times as long as in `shapes`."""

    launch: float
    slower: Annotated[float, GrowsWith("cycle")]
    shapes: Mapping[str, AttentionTimes] = field(hash=False)
    """By names such as `128x64w4` (kernels/attention/cuda/flash_shape.py) and `128x64s3` (group_shape.py)."""


@dataclass(frozen=True)
class SplitAttentionEstimates:
    """Microseconds of attention of few queries whose keys blocks share (kernels/attention/cuda/few_queries.py)."""

    block: float
    """To combine what a block has found."""
    cluster: float
    """To combine what the blocks of a cluster have found."""
    round: float
    """The way of keys through memory, of which a block reads some at once."""
    blocks: float
    """That a processor has at once."""
    bytes: Annotated[float, GrowsWith("processors")]
    """Of keys and values, that all processors read in a microsecond."""


@dataclass(frozen=True)
class RecurrentEstimates:
    """Microseconds of a step of a persistent recurrent layer (kernels/rnn/cuda/persistent_shape.py)."""

    step: float
    """The way of a number through memory."""
    block: float
    """What each block adds."""
    round: float
    """What each block adds that reads at the same time, for each further round of loads that a thread makes."""
    warp: Annotated[float, GrowsWith("cycle")]
    """What each warp adds."""
    register: Annotated[float, GrowsWith("cycle")]
    """What each register of weights adds."""
    sequence: Annotated[float, GrowsWith("cycle")]
    """What it adds in single precision for each further sequence."""
    one_block: Annotated[float, GrowsWith("cycle")]
    """A step of one block, in which nothing goes through memory."""
    one_block_register: Annotated[float, GrowsWith("cycle")]
    """What each register of weights adds there."""
    one_block_cell: Annotated[float, GrowsWith("cycle")]
    """What each further cell of a thread adds there."""


@dataclass(frozen=True)
class RowEstimates:
    """Of rows that blocks reduce (passes/fusion/fuse_row_reductions.py), in microseconds and bytes per microsecond."""

    launch: float
    block_bytes: float
    """That a block reads, as much at once as its threads hold."""
    loop_bytes: float
    """That a block reads in a loop."""
    read_bytes: Annotated[float, GrowsWith("memory_gb_s")]
    """That all blocks read."""


@dataclass(frozen=True)
class MoveEstimates:
    """Microseconds of the launch of a copy, bytes that one moves in a microsecond, and microseconds that a result of an
    int8 product takes, and each extra operand of it. With fewer than `threads` threads each does less.
    """

    launch: float
    threads: Annotated[float, GrowsWith("processors")]
    copied_bytes: Annotated[float, GrowsWith("memory_gb_s")]
    int8_result: Annotated[float, GrowsWith("memory_time")]
    int8_extra: Annotated[float, GrowsWith("memory_time")]


@dataclass(frozen=True)
class GpuDevice:
    """A GPU. `processors` are its multiprocessors; rates are those of one of them, in a cycle."""

    name: str
    full_name: str
    arch: str
    """The architecture that code is made for, such as `sm_90a`."""
    processors: int
    clock_mhz: float
    """The highest clock of the processors."""
    shared_bytes: int
    """Shared memory that a block may have; a processor has 1 KiB more for each of its blocks."""
    registers: int
    """Of 32 bits, of a processor."""
    l2_bytes: int
    memory_gb_s: float
    float_products: int
    """Multiply-adds in float32."""
    tensor_products: int
    """Multiply-adds of the matrix units in half precision, with sums in float32."""
    clusters: tuple[int, ...]
    """How many clusters of 1, 2, 4 and 8 blocks have a place at once."""
    warpgroups: WarpgroupEstimates
    boxes: BoxEstimates
    tiles: TileEstimates
    attention: AttentionEstimates
    split_attention: SplitAttentionEstimates
    recurrent: RecurrentEstimates
    rows: RowEstimates
    moves: MoveEstimates
    tensor_memory: TensorMemoryRates = TensorMemoryRates()

    def clusters_of(self, blocks: int) -> int:
        """How many clusters of 1, 2, 4 or 8 blocks have a place at once; at least one."""
        return max(1, self.clusters[blocks.bit_length() - 1])

    def blocks_of_row(self, rows: int) -> int:
        """How many blocks of a cluster can have a row together, where each of so many rows has a place at once."""
        return max((1 << number for number, places in enumerate(self.clusters) if rows <= places), default=1)

    def holds_rows(self, rows: int, length: int) -> bool:
        """Whether the threads of a block, or of a cluster, hold a row of so many elements, so that it is read once."""
        return length <= self.registers * self.blocks_of_row(rows)

    def shared_bytes_of(self, blocks: int) -> int:
        """Shared memory that each block may have where a processor has so many."""
        return (self.shared_bytes + _BLOCK_BYTES) // blocks - _BLOCK_BYTES

    def has(self, instruction: str) -> bool:
        """Whether its architecture has what a kernel asks for (dialects/gpu_architectures.py)."""
        from mlirt.dialects.gpu_architectures import has_instruction  # rt-opt starts without it

        return has_instruction(self.arch, instruction)

    def __str__(self) -> str:
        return f"{self.name}: {self.processors} processors, {self.clock_mhz:g} MHz, {self.memory_gb_s:g} GB/s"


FIGURES = ("processors", "clock_mhz", "shared_bytes", "registers", "l2_bytes", "memory_gb_s")
"""Those of which a description of a device may tell another number: `h200+processors=148`."""


def derived(figures: Mapping[str, Any]) -> dict[str, float]:
    """All numbers that estimates may grow with."""
    numbers = {name: value for name, value in figures.items() if isinstance(value, int | float)}
    clock, memory = numbers["clock_mhz"], numbers["memory_gb_s"]
    return {**numbers, "memory_per_cycle": memory / clock, "cycle": 1 / clock, "memory_time": 1 / memory}
