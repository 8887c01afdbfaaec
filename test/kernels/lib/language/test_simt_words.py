"""The words for threads of GPUs, on the SIMT interpreter: shuffles, shared memory with barriers, fragments."""

from __future__ import annotations

from typing import Any

import numpy as np
from read_kernels import MEMORY, read, text_of
from xdsl.dialects.builtin import f32

from mlirt.dialects.kernel.interpreter import run_kernel
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.simt_words import (
    Access,
    block_id,
    commit_copies,
    copy_async,
    count_where,
    element_at,
    elementwise,
    filled,
    fragment,
    load_fragment,
    reuse_shared,
    shared_memory,
    shuffle_xor,
    store_fragment,
    sync_threads,
    thread_id,
    wait_for_copies,
)
from mlirt.kernels.lib.language.words import static_range

_WARP = 32


def _run(function: Any, count: int, threads: int = _WARP) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What a kernel of one block writes, and what it reads."""
    made = read(function, MEMORY, MEMORY, target="cuda")
    x, y = np.random.default_rng(0).standard_normal(count).astype(np.float32), np.zeros(count, np.float32)
    run_kernel(made, [x, y], grid=1, block=threads, updated=[1])
    return y, x


def test_an_all_reduction_by_shuffles() -> None:
    @kernel
    def total(x: Value, y: Value) -> None:
        lane = thread_id() + block_id() * _WARP
        number = x[lane]
        for mask in (16, 8, 4, 2, 1):
            number = number + shuffle_xor(number, mask)
        y[lane] = number

    y, x = _run(total, _WARP)
    assert np.allclose(y, x.sum(), atol=1e-5)


def test_threads_of_other_warps_are_read_behind_a_barrier() -> None:
    @kernel
    def reverse(x: Value, y: Value) -> None:
        thread = thread_id()
        shared = shared_memory("shared", 2 * _WARP, f32)
        shared[thread] = x[thread]
        sync_threads()
        y[thread] = shared[2 * _WARP - 1 - thread]

    y, x = _run(reverse, 2 * _WARP, 2 * _WARP)
    assert np.array_equal(y, x[::-1])


def test_fragments_end_where_their_elements_do() -> None:
    @kernel
    def double(x: Value, y: Value) -> None:
        def twice(number: Value) -> Value:
            return number + number

        first = thread_id() * 4
        access = Access(static_range(4), valid=max(min(10 - first, 4), 0), wide=True)
        numbers = elementwise(twice, f32, load_fragment(x, first, access))
        backwards = [element_at(numbers, 3 - place) for place in static_range(4)]
        again = fragment(backwards[::-1])
        store_fragment(again, y, first, access)

    y, x = _run(double, 4 * _WARP)
    assert np.array_equal(y[:10], 2 * x[:10])
    assert not y[10:].any()


def test_names_of_threads_and_memory_are_in_the_text() -> None:
    @kernel
    def first(x: Value, y: Value) -> None:
        thread = thread_id()
        shared = shared_memory("tile", _WARP, f32)
        shared[thread] = x[thread]
        sync_threads()
        y[thread] = shared[0]

    text = text_of(read(first, MEMORY, MEMORY, target="cuda"))
    assert "%thread = kernel.thread_id" in text
    assert "%tile = kernel.shared" in text


def test_asynchronous_copies_fill_up_with_zeros() -> None:
    @kernel
    def copies(x: Value, y: Value) -> None:
        thread = thread_id()
        shared = shared_memory("shared", 2 * _WARP, f32)
        copy_async(x, thread, shared, thread, 1, count_where(thread < 5, 1))
        copy_async(x, thread, shared, thread, 1, count_where(True, 1), (_WARP, _WARP))
        commit_copies()
        wait_for_copies(0)
        sync_threads()
        y[thread], y[thread + _WARP] = shared[thread], shared[thread + _WARP]

    y, x = _run(copies, 2 * _WARP)
    assert np.array_equal(y, np.where((np.arange(2 * _WARP) < 5) | (np.arange(2 * _WARP) >= _WARP), x, 0))


def test_shared_memory_is_used_again() -> None:
    @kernel
    def twice(x: Value, y: Value) -> None:
        thread = thread_id()
        first = shared_memory("first", _WARP, f32)
        first[thread] = x[thread]
        sync_threads()
        neighbour = first[_WARP - 1 - thread]
        sync_threads()
        second = reuse_shared("second", first, _WARP, f32)
        second[thread] = neighbour + 1.0
        sync_threads()
        y[thread] = second[_WARP - 1 - thread]

    y, x = _run(twice, _WARP)
    assert np.array_equal(y, x + 1)
    text = text_of(read(twice, MEMORY, MEMORY, target="cuda"))
    assert "%second = kernel.reuse_shared" in text
    assert text.count("kernel.shared") == 1


def test_a_fragment_of_equal_numbers() -> None:
    @kernel
    def fill(x: Value, y: Value) -> None:
        store_fragment(filled(-2.5, f32, 4), y, thread_id() * 4, Access(static_range(4)))

    y, _ = _run(fill, 4 * _WARP)
    assert (y == -2.5).all()


def test_blocks_have_numbers_along_each_axis_of_their_grid() -> None:
    @kernel
    def number(x: Value, y: Value) -> None:
        here = (block_id(2) * 2 + block_id(1)) * 3 + block_id()
        y[here] = x[here]

    x = np.arange(12, dtype=np.float32)
    y = np.zeros_like(x)
    run_kernel(read(number, MEMORY, MEMORY, target="cuda"), [x, y], grid=(3, 2, 2), block=1)
    assert np.array_equal(y, x)


def test_what_is_known_needs_no_count() -> None:
    assert count_where(True, 4) is None
    assert count_where(False, 4) == 0
