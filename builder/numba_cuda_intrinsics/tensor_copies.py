"""Copies of boxes of tensors to shared memory that the device makes by itself (TMA)."""

from __future__ import annotations

from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import I16, I32, SCALARS, SIZES, maker, ptx, word
from mlirt.builder.numba_cuda_intrinsics.threads import shared_address
from mlirt.builder.numba_cuda_intrinsics.untyped import types

_FORM = "shared::cluster.global{}.mbarrier::complete_tx::bytes"


@maker
def load_box(type_name: str, rank: int) -> Any:
    """`word(map, coordinates.., target, i, barriers, j)`, coordinates outermost first."""
    return _copy(type_name, rank, 0)


@maker
def load_window(type_name: str, spatial: int) -> Any:
    """`word(map, coordinates.., offsets.., target, i, barriers, j)`, coordinates and offsets outermost first."""
    return _copy(type_name, spatial + 2, spatial)


def _copy(type_name: str, rank: int, spatial: int) -> Any:
    where = ", ".join(f"${2 + k}" for k in range(rank))
    moved = ", ".join(f"${3 + rank + k}" for k in range(spatial))
    form = _FORM.format(".im2col" if spatial else "")
    text = f"cp.async.bulk.tensor.{rank}d.{form} [$0], [$1, {{{where}}}], [${2 + rank}]"
    text += f", {{{moved}}};" if spatial else ";"

    def emit(builder: Any, map_: Any, *rest: Any) -> Any:
        coordinates, offsets = rest[:rank], rest[rank : rank + spatial]
        target, i, barriers, j = rest[rank + spatial :]
        operands = [
            shared_address(builder, target, i, SIZES[type_name]),
            map_,
            *(builder.trunc(one, I32) for one in reversed(coordinates)),
            shared_address(builder, barriers, j, 8),
            *(builder.trunc(one, I16) for one in reversed(offsets)),
        ]
        return ptx(builder, text, [], operands, memory=True)

    places = [types.CPointer(SCALARS[type_name]), types.int64, types.CPointer(types.int64), types.int64]
    return word(types.void, [types.uint64, *[types.int64] * (rank + spatial), *places], emit)
