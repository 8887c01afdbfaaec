"""Tiles that threads write and matrix units read: forgotten fences and stages that are written too early are found."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_text import parse_kernel

from mlirt.dialects.kernel.interpreter import run_kernel
from mlirt.dialects.kernel.interpreter_memory import RaceError

TEXT = """
kernel.func @product(%x: memref<?xf16>, %y: memref<?xf32>) attributes {block_size = 128 : i64} {
  %0 = arith.constant 0 : index
  %8 = arith.constant 8 : index
  %line = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %tile = kernel.shared {alignment = 1024 : i64} : memref<8192xf16, "shared">
  %t = kernel.thread_id : index
  %at = arith.muli %t, %line : index
  %chunk = arith.remui %t, %8 : index
  %own = arith.muli %chunk, %8 : index
  %start = arith.xori %at, %own : index
  %v = kernel.load_fragment %x[%at] {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>} : memref<?xf16> -> vector<8xf16>
  %z = arith.constant 0.0 : f16
  %rest = kernel.fill_fragment %z : f16 -> vector<64xf16>
  kernel.store_fragment %rest, %tile[%at] {offsets = array<i64: LINE>} : vector<64xf16>, memref<8192xf16, "shared">
  kernel.store_fragment %v, %tile[%start] {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>} :
    vector<8xf16>, memref<8192xf16, "shared">
  // written
  kernel.async_fence
  kernel.barrier
  %c = kernel.fill_fragment %zero : f32 -> vector<32xf32>
  %d = kernel.warpgroup_mma f16 %c, %tile[%0], %tile[%line] {columns = 64 : i64, right_step = 8 : i64} :
    vector<32xf32>, memref<8192xf16, "shared">, memref<8192xf16, "shared"> -> vector<32xf32>
  // multiplied
  kernel.warpgroup_wait {pending = 0 : i64}
  // done
  %e = kernel.warpgroup_accumulators %d : vector<32xf32> -> vector<32xf32>
  %p = kernel.fragment_part %e {position = 0 : i64} : vector<32xf32> -> vector<1xf32>
  kernel.store_fragment %p, %y[%t] {offsets = array<i64: 0>} : vector<1xf32>, memref<?xf32>
  kernel.return
}
""".replace("LINE", ", ".join(map(str, range(64))))
STORE = """kernel.store_fragment %v, %tile[%start] {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>} :
    vector<8xf16>, memref<8192xf16, "shared">"""


def run(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Eight elements of each of 128 lines, and the first sum of each thread."""
    x = np.random.default_rng(0).standard_normal((128, 64)).astype(np.float16)
    y = np.zeros(128, np.float32)
    run_kernel(parse_kernel(text), [x.reshape(-1), y], (1,))
    return x[:, :8].astype(np.float64), y


def test_a_right_tile_may_start_at_any_line() -> None:
    lines, y = run(TEXT)
    want = lines[:64] @ lines[1:65].T
    warp, group, pair = np.arange(128) // 32, np.arange(128) % 32 // 4, np.arange(128) % 4
    np.testing.assert_allclose(y, want[16 * warp + group, 2 * pair], rtol=1e-5, atol=1e-3)


MISTAKES = {
    "no fence": ("  kernel.async_fence\n", "", "without a fence"),
    "a fence of other threads": (
        "  kernel.async_fence\n",
        "  %first = arith.cmpi ult, %t, %8 : index\n  scf.if %first {\n    kernel.async_fence\n  }\n",
        "without a fence",
    ),
    "a fence before the writes": (
        "  // written\n  kernel.async_fence\n",
        f"  kernel.async_fence\n  {STORE}\n",
        "without a fence",
    ),
    "a stage is written too early": ("// multiplied", STORE, "while a matrix unit may still read it"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(mistake: str) -> None:
    before, after, message = MISTAKES[mistake]
    assert before in TEXT
    with pytest.raises(RaceError, match=message):
        run(TEXT.replace(before, after, 1))


def test_a_stage_may_be_written_again_behind_the_product() -> None:
    run(TEXT.replace("// done", STORE, 1))
