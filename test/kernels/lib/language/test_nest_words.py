"""The words for loop nests: where an element of an operand lies."""

from __future__ import annotations

import numpy as np
from read_kernels import MEMORY, read, text_of

from mlirt.dialects.kernel.interpreter import run_kernel
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.nest_words import linear_index
from mlirt.kernels.lib.language.simt_words import thread_id
from mlirt.kernels.lib.loops.loop_nest import Affine


def test_an_element_lies_at_the_sum_of_index_times_step() -> None:
    @kernel
    def gather(x: Value, y: Value) -> None:
        thread = thread_id()
        y[thread] = x[linear_index(Affine(x, (10, 0, 1)), [thread // 3, thread, thread % 3])]

    x, y = np.arange(40, dtype=np.float32), np.zeros(12, np.float32)
    run_kernel(read(gather, MEMORY, MEMORY, target="cuda"), [x, y], grid=1, block=12)
    assert np.array_equal(y, x.reshape(4, 10)[:, :3].reshape(-1))


def test_an_operand_that_no_index_moves_has_one_element() -> None:
    @kernel
    def same(x: Value, y: Value) -> None:
        y[thread_id()] = x[linear_index(Affine(x, (0, 0)), [thread_id(), thread_id()])]

    assert "muli" not in text_of(read(same, MEMORY, MEMORY, target="cuda"))
