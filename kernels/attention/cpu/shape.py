"""Register tiles for attention on a CPU: how many rows and vectors of accumulators there are. No IR."""

from __future__ import annotations

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.symbolic import Dim, ceil_div, maximum, minimum
from mlirt.kernels.lib.tile import RegisterTile

# Rows by the number of vectors: with the factors they fit into the registers. With 16 of them they are by vector width.
_ROWS_OF_32 = {4: 6, 3: 8, 2: 12, 1: 14}
_ROWS_OF_NEON = {4: 5, 3: 7, 2: 9, 1: 14}
_ROWS_OF_16 = {256: {2: 6, 1: 12}, 128: {2: 4, 1: 8}}
_MANY_REGISTERS = 32
# Tasks for each worker, so that none waits long for the last one.
_TASKS = 4


def tile_for(queries: Dim, columns: int, cpu: CpuDevice) -> RegisterTile | None:
    """So many queries at a time, with vectors of keys, and later of columns: the vectors cover the columns of a head.

    None where whole vectors do not.
    """
    lanes = cpu.vector_bits // 32
    if columns % lanes:
        return None
    rows = _ROWS_OF_32 if cpu.registers >= _MANY_REGISTERS else _ROWS_OF_16[cpu.vector_bits]
    if cpu.multiplies_by_lane:
        rows = _ROWS_OF_NEON
    vectors = max(count for count in rows if columns // lanes % count == 0)
    most = queries if isinstance(queries, int) else rows[vectors]
    return RegisterTile(min(rows[vectors], max(1, most)), vectors)


def blocks_per_head(heads: Dim, row_tiles: Dim, threads: int) -> Dim:
    """Into how many tasks a head is cut: each brings keys and values into place again."""
    wanted, row_tiles = threads * _TASKS, maximum(1, row_tiles)
    blocks = minimum(row_tiles, -(-wanted // heads) if isinstance(heads, int) else 1)
    return ceil_div(row_tiles, ceil_div(row_tiles, blocks))
