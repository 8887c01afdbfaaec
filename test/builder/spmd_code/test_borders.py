"""The kernel that writes borders: every cell of them, nothing else, and then it calls the other kernel."""

import ctypes

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tiny_plan import compile_ir

from mlirt.builder.spmd_main import main_object
from mlirt.runtime.llvm_binding import llvm
from mlirt.runtime.object_linker import LinkedCode
from mlirt.runtime.worker_pool import BORDERED

# params: an array of words; the word of the part becomes the number of parts
_MARK = """
define void @mark(ptr %p, i64 %part, i64 %parts) {
  %at = getelementptr i64, ptr %p, i64 %part
  store i64 %parts, ptr %at
  ret void
}
"""
_CODE = LinkedCode(
    {"main": memoryview(main_object(llvm().get_process_triple())), "mark": memoryview(compile_ir(_MARK))},
    [("main", BORDERED), ("mark", "mark")],
)
_WORD = ctypes.c_int64
_BORDERED = ctypes.CFUNCTYPE(None, _WORD, _WORD, _WORD)(_CODE.addresses["main", BORDERED])


@st.composite
def images(draw: st.DrawFn) -> tuple[int, int, int, int, int, int, int]:
    """Images, rows and pixels of each, rows and pixels of border, bytes of a pixel, what fills it."""
    small, cells = st.integers(0, 5), st.integers(0, 3)
    return (draw(small), draw(small), draw(small), draw(cells), draw(cells), draw(st.sampled_from([1, 4, 64])), 200)


@given(st.lists(images(), max_size=3), st.integers(1, 5))
def test_the_border_is_written_and_nothing_else(cases: list[tuple[int, ...]], parts: int) -> None:
    memories: list[np.ndarray] = []
    wanted: list[np.ndarray] = []
    words = [0, 0, len(cases)]
    for count, rows, pixels, above, beside, width, fill in cases:
        shape = (count, rows + 2 * above, pixels + 2 * beside, width)
        memory = np.random.default_rng(0).integers(0, 100, shape, np.uint8)
        want = np.full_like(memory, fill)
        inside = (slice(None), slice(above, above + rows), slice(beside, beside + pixels))
        want[inside] = memory[inside]
        memories.append(np.concatenate([np.full(64, 7, np.uint8), memory.reshape(-1), np.full(64, 7, np.uint8)]))
        wanted.append(want)
        images = count if memory.size else 0
        row = (pixels + 2 * beside) * width
        words += [memories[-1].ctypes.data + 64, images, rows, row, above, beside * width, fill]
    marks = np.zeros(parts, np.int64)
    words[:2] = _CODE.addresses["mark", "mark"], marks.ctypes.data
    parameters = np.array(words, np.int64)
    for part in range(parts):
        _BORDERED(parameters.ctypes.data, part, parts)
    for memory, want in zip(memories, wanted, strict=True):
        np.testing.assert_array_equal(memory[64:-64], want.reshape(-1))
        assert (memory[:64] == 7).all()
        assert (memory[-64:] == 7).all()
    assert (marks == parts).all()
