"""Pointwise ops whose operand lies across the result, compiled, against the meaning of the op."""

from __future__ import annotations

import pytest
from cpu_kernel_runs import widths
from pointwise_case import PointwiseCase

from mlirt.dialects.kernel.tile_loads import TileLoadTransposedOp

TRANSPOSED = {
    "whole squares": PointwiseCase((32, 48), (("d1", "d0"),)),
    "parts of squares": PointwiseCase((37, 19), (("d1", "d0"),)),
    "channels to the front": PointwiseCase((2, 24, 5, 11), (("d0", "d2", "d3", "d1"),)),
    "with a sum and a bias": PointwiseCase((3, 33, 40), (("d0", "d2", "d1"), ("d0", "d1", "d2"), ("0", "d1", "0"))),
    "more than a task": PointwiseCase((9, 1100), (("d1", "d0"),)),
    "sizes known at run time": PointwiseCase((21, 18), (("d1", "d0"), ("d0", "d1")), ("n", "m")),
}
LEFT = {
    "nothing lies across": PointwiseCase((32, 48), (("d0", "d1"),)),
    "a short side": PointwiseCase((3, 48), (("d1", "d0"),)),
    "two operands lie across": PointwiseCase((32, 48), (("d1", "d0"), ("d1", "d0"))),
}


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("name", TRANSPOSED)
def test_squares_are_transposed(name: str, bits: int) -> None:
    assert any(isinstance(op, TileLoadTransposedOp) for op in TRANSPOSED[name].check(bits).walk())


@pytest.mark.parametrize("name", LEFT)
def test_other_ops_are_loop_nests(name: str) -> None:
    assert not any(isinstance(op, TileLoadTransposedOp) for op in LEFT[name].lowered(512).walk())
