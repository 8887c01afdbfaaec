"""Four warps that multiply together (wgmma), and what becomes of their accumulators."""

from __future__ import annotations

from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import (
    I32,
    I64,
    SCALARS,
    SIZES,
    ir,
    llvm_type,
    maker,
    pack,
    ptx,
    unpack,
    word,
)
from mlirt.builder.numba_cuda_intrinsics.threads import shared_address
from mlirt.builder.numba_cuda_intrinsics.untyped import types

# Types and depth of one instruction, the elements of a tile, and what follows the operands in the text.
_KINDS = {
    "f16": ("k16.f32.f16.f16", "float16"),
    "bf16": ("k16.f32.bf16.bf16", "bfloat16"),
    "tf32": ("k8.f32.tf32.tf32", "float32"),
    "s8": ("k32.s32.s8.s8", "int8"),
    "u8": ("k32.s32.u8.s8", "int8"),
    "e4m3": ("k32.f32.e4m3.e4m3", "int8"),
}
_LETTERS = {I32: "r", I64: "l"}
_DEPTH = 32  # bytes along the depth that an instruction multiplies
_STEPS = 4  # instructions for the 128 bytes of a line
_UNIT = 16  # bytes that descriptors count in
_PIECE = 64 * 128  # bytes of 64 lines
_LINES = 8  # after which the swizzle repeats
LINE_STEP, LINES_STEP = _DEPTH // _UNIT, 16 * 128 // _UNIT
"""From one instruction to the next one along the depth, in units of descriptors: within a line, and by depth."""
_SWIZZLES = {128: 1 << 62, 64: -1 << 63}  # by bytes of a line, in the upper two bits


@maker
def warpgroup_mma(
    kind: str,
    columns: int,
    *,
    line: int = 128,
    left_by_depth: bool = False,
    right_by_depth: bool = False,
    left_step: int = _LINES,
    right_step: int = _LINES,
) -> Any:
    """`word(accumulators, left, i, right, j)`: start to add a 64 x d and a d x `columns` tile's product, and commit it.
    """
    shape, element = _KINDS[kind]
    count = columns // 2
    sum_type = types.int32 if kind in ("s8", "u8") else types.float32
    accumulators = types.UniTuple(sum_type, count)
    text = _text(f"m64n{columns}{shape}", kind, count, (left_by_depth, right_by_depth), line)
    pointer = types.CPointer(SCALARS[element])

    def emit(builder: Any, accumulators: Any, left: Any, i: Any, right: Any, j: Any) -> Any:
        values = unpack(builder, accumulators, count)
        tiles = [
            tile_descriptor(builder, shared_address(builder, tile, at, SIZES[element]), by_depth, line, step)
            for tile, at, by_depth, step in (
                (left, i, left_by_depth, left_step),
                (right, j, right_by_depth, right_step),
            )
        ]
        return pack(builder, llvm_type(sum_type), _tied(builder, text, values, tiles))

    return word(accumulators, [accumulators, pointer, types.int64, pointer, types.int64], emit)


