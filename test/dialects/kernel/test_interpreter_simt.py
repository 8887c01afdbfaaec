"""The SIMT interpreter executes kernels mapped to threads; barriers, copies and matrix units behave as in hardware."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
from kernel_text import parse_kernel

from mlirt.dialects.kernel.interpreter import run_kernel
from mlirt.dialects.kernel.interpreter_memory import (
    DivergenceError,
    KernelError,
    OutOfBoundsError,
    RaceError,
    UninitializedReadError,
)

ONE = "strides [1]"
LOAD_SHARED = f'{ONE} : memref<64xf32, "shared"> -> f32'
STORE_SHARED = f'{ONE} : f32, memref<64xf32, "shared">'

# Each block reverses its part of x through shared memory.
REVERSE = """
kernel.func @reverse(%x: memref<?xf32>, %y: memref<?xf32>) attributes {block_size = 64 : i64} {
  %tile = kernel.shared : memref<64xf32, "shared">
  %t = kernel.thread_id : index
  %b = kernel.block_id {axis = 0 : i64} : index
  %last = arith.constant 63 : index
  %size = arith.constant 64 : index
  %base = arith.muli %b, %size : index
  %i = arith.addi %base, %t : index
  %v = kernel.load %x[%i] strides [1] : memref<?xf32> -> f32
  kernel.store %v, %tile[%t] strides [1] : f32, memref<64xf32, "shared">
  kernel.barrier
  %u = arith.subi %last, %t : index
  %w = kernel.load %tile[%u] strides [1] : memref<64xf32, "shared"> -> f32
  kernel.store %w, %y[%i] strides [1] : f32, memref<?xf32>
  kernel.return
}
"""


def test_blocks_have_their_own_shared_memory() -> None:
    x = np.arange(192, dtype=np.float32)
    y = np.empty_like(x)
    run_kernel(parse_kernel(REVERSE), [x, y], grid=3)
    np.testing.assert_array_equal(y.reshape(3, 64), x.reshape(3, 64)[:, ::-1])


def test_without_a_barrier_the_threads_race() -> None:
    fault = r"kernel.load reads %tile\[63\] \(by block 0 thread 0\), which block 0 thread 63 wrote: there is no barrier"
    with pytest.raises(RaceError, match=fault):
        run_kernel(parse_kernel(REVERSE.replace("  kernel.barrier\n", "")), [np.zeros(64, np.float32)] * 2, grid=1)


def test_overwriting_what_another_thread_reads_is_a_race() -> None:
    again = REVERSE.replace("  kernel.return", f"  kernel.store %w, %tile[%t] {STORE_SHARED}\n  kernel.return")
    with pytest.raises(RaceError, match=r"writes %tile\[0\] .* which block 0 thread 63 reads: there is no barrier"):
        run_kernel(parse_kernel(again), [np.zeros(64, np.float32), np.zeros(64, np.float32)], grid=1)


def test_two_blocks_that_write_one_element_race() -> None:
    same = REVERSE.replace("%y[%i]", "%y[%t]")
    with pytest.raises(RaceError, match=r"blocks are never ordered|is written"):
        run_kernel(parse_kernel(same), [np.zeros(128, np.float32), np.zeros(128, np.float32)], grid=2)


def test_shared_memory_holds_nothing_at_first() -> None:
    early = REVERSE.replace(
        "  kernel.store %v, %tile", f"  %z = kernel.load %tile[%t] {LOAD_SHARED}\n  kernel.store %z, %tile"
    )
    with pytest.raises(UninitializedReadError, match=r"reads %tile\[0\], which nobody has written"):
        run_kernel(parse_kernel(early), [np.zeros(64, np.float32), np.zeros(64, np.float32)], grid=1)


def test_shared_memory_ends_where_the_next_block_has_its_own() -> None:
    beyond = REVERSE.replace("%tile[%t]", "%tile[%i]")
    with pytest.raises(OutOfBoundsError, match=r"%tile\[64\] is out of bounds: the extent is 64 \(by block 1"):
        run_kernel(parse_kernel(beyond), [np.zeros(128, np.float32), np.zeros(128, np.float32)], grid=2)


def test_a_barrier_that_only_some_threads_reach_is_divergent() -> None:
    guarded = REVERSE.replace(
        "  kernel.barrier\n", "  %low = arith.cmpi slt, %t, %last : index\n  scf.if %low {\n    kernel.barrier\n  }\n"
    )
    with pytest.raises(DivergenceError, match="63 of the 64 threads of block 0 are there; thread 63 is not"):
        run_kernel(parse_kernel(guarded), [np.zeros(64, np.float32), np.zeros(64, np.float32)], grid=1)


WITHIN_WARPS = f"""
kernel.func @exchange(%x: memref<?xf32>, %y: memref<?xf32>) attributes {{block_size = 64 : i64}} {{
  %mask = arith.constant 21 : index
  %tile = kernel.shared : memref<64xf32, "shared">
  %t = kernel.thread_id : index
  %other = arith.xori %t, %mask : index
  %v = kernel.load %x[%t] {ONE} : memref<?xf32> -> f32
  kernel.store %v, %tile[%t] {STORE_SHARED.replace("%w", "%v")}
  // written
  kernel.warp_barrier
  %w = kernel.load %tile[%other] {LOAD_SHARED}
  // read
  kernel.warp_barrier
  %s = arith.addf %v, %w : f32
  kernel.store %s, %tile[%t] {STORE_SHARED}
  kernel.store %w, %y[%t] {ONE} : f32, memref<?xf32>
  kernel.return
}}
"""


def run_within_warps(text: str) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.arange(64, dtype=np.float32), np.empty(64, np.float32)
    run_kernel(parse_kernel(text), [x, y], grid=1)
    return x, y


def test_a_barrier_of_a_warp_orders_its_threads() -> None:
    x, y = run_within_warps(WITHIN_WARPS)
    np.testing.assert_array_equal(y, x[np.arange(64) ^ 21])


@pytest.mark.parametrize(
    ("old", "new", "race"),
    [
        ("  // written\n  kernel.warp_barrier\n", "", "reads %tile.* wrote: there is no barrier between"),
        ("  // read\n  kernel.warp_barrier\n", "", "writes %tile.* reads: there is no barrier between"),
        ("constant 21", "constant 53", "reads %tile.* wrote: there is no barrier between"),  # of the other warp
    ],
)
def test_other_threads_are_not_ordered_by_it(old: str, new: str, race: str) -> None:
    with pytest.raises(RaceError, match=race):
        run_within_warps(WITHIN_WARPS.replace(old, new))


def test_readers_of_several_warps_are_remembered() -> None:
    """All threads read the first element; a barrier of each warp does not let a thread of one write it."""
    text = WITHIN_WARPS.replace("arith.xori %t, %mask", "arith.muli %t, %zero").replace(
        "  %mask =", "  %zero = arith.constant 0 : index\n  %mask ="
    )
    text = text.replace("  // written\n  kernel.warp_barrier\n", "  kernel.barrier\n")
    with pytest.raises(RaceError, match=r"writes %tile\[0\] .* reads: there is no barrier between"):
        run_within_warps(text)
    x, y = run_within_warps(text.replace("  // read\n  kernel.warp_barrier\n", "  kernel.barrier\n"))
    np.testing.assert_array_equal(y, np.full_like(x, x[0]))


def test_a_barrier_of_a_warp_that_only_some_threads_reach_is_divergent() -> None:
    guarded = WITHIN_WARPS.replace(
        "  // written\n  kernel.warp_barrier\n",
        "  %low = arith.cmpi slt, %t, %mask : index\n  scf.if %low {\n    kernel.warp_barrier\n  }\n",
    )
    with pytest.raises(DivergenceError):
        run_within_warps(guarded)


def test_shuffles_add_up_a_warp() -> None:
    text = """
    kernel.func @sum(%x: memref<?xf32>, %y: memref<?xf32>) attributes {block_size = 64 : i64} {
      %t = kernel.thread_id : index
      %v = kernel.load %x[%t] strides [1] : memref<?xf32> -> f32
    """
    name = "%v"
    for mask in (16, 8, 4, 2, 1):
        text += f"  %o{mask} = kernel.shuffle {name} {{mask = {mask} : i64}} : f32 -> f32\n"
        text += f"  %s{mask} = arith.addf {name}, %o{mask} : f32\n"
        name = f"%s{mask}"
    text += f"  kernel.store {name}, %y[%t] {ONE} : f32, memref<?xf32>\n  kernel.return\n}}"
    x = np.arange(64, dtype=np.float32)
    y = np.empty_like(x)
    run_kernel(parse_kernel(text), [x, y], grid=1)
    np.testing.assert_array_equal(y, np.repeat(x.reshape(2, 32).sum(1), 32))


COPY = """
kernel.func @copy(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) attributes {block_size = 32 : i64} {
  %tile = kernel.shared : memref<128xf32, "shared">
  %t = kernel.thread_id : index
  %four = arith.constant 4 : index
  %three = arith.constant 3 : index
  %i = arith.muli %t, %four : index
  %left = arith.subi %n, %i : index
  kernel.copy_async %x[%i], %tile[%i] valid %left {count = 4 : i64} : memref<?xf32>, memref<128xf32, "shared">
  kernel.commit_async
  kernel.wait_async {pending = 0 : i64}
  kernel.barrier
  %j = arith.xori %i, %four : index
  %v = kernel.load_fragment %tile[%j] {offsets = array<i64: 0, 1, 2, 3>, wide = true} : memref<128xf32, "shared"> -> vector<4xf32>
  kernel.store_fragment %v, %y[%i] {offsets = array<i64: 3, 2, 1, 0>} : vector<4xf32>, memref<?xf32>
  kernel.return
}
"""  # noqa: E501


def test_asynchronous_copies_fill_with_zeros() -> None:
    x, y = np.arange(1, 127, dtype=np.float32), np.empty(128, np.float32)
    run_kernel(parse_kernel(COPY), [x, y, 126], grid=1)
    filled = np.concatenate([x, np.zeros(2, np.float32)]).reshape(-1, 2, 4)
    np.testing.assert_array_equal(y, filled[:, ::-1, ::-1].reshape(-1))


@pytest.mark.parametrize(
    ("remove", "error"),
    [
        ("  kernel.wait_async {pending = 0 : i64}\n", UninitializedReadError),
        ("  kernel.commit_async\n", UninitializedReadError),
        ("  kernel.barrier\n", RaceError),
    ],
)
def test_asynchronous_copies_need_commit_wait_and_barrier(remove: str, error: type[KernelError]) -> None:
    arrays = [np.zeros(128, np.float32), np.zeros(128, np.float32)]
    with pytest.raises(error):
        run_kernel(parse_kernel(COPY.replace(remove, "")), [*arrays, 128], grid=1)


def test_a_barrier_before_the_wait_does_not_order_the_copy() -> None:
    wait, barrier = "  kernel.wait_async {pending = 0 : i64}\n", "  kernel.barrier\n"
    text = COPY.replace(wait + barrier, barrier + wait)
    with pytest.raises(RaceError, match="there is no barrier"):
        run_kernel(parse_kernel(text), [np.zeros(128, np.float32), np.zeros(128, np.float32), 128], grid=1)


def test_wide_accesses_are_aligned() -> None:
    text = COPY.replace("arith.xori %i, %four", "arith.xori %i, %three")
    with pytest.raises(OutOfBoundsError, match="16 bytes at element 3 are not 16-byte aligned"):
        run_kernel(parse_kernel(text), [np.zeros(128, np.float32), np.zeros(128, np.float32), 128], grid=1)
    text = COPY.replace("%x[%i], %tile", "%x[%t], %tile")
    with pytest.raises(OutOfBoundsError, match="the source of 16 bytes is not so aligned"):
        run_kernel(parse_kernel(text), [np.zeros(128, np.float32), np.zeros(128, np.float32), 128], grid=1)


# One warp: y[32 x 16] = x[32 x k] . w[k x 16], one row of shared memory per row (k major) or per k (w transposed).
MMA = """
kernel.func @product(%x: memref<?x{t}>, %w: memref<?x{t}>, %y: memref<?x{acc}>) attributes {{block_size = 32 : i64}} {{
  %zero = arith.constant {zero} : {acc}
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %width = arith.constant {width} : index
  %k = arith.constant {k} : index
  %a = kernel.shared : memref<{asize}x{t}, "shared">
  %b = kernel.shared : memref<{bsize}x{t}, "shared">
  %t = kernel.thread_id : index
  %i = arith.muli %t, %k : index
  %row = kernel.load_fragment %x[%i] {{offsets = array<i64: {ks}>}} : memref<?x{t}> -> vector<{k}x{t}>
  kernel.store_fragment %row, %a[%i] {{offsets = array<i64: {ks}>}} : vector<{k}x{t}>, memref<{asize}x{t}, "shared">
  %some = arith.constant {columns} : index
  %in = arith.cmpi slt, %t, %some : index
  scf.if %in {{
    %j = arith.muli %t, {bpitch} : index
    %col = kernel.load_fragment %w[%j] {{offsets = array<i64: {bs}>}} : memref<?x{t}> -> vector<{bn}x{t}>
    kernel.store_fragment %col, %b[%j] {{offsets = array<i64: {bs}>}} : vector<{bn}x{t}>, memref<{bsize}x{t}, "shared">
    scf.yield
  }}
  kernel.barrier
  %acc = kernel.fill_fragment %zero : {acc} -> vector<16x{acc}>
  %g = arith.divui %t, %c4 : index
  %m8 = arith.divui %t, %c8 : index
  %r8 = arith.andi %t, %c7 : index
  %m2 = arith.divui %t, %c16 : index
  %r16 = arith.andi %t, %c15 : index
  %arow = arith.muli %r16, %k : index
  %acol = arith.muli %m2, %width : index
  %ai = arith.addi %arow, %acol : index
  %af = kernel.load_matrix %a[%ai] {{count = 2 : i64, step = {astep} : i64}} : memref<{asize}x{t}, "shared"> -> vector<8xi32>
  {bindex}
  %bf = kernel.load_matrix %b[%bi] {{count = 1 : i64, step = 0 : i64, transpose = {transpose}}} : memref<{bsize}x{t}, "shared"> -> vector<4xi32>
  %d = kernel.mma {kind} %acc, %af, %bf {{rows = 2 : i64, columns = 2 : i64}} : vector<16x{acc}>, vector<8xi32>, vector<4xi32> -> vector<16x{acc}>
  %tt = arith.remui %t, %c4 : index
  %yrow = arith.muli %g, %c16 : index
  %c2 = arith.constant 2 : index
  %ycol = arith.muli %tt, %c2 : index
  %yi = arith.addi %yrow, %ycol : index
  kernel.store_fragment %d, %y[%yi] {{offsets = array<i64: {ys}>}} : vector<16x{acc}>, memref<?x{acc}>
  kernel.return
}}
"""  # noqa: E501

# Row r of the right matrix: n = 8 * (thread / 16) + thread % 8, k half (thread / 8) % 2.
_B_BY_COLUMN = """
  %h = arith.divui %t, %c8 : index
  %c1 = arith.constant 1 : index
  %h1 = arith.andi %h, %c1 : index
  %n8 = arith.muli %m2, %c8 : index
  %n = arith.addi %n8, %r8 : index
  %brow = arith.muli %n, %k : index
  %bcol = arith.muli %h1, %width : index
  %bi = arith.addi %brow, %bcol : index
"""
# Stored [k, n] and transposed by the load: k = thread % 16, n = 8 * (thread / 16).
_B_BY_ROW = """
  %brow = arith.muli %r16, %c16 : index
  %bcol = arith.muli %m2, %c8 : index
  %bi = arith.addi %brow, %bcol : index
"""


def mma_text(kind: str, by_row: bool) -> str:
    t, size = {"f16": ("f16", 2), "bf16": ("bf16", 2), "s8": ("i8", 1)}[kind]
    acc, k = "i32" if kind == "s8" else "f32", 32 // size
    columns, bn = (k, 16) if by_row else (16, k)

    def join(numbers: Sequence[int]) -> str:
        return ", ".join(map(str, numbers))

    ys = [(16 * i + 8 * s) * 16 + 8 * j + e for i in range(2) for j in range(2) for s in range(2) for e in range(2)]
    return MMA.format(
        t=t, acc=acc, zero="0" if acc == "i32" else "0.0", width=16 // size, k=k, asize=32 * k, bsize=16 * k,
        ks=join(range(k)), columns=columns, bpitch="%c16" if by_row else "%k", bs=join(range(bn)), bn=bn,
        astep=16 * k, bindex=_B_BY_ROW if by_row else _B_BY_COLUMN, transpose="true" if by_row else "false",
        kind=kind, ys=join(ys),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "by_row"), [("f16", False), ("f16", True), ("bf16", False), ("bf16", True), ("s8", False)]
)
def test_matrix_units_multiply(kind: str, by_row: bool) -> None:
    rng = np.random.default_rng(0)
    dtype = np.dtype({"f16": np.float16, "bf16": ml_dtypes.bfloat16, "s8": np.int8}[kind])
    k = 32 // dtype.itemsize
    x = rng.integers(-8, 9, (32, k)).astype(dtype)
    w = rng.integers(-8, 9, (k, 16)).astype(dtype)
    y = np.empty((32, 16), np.int32 if kind == "s8" else np.float32)
    run_kernel(parse_kernel(mma_text(kind, by_row)), [x, np.ascontiguousarray(w if by_row else w.T), y], grid=1)
    np.testing.assert_array_equal(y, x.astype(np.float64) @ w.astype(np.float64))


# Each block sends its number to all others, which add what they receive.
EXCHANGE = """
kernel.func @exchange(%words: memref<?xi32>, %y: memref<?xf16>) attributes {block_size = 32 : i64, cooperative} {
  %b = kernel.block_id {axis = 0 : i64} : index
  %t = kernel.thread_id : index
  %zero = arith.constant 0 : index
  %flag = arith.constant 65543 : index
  %number = arith.index_cast %b : index to i32
  %value = arith.sitofp %number : i32 to f16
  %first = arith.cmpi eq, %t, %zero : index
  scf.if %first {
    kernel.send_flagged %value flag %flag, %words[%b] : f16, memref<?xi32>
    %found = kernel.receive_flagged %words[%zero] flag STAMP {count = 4 : i64} : memref<?xi32> -> vector<4xf16>
    %last = kernel.fragment_element %found {position = 3 : i64} : vector<4xf16> -> f16
    kernel.store %last, %y[%b] strides [1] : f16, memref<?xf16>
  }
  kernel.return
}
"""


def test_blocks_receive_what_others_post() -> None:
    words, y = np.zeros(4, np.int32), np.zeros(4, np.float16)
    run_kernel(parse_kernel(EXCHANGE.replace("STAMP", "%flag")), [words, y], 4)
    assert y.tolist() == [3, 3, 3, 3]
    assert (words >> 16).tolist() == [7, 7, 7, 7]


def test_nobody_posts_what_is_awaited() -> None:
    words, y = np.zeros(4, np.int32), np.zeros(4, np.float16)
    with pytest.raises(KernelError, match=r"nobody has sent %words\[0\] with the flag 0"):
        run_kernel(parse_kernel(EXCHANGE.replace("STAMP", "%zero")), [words, y], 4)
