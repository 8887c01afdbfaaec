"""Merging loops: neighbours that every operand walks through like one become one, with symbolic sizes too."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects import test as placeholder
from xdsl.dialects.builtin import f32

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.tensor_types import strides, tensor
from mlirt.kernels.lib.builder.placement import Placement
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, affine, collapse


def _dims(*sizes: int | str) -> list[Dim]:
    return [parse(size) if isinstance(size, str) else size for size in sizes]


def _operand(sizes: Sequence[Dim], indices: Sequence[Dim], rank: int) -> Affine:
    """A dense tensor read by an access."""
    type_ = tensor(f32, sizes)
    value = placeholder.TestOp(result_types=[type_]).results[0]
    return affine(value, Placement(value, 0, strides(type_)[0]), AccessAttr.of(indices), rank)


def _dense(sizes: Sequence[Dim]) -> Affine:
    return _operand(sizes, [parse(f"d{k}") for k in range(len(sizes))], len(sizes))


@pytest.mark.parametrize("sizes", [(2, 3, 4), ("n", 3, "m"), (1, "n", 1, "m"), (7,)])
def test_a_dense_walk_is_one_loop(sizes: tuple[int | str, ...]) -> None:
    space = _dims(*sizes)
    nest = collapse(Nest.of(space, [_dense(space), _dense(space)]))
    assert len(nest.extents) == 1
    assert [one.steps for one in nest.operands] == [(1,), (1,)]


def test_nothing_is_left_of_dimensions_of_length_one() -> None:
    space = _dims(1, 1)
    assert collapse(Nest.of(space, [_dense(space)])).extents == ()


def test_a_broadcast_keeps_its_dimension_apart() -> None:
    space = _dims("n", "c", "h", "w")
    bias = _operand(_dims("c"), _dims("d1"), 4)
    nest = collapse(Nest.of(space, [_dense(space), bias]))
    assert nest.groups == ((0,), (1,), (2, 3))
    assert [str(size) for size in nest.extents] == ["n", "c", "h*w"]
    assert [str(step) for step in nest.operands[1].steps] == ["0", "1", "0"]


def test_a_scalar_goes_along_with_everything() -> None:
    space = _dims("n", "c")
    nest = collapse(Nest.of(space, [_dense(space), _operand((), (), 2)]))
    assert nest.groups == ((0, 1),)
    assert nest.operands[1].steps == (0,)


def test_a_transposition_stays_two_loops() -> None:
    space = _dims("n", "m")
    nest = collapse(Nest.of(space, [_operand(_dims("m", "n"), _dims("d1", "d0"), 2), _dense(space)]))
    assert nest.groups == ((0,), (1,))
    assert [str(step) for step in nest.operands[0].steps] == ["1", "n"]


def test_a_transposition_of_groups_merges_inside_of_them() -> None:
    space = _dims("n", "h", "w", "c")
    picture = _operand(_dims("n", "c", "h", "w"), _dims("d0", "d3", "d1", "d2"), 4)
    assert collapse(Nest.of(space, [picture, _dense(space)])).groups == ((0,), (1, 2), (3,))


def test_offsets_of_slices_and_reversals() -> None:
    space = _dims("n - 2", 3)
    operand = _operand(_dims("n", 3), _dims("d0 + 2", "2 - d1"), 2)
    assert operand.offset == 8
    assert operand.steps == (3, -1)
    # A slice of whole rows would merge, a reversed row does not.
    assert collapse(Nest.of(space, [operand, _dense(space)])).groups == ((0,), (1,))


def test_dimensions_whose_index_is_needed_stay() -> None:
    space = _dims("n", 1, "m", 4)
    nest = collapse(Nest.of(space, [_dense(space)]), keep=frozenset({1, 2}))
    assert nest.groups == ((0,), (1,), (2,), (3,))


def test_no_merge_crosses_a_border() -> None:
    space = _dims("n", 2, "k", 3)
    assert collapse(Nest.of(space, [_dense(space)]), borders=frozenset({2})).groups == ((0, 1), (2, 3))
