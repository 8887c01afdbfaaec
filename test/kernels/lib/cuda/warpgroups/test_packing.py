"""Known operands in the order in which threads get their accumulators."""

from __future__ import annotations

import numpy as np
import pytest

from mlirt.kernels.lib.cuda.warpgroups.packing import in_fragment_order, packed_rows


@pytest.mark.parametrize("width", [4, 8, 16])
@pytest.mark.parametrize("count", [5, 32, 70])
def test_a_thread_gets_neighbouring_columns(count: int, width: int) -> None:
    columns = np.arange(1, count + 1)[:, None] * np.ones((1, 3), int)
    given, group = in_fragment_order(columns, width), 4 * width
    assert len(given) % group == 0
    groups, blocks = range(len(given) // group), range(width // 2)
    for thread in range(4):
        own = [given[group * k + 8 * j + 2 * thread + e, 0] for k in groups for j in blocks for e in (0, 1)]
        wanted = [group * k + width * thread + place + 1 for k in groups for place in range(width)]
        assert own == [column if column <= count else 0 for column in wanted]


def test_batches_keep_their_columns() -> None:
    columns = np.random.default_rng(0).standard_normal((2, 3, 40, 8))
    np.testing.assert_array_equal(in_fragment_order(columns, 8)[1, 2], in_fragment_order(columns[1, 2], 8))


def test_rows_are_filled_up_to_whole_pieces() -> None:
    packed = packed_rows(np.ones((4, 5), np.float16))
    assert packed.shape == (4, 8)
    assert packed.sum() == 20
