"""Layouts against NumPy: offsets, coalesced and reshaped ones, swizzles, arrays in another order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlirt.dialects.layout import Layout, Swizzle, arranged, contiguous_width, vector_width
from mlirt.dialects.symbolic import sym

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def offsets(layout: Layout) -> list[int]:
    """Those of all indices, the last mode fastest."""
    modes = layout.modes()
    shape = [int(str(size)) for size, _ in modes]
    return [
        sum(at * int(str(step)) for at, (_, step) in zip(index, modes, strict=True)) for index in np.ndindex(*shape)
    ]


def test_nested_modes_have_strides_of_their_own() -> None:
    layout = Layout((4, (2, 8)), (1, (32, 4)))
    assert [layout(i, j) for i, j in ((0, 0), (3, 0), (0, 7), (0, 8), (1, 13))] == [0, 3, 28, 32, 1 + 32 + 20]
    np.testing.assert_array_equal(layout(np.arange(4)[:, None], np.arange(16)).reshape(-1), offsets(layout))
    assert layout.size() == 64


@given(SIZES, st.data())
def test_an_order_is_that_of_a_transposed_array(shape: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    memory = np.arange(np.prod(shape)).reshape([shape[axis] for axis in order])
    assert offsets(Layout.ordered(shape, order)) == memory.transpose(np.argsort(order)).reshape(-1).tolist()


@given(SIZES, st.data())
def test_coalesced_layouts_are_the_same_function_with_fewer_modes(shape: list[int], data: st.DataObject) -> None:
    layout = Layout.ordered(shape, data.draw(st.permutations(range(len(shape)))))
    found = layout.coalesced()
    assert offsets(found) == offsets(layout)
    assert len(found.modes()) <= len(layout.modes())
    assert all(size != 1 for size, _ in found.modes())
    assert found.coalesced() == found


def test_symbolic_sizes_coalesce_and_reshape() -> None:
    n = sym("n")
    rows = Layout((n, 4, 8), (32, 8, 1))
    assert rows.coalesced() == Layout((32 * n,), (1,))
    assert rows.reshaped([n, 32]) == Layout((n, 32), (32, 1))
    padded = Layout((n, 4, 8), (64, 8, 1))
    assert padded.reshaped([n, 32]) == Layout((n, 32), (64, 1))
    assert padded.reshaped([4 * n, 8]) is None


@pytest.mark.parametrize("line", [32, 64, 128])
def test_swizzled_pieces_of_a_column_are_in_different_banks(line: int) -> None:
    swizzle = Swizzle.of_lines(line)
    assert swizzle.period == 8 * line
    tile = swizzle(np.arange(2 * swizzle.period))
    assert sorted(tile) == list(range(2 * swizzle.period))
    np.testing.assert_array_equal(tile[swizzle.period :], tile[: swizzle.period] + swizzle.period)
    assert (tile.reshape(-1, 16) == tile.reshape(-1, 16)[:, :1] + np.arange(16)).all()  # pieces stay whole
    banks = tile[::line][:8] % 128 // 16
    assert len(set(banks.tolist())) == 8
    assert Swizzle.of_lines(0)(77) == 77


def test_an_arranged_array_has_its_elements_at_the_offsets_of_a_layout() -> None:
    array = np.arange(40 * 3).reshape(40, 3)
    found = arranged(array, "(b l) c", "b c l", l=16)
    assert found.shape == (3, 3, 16)
    layout = Layout(((3, 16), 3), ((48, 1), 16))
    flat = found.reshape(-1)
    for i, c in np.ndindex(48, 3):
        assert flat[layout(i, c)] == (array[i, c] if i < 40 else 0)
    np.testing.assert_array_equal(arranged(found, "b c l", "(b l) c")[:40], array)


def test_leading_dimensions_stay_and_nothing_is_copied_without_need() -> None:
    array = np.arange(2 * 3 * 4 * 6).reshape(2, 3, 4, 6)
    found = arranged(array, "... d (p n)", "... p d n", n=3)
    np.testing.assert_array_equal(found, array.reshape(2, 3, 4, 2, 3).swapaxes(2, 3))
    assert np.shares_memory(found, array)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 64), min_size=1, max_size=4))
def test_a_vector_divides_all(numbers: list[int]) -> None:
    width = vector_width(16, *numbers)
    assert all(number % width == 0 for number in numbers)
    assert width == 16 or any(number % (2 * width) for number in numbers)


def test_widths_of_symbols_and_of_offsets() -> None:
    assert vector_width(8, 4 * sym("n"), 16) == 4
    assert vector_width(8, sym("n")) == 1
    assert vector_width(0) == 1
    assert contiguous_width([0, 1, 2, 3, 8, 9, 10, 11], 8) == 4
    assert contiguous_width([0, 1, 4, 5], 8) == 2
    assert contiguous_width([0, 2], 8) == 1
