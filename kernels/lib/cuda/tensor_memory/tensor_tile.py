"""Tile configurations of products into tensor memory, of which a processor has two tiles of accumulators."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from mlirt.dialects.gpu_device import GpuDevice, WarpgroupEstimates
from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.kernel.tensor_memory import TENSOR_COLUMNS, TENSOR_ROWS
from mlirt.dialects.kernel.warpgroup import LINE, WARPGROUP
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile

_NAME = re.compile(r"128x(\d+)s(\d+)")
ACCUMULATORS = 2
"""Tiles in tensor memory: one is written to memory while the next one is multiplied."""
_STAGES_BYTES = 220 << 10  # of all stages together


@dataclass(frozen=True)
class TensorTile(GroupTile):
    """128 x `columns` results of persistent blocks: two warpgroups write them, a warp copies, and one multiplies."""

    @staticmethod
    def named(name: str) -> TensorTile | None:
        """The configuration that a text such as `128x256s4` names."""
        match = _NAME.fullmatch(name)
        return None if match is None else TensorTile(TENSOR_ROWS, int(match[1]), int(match[2]))

    @property
    def readers(self) -> int:
        """Who tells that a stage has been read: the matrix unit."""
        return 1

    @property
    def threads(self) -> int:
        return self.consumers * WARPGROUP + 2 * WARP

    @property
    def tensor_columns(self) -> int:
        """That a block allocates: a power of two."""
        return 1 << (ACCUMULATORS * self.columns - 1).bit_length()

    @property
    def shared_bytes(self) -> int:
        barriers = 2 * (self.stages + ACCUMULATORS) * 8 + 1024
        return self.stages * self.stage_bytes + barriers

    def fits(self, device: GpuDevice) -> bool:
        """Whether the device's tensor memory holds two tiles, and a block has enough shared memory."""
        whole = self.rows == TENSOR_ROWS and self.columns % 32 == 0 and 32 <= self.columns
        holds = ACCUMULATORS * self.columns <= TENSOR_COLUMNS and device.tensor_memory.products > 0
        return whole and holds and self.stages >= 2 and self.shared_bytes <= device.shared_bytes

    def rates(self, device: GpuDevice) -> WarpgroupEstimates:
        """As for warpgroups, with the rates of this matrix unit."""
        own = device.tensor_memory
        return replace(device.warpgroups, products=own.products, read_bytes=own.read_bytes, narrow=1.0)


@cache
def tensor_tiles_for(device: GpuDevice) -> tuple[TensorTile, ...]:
    """The tiles to choose from on a device: as many stages as there is shared memory for."""
    tiles = (
        TensorTile(TENSOR_ROWS, columns, _STAGES_BYTES // ((TENSOR_ROWS + columns) * LINE))
        for columns in (256, 224, 192, 160, 128, 96, 64, 32)
    )
    return tuple(tile for tile in tiles if tile.fits(device))
