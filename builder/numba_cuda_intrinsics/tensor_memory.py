"""Products whose accumulators lie in tensor memory (tcgen05): its columns, products, barriers, fences and loads."""

from __future__ import annotations

from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import (
    I32,
    SCALARS,
    SIZES,
    llvm_type,
    maker,
    pack,
    ptx,
    word,
)
from mlirt.builder.numba_cuda_intrinsics.threads import shared_address
from mlirt.builder.numba_cuda_intrinsics.untyped import types
from mlirt.builder.numba_cuda_intrinsics.warpgroups import I64, LINE_STEP, LINES_STEP, tile_descriptor

# The kind of an instruction, what its accumulators, left and right elements are called in its descriptor, and the
# elements of a tile.
_KINDS = {
    "f16": ("f16", (1, 0, 0), "float16"),
    "bf16": ("f16", (1, 1, 1), "bfloat16"),
    "tf32": ("tf32", (1, 2, 2), "float32"),
    "s8": ("i8", (2, 1, 1), "int8"),
    "u8": ("i8", (2, 0, 1), "int8"),
    "e4m3": ("f8f6f4", (1, 0, 0), "int8"),
}
_ROWS = 128
_VERSION = 1 << 46  # of descriptors of tiles
_DEPTH = 32  # bytes along the depth that an instruction multiplies
_MAX_LOADED = 32  # pieces of 8 columns that an instruction loads


@maker
def tensor_memory_allocate(columns: int) -> Any:
    """`word(place, index)`: allocate columns in one warp; their address goes to shared memory."""

    def emit(builder: Any, place: Any, index: Any) -> None:
        address = shared_address(builder, place, index, SIZES["int32"])
        text = f"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$0], {columns};"
        ptx(builder, text, [], [address], memory=True, convergent=True)

    return word(types.void, [types.CPointer(types.int32), types.int64], emit)


def _relinquish(builder: Any) -> None:
    text = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
    ptx(builder, text, [], [], memory=True, convergent=True)


tensor_memory_relinquish = word(types.void, [], _relinquish)


@maker
def tensor_memory_free(columns: int) -> Any:
    """`word(address)`: free columns in the warp that has allocated them."""

    def emit(builder: Any, address: Any) -> None:
        text = f"tcgen05.dealloc.cta_group::1.sync.aligned.b32 $0, {columns};"
        ptx(builder, text, [], [builder.trunc(address, I32)], memory=True, convergent=True)

    return word(types.void, [types.int64], emit)


@maker
def tensor_mma(
    kind: str, columns: int, *, line: int = 128, left_by_depth: bool = False, right_by_depth: bool = False
) -> Any:
    """`word(address, accumulate, left, i, right, j)`: start to multiply a 128 x d and a d x `columns` tile."""
    name, formats, element = _KINDS[kind]
    flips = left_by_depth, right_by_depth
    text = _products(name, instruction_descriptor(formats, columns, flips), flips, line)
    pointer = types.CPointer(SCALARS[element])

    def emit(builder: Any, address: Any, accumulate: Any, left: Any, i: Any, right: Any, j: Any) -> None:
        tiles = [
            builder.or_(
                tile_descriptor(builder, shared_address(builder, tile, at, SIZES[element]), by_depth, line),
                I64(_VERSION),
            )
            for tile, at, by_depth in ((left, i, left_by_depth), (right, j, right_by_depth))
        ]
        adds = builder.zext(accumulate, I32)
        ptx(builder, text, [], [builder.trunc(address, I32), *tiles, adds], memory=True)

    return word(types.void, [types.int64, types.boolean, pointer, types.int64, pointer, types.int64], emit)


def instruction_descriptor(formats: tuple[int, int, int], columns: int, flips: tuple[bool, bool]) -> int:
    """What an instruction multiplies: types, whether tiles lie by depth, and the size of the product."""
    accumulators, left, right = formats
    types_ = accumulators << 4 | left << 7 | right << 10
    return types_ | flips[0] << 15 | flips[1] << 16 | columns // 8 << 17 | _ROWS // 16 << 24


def _products(kind: str, descriptor: int, by_depth: tuple[bool, bool], line: int) -> str:
    """One instruction for each 32 bytes along the depth; all but the first one add."""
    steps = [LINES_STEP if flag else LINE_STEP for flag in by_depth]
    lines = [f"{{ .reg .b64 a, b; .reg .b32 what; .reg .pred add; mov.b32 what, {descriptor}; setp.ne.b32 add, $3, 0;"]
    for step in range(line // _DEPTH):
        lines.append(f"add.s64 a, $1, {steps[0] * step}; add.s64 b, $2, {steps[1] * step};")
        lines.append(f"tcgen05.mma.cta_group::1.kind::{kind} [$0], a, b, what, add;")
        if step == 0:
            lines.append("setp.eq.b32 add, 0, 0;")
    return " ".join([*lines, "}"])


def _commit(builder: Any, barriers: Any, index: Any) -> None:
    address = shared_address(builder, barriers, index, SIZES["int64"])
    text = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [$0];"
    ptx(builder, text, [], [address], memory=True)


tensor_commit = word(types.void, [types.CPointer(types.int64), types.int64], _commit)


@maker
def tensor_fence(*, after: bool) -> Any:
    """`word()`: order what uses tensor memory behind a wait, or in front of telling others."""

    def emit(builder: Any) -> None:
        ptx(builder, f"tcgen05.fence::{'after' if after else 'before'}_thread_sync;", [], [], memory=True)

    return word(types.void, [], emit)


@maker
def tensor_memory_load(type_name: str, count: int) -> Any:
    """`word(address)`: 16 lanes of the warp and `2 count` columns, `count` registers for a thread, when they are there.

    The wait is in the same text: nothing that reads the registers can move before it.
    """
    element = llvm_type(SCALARS[type_name])
    lines, first = list[str](), 0
    for pieces in pieces_of(count // 4):
        registers = ", ".join(f"${k}" for k in range(4 * first, 4 * (first + pieces)))
        lines.append(f"tcgen05.ld.sync.aligned.16x256b.x{pieces}.b32 {{{registers}}}, [${count} + {8 * first}];")
        first += pieces
    text = " ".join([*lines, "tcgen05.wait::ld.sync.aligned;"])

    def emit(builder: Any, address: Any) -> Any:
        found = ptx(builder, text, [element] * count, [builder.trunc(address, I32)], memory=True, convergent=True)
        return pack(builder, element, found)

    return word(types.UniTuple(SCALARS[type_name], count), [types.int64], emit)


def pieces_of(count: int) -> list[int]:
    """Powers of two that a number is the sum of, the largest first, none above what an instruction loads."""
    found: list[int] = []
    while count:
        found.append(min(_MAX_LOADED, 1 << (count.bit_length() - 1)))
        count -= found[-1]
    return found