def _text(instruction: str, kind: str, count: int, by_depth: tuple[bool, bool], line: int) -> str:
    accumulators = ", ".join(f"${k}" for k in range(count))
    half = kind in ("f16", "bf16")
    # A line has 32 bytes for each step; by depth, a step is 16 lines.
    steps = [LINES_STEP if flag else LINE_STEP for flag in by_depth]
    scale = "" if kind in ("s8", "u8") else ", 1, 1"
    flips = "".join(f", {int(flag)}" for flag in by_depth) if half else ""
    lines = ["{ .reg .b64 a, b; .reg .pred add; setp.eq.b32 add, 0, 0; wgmma.fence.sync.aligned;"]
    for step in range(line // _DEPTH):
        lines.append(f"add.s64 a, ${2 * count}, {steps[0] * step}; add.s64 b, ${2 * count + 1}, {steps[1] * step};")
        lines.append(f"wgmma.mma_async.sync.aligned.{instruction} {{{accumulators}}}, a, b, add{scale}{flips};")
    lines.append("wgmma.commit_group.sync.aligned; }")
    return " ".join(lines)


@maker
def warpgroup_mma_registers(kind: str, columns: int) -> Any:
    """`word(accumulators, left0, .., left3, right, j)`: start to add a product whose left matrix is in registers;
    commit it.
    """
    shape, element = _KINDS[kind]
    count = columns // 2
    accumulators, left = types.UniTuple(types.float32, count), types.UniTuple(types.int32, 4)
    text = _register_text(f"m64n{columns}{shape}", count)

    def emit(builder: Any, accumulators: Any, *operands: Any) -> Any:
        *lefts, right, j = operands
        registers = [register for one in lefts for register in unpack(builder, one, 4)]
        tile = tile_descriptor(builder, shared_address(builder, right, j, SIZES[element]), True)
        values = unpack(builder, accumulators, count)
        return pack(builder, llvm_type(types.float32), _tied(builder, text, values, [*registers, tile]))

    return word(accumulators, [accumulators, *[left] * _STEPS, types.CPointer(SCALARS[element]), types.int64], emit)


def _register_text(instruction: str, count: int) -> str:
    accumulators, tile = ", ".join(f"${k}" for k in range(count)), 2 * count + 4 * _STEPS
    lines = ["{ .reg .b64 b; .reg .pred add; setp.eq.b32 add, 0, 0; wgmma.fence.sync.aligned;"]
    for step in range(_STEPS):
        left = ", ".join(f"${2 * count + 4 * step + k}" for k in range(4))
        lines.append(f"add.s64 b, ${tile}, {LINES_STEP * step};")
        lines.append(f"wgmma.mma_async.sync.aligned.{instruction} {{{accumulators}}}, {{{left}}}, b, add, 1, 1, 1;")
    lines.append("wgmma.commit_group.sync.aligned; }")
    return " ".join(lines)


def tile_descriptor(builder: Any, address: Any, by_depth: bool, line: int = 128, step: int = _LINES) -> Any:
    """What the matrix unit is told of a tile: where it starts, how far its pieces and groups of lines lie apart."""
    start = builder.lshr(builder.and_(builder.zext(address, I64), I64(0x3FFFF)), I64(4))
    leading = _PIECE if by_depth else _UNIT  # without meaning where lines are rows
    fixed = (leading // _UNIT) << 16 | (step * line // _UNIT) << 32 | _SWIZZLES[line]
    return builder.or_(start, I64(fixed))


def _tied(builder: Any, text: str, values: list[Any], others: list[Any]) -> list[Any]:
    """Inline PTX that changes values in place: operands `$n`.. are the same registers as `$0`.."""
    kind = values[0].type
    letter = "r" if kind == I32 else "f"
    count = len(values)
    constraints = [f"={letter}"] * count + [str(k) for k in range(count)] + [_LETTERS[other.type] for other in others]
    constraints.append("~{memory}")
    types_ = [value.type for value in [*values, *others]]
    result = ir.LiteralStructType([kind] * count)
    function = ir.FunctionType(result, types_)
    call = builder.call(ir.InlineAsm(function, text, ",".join(constraints), side_effect=True), [*values, *others])
    call.attributes.add("convergent")
    return [builder.extract_value(call, k) for k in range(count)]


@maker
def warpgroup_wait(pending: int) -> Any:
    """`word()`: wait until only the `pending` newest products may be under way."""

    def emit(builder: Any) -> Any:
        return ptx(builder, f"wgmma.wait_group.sync.aligned {pending};", [], [], memory=True, convergent=True)

    return word(types.void, [], emit)


@maker
def warpgroup_accumulators(type_name: str, count: int, pending: int = 0) -> Any:
    """`word(accumulators)`: the accumulators after all products but the `pending` newest; nothing that reads them can
    move before this.

    For LLVM the wait changes the accumulators. The assembler sees no registers in it, and where the products are in
    another block it moves conversions of accumulators above the wait. It moves nothing upwards through a loop: so the
    wait is one, which is left the first time, as no grid has 0 blocks.
    """
    element = SCALARS[type_name]
    accumulators = types.UniTuple(element, count)
    text = (
        "{ .reg .b32 blocks; .reg .pred again; mov.u32 blocks, %nctaid.x; setp.eq.u32 again, blocks, 0; "
        f"AGAIN: wgmma.wait_group.sync.aligned {pending}; @again bra AGAIN; }}"
    )

    def emit(builder: Any, values: Any) -> Any:
        return pack(builder, llvm_type(element), _tied(builder, text, unpack(builder, values, count), []))

    return word(accumulators, [accumulators], emit)


@maker
def set_registers(count: int, *, grow: bool = False) -> Any:
    """`word()`: so many registers for each thread of the warpgroup from now on."""
    change = "inc" if grow else "dec"

    def emit(builder: Any) -> Any:
        text = f"setmaxnreg.{change}.sync.aligned.u32 {count};"
        return ptx(builder, text, [], [], memory=True, convergent=True)

    return word(types.void, [], emit)


def _warp_value(builder: Any, value: Any) -> Any:
    text = "shfl.sync.idx.b32 $0, $1, 0, 31, -1;"
    return ptx(builder, text, [I32], [value], convergent=True)[0]


warp_value = word(types.int32, [types.int32], _warp_value)


@maker
def join_columns(type_name: str, count: int, width: int) -> Any:
    """`word(accumulators)`: row by row, each thread of a quad gets `width` (2 or 8) neighbouring columns of 4 `width`.
    """
    element = llvm_type(SCALARS[type_name])
    accumulators = types.UniTuple(SCALARS[type_name], count)
    blocks = width // 2  # of 8 columns in a group
    groups = count // (4 * blocks)

    def emit(builder: Any, values: Any) -> Any:
        given = unpack(builder, values, count)
        lane = ptx(builder, "mov.u32 $0, %laneid;", [I32], [], pure=True)[0]
        bits = [builder.icmp_unsigned("!=", builder.and_(lane, I32(mask)), I32(0)) for mask in (1, 2)]
        joined: list[Any] = [None] * count
        for group in range(groups):
            for half in range(2):
                for e in range(2):
                    own = [given[4 * (group * blocks + j) + 2 * half + e] for j in range(blocks)]
                    for source, value in enumerate(_exchange(builder, own, bits, element)):
                        joined[(half * groups + group) * width + 2 * source + e] = value
        return pack(builder, element, joined)

    return word(accumulators, [accumulators], emit)


def _exchange(builder: Any, values: list[Any], bits: list[Any], element: Any) -> list[Any]:
    """Thread t has one value for each of 4 blocks; afterwards those of block t, in the order of their threads."""
    if len(values) == 1:
        return values
    # A 4 x 4 transposition: exchange bit 0 of thread and block, then bit 1.
    for step, mask in ((1, 1), (2, 2)):
        bit = bits[step - 1]
        for low in [k for k in range(4) if not k & mask]:
            high = low | mask
            sent = builder.select(bit, values[low], values[high])
            got = _from(builder, sent, mask, element)
            values[low], values[high] = (
                builder.select(bit, got, values[low]),
                builder.select(bit, values[high], got),
            )
    return values


def _from(builder: Any, value: Any, mask: int, element: Any) -> Any:
    """The value of the thread whose number differs by `mask`."""
    text = f"shfl.sync.bfly.b32 $0, $1, {mask}, 31, -1;"
    return ptx(builder, text, [element], [value], convergent=True)[0]
