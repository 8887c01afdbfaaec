"""What is done with each element of a register tile: elements become lanes of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.dialects.kernel.interpreter_lanes import Lanes
from mlirt.dialects.kernel.tile import TileForEachOp, tile_shape
from mlirt.dialects.kernel.tile_pooling import TileMapOp

if TYPE_CHECKING:
    import numpy as np
    from xdsl.ir import SSAValue

    from mlirt.dialects.kernel.interpreter import Machine

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def _elements(
    lanes: Lanes, op: TileForEachOp | TileMapOp, rows: SSAValue | None
) -> tuple[Array, tuple[Array, Array], Lanes]:
    """The tile of each lane as a row, which of its elements count, and lanes for these."""
    import numpy as np

    high, wide, deep = tile_shape(op.tile.type)
    values = np.broadcast_to(lanes.array(op.tile), (lanes.count, high * wide * deep))
    row, rest = np.divmod(np.arange(high * wide * deep), wide * deep)
    wanted = np.broadcast_to(lanes.active[:, None], values.shape)
    for limit, place in ((rows, row), (op.valid, rest)):
        if limit is not None:
            wanted = wanted & (place < lanes.per_lane(limit)[:, None])
    at = np.nonzero(wanted)
    inner = lanes.split(at[0])
    numbers = (values[at], row[at[1]], rest[at[1]] // deep, rest[at[1]] % deep)
    for name, number in zip(op.body.block.args, numbers, strict=True):
        inner[name] = number
    return values, (at[0], at[1]), inner


def _for_each(machine: Machine, lanes: Lanes, op: TileForEachOp) -> None:
    _, _, inner = _elements(lanes, op, op.rows)
    machine.run_block(inner, op.body.block)


def _map(machine: Machine, lanes: Lanes, op: TileMapOp) -> None:
    values, at, inner = _elements(lanes, op, None)
    (made,) = machine.run_block(inner, op.body.block)
    result = values.copy()
    result[at] = inner.per_lane(made)
    lanes[op.result] = result


RULES = {"kernel.tile_for_each": _for_each, "kernel.tile_map": _map}
