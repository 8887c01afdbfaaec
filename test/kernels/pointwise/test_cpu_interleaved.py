"""Pointwise ops that interleave rows of an operand, compiled, against the meaning of the op."""

from __future__ import annotations

import pytest
from cpu_kernel_runs import widths
from pointwise_case import PointwiseCase
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp

INTERLEAVED = {
    "two rows": PointwiseCase((3, 40, 2), (("d2", "d0", "d1"),)),
    "pixels from channels": PointwiseCase((2, 5, 7, 3, 11, 3), (("d0", "d1", "d3", "d5", "d2", "d4"),)),
    "with a sum and a bias": PointwiseCase((4, 33, 2), (("d2", "d0", "d1"), ("d0", "d1", "d2"), ("d0", "0", "0"))),
    "more than a task": PointwiseCase((2, 700, 4), (("d0", "d2", "d1"),)),
    "two operands": PointwiseCase((21, 7), (("d1", "d0"), ("d1", "d0"))),
    "sizes known at run time": PointwiseCase((3, 18, 2), (("d2", "d0", "d1"),), ("n", "m", 2)),
}
LEFT = {
    "neighbours stay neighbours": PointwiseCase((3, 40, 2), (("d1", "d0", "d2"),)),
    "a vector of neighbours": PointwiseCase((40, 16), (("d1", "d0"),)),
    "as many neighbours as the run says": PointwiseCase((40, 2), (("d1", "d0"),), (40, "m")),
}


def _families(module: ModuleOp) -> set[str]:
    return {op.sym_name.data.rsplit("_", 1)[0] for op in module.walk() if isinstance(op, FuncOp)}


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("name", INTERLEAVED)
def test_rows_are_interleaved(name: str, bits: int) -> None:
    assert _families(INTERLEAVED[name].check(bits)) == {"interleaved"}


@pytest.mark.parametrize("name", LEFT)
def test_other_ops_are_left_to_other_tactics(name: str) -> None:
    assert "interleaved" not in _families(LEFT[name].lowered(512))
