"""Registers that warpgroups give to others: no more than a block has, and none where few are needed."""

from __future__ import annotations

import pytest

from mlirt.dialects.device_files import gpu_device
from mlirt.kernels.attention.cuda.group_shape import group_shapes
from mlirt.kernels.attention.cuda.register_shares import SHARES, are_given, even_share, most_registers


@pytest.mark.parametrize("groups", SHARES)
def test_warpgroups_take_what_others_leave(groups: int) -> None:
    """One that asks for more than the block started with waits for ever."""
    copying, multiplying = SHARES[groups]
    assert copying < even_share(groups) < multiplying
    assert copying + groups * multiplying <= (groups + 1) * even_share(groups)
    assert copying % 8 == multiplying % 8 == 0
    assert most_registers(groups, fixed=True) == even_share(groups)
    assert most_registers(groups, fixed=False) == multiplying


def test_blocks_that_need_few_leave_room_for_the_next_launch() -> None:
    assert not are_given(2, 84)
    assert are_given(2, 85)
    assert not are_given(1, 200)  # nobody would have to give any


@pytest.mark.parametrize("width", [64, 96, 128])
def test_shapes_fit_into_the_registers_that_there_are(width: int) -> None:
    device = gpu_device("h200")
    fixed, given = (group_shapes(width, width, device, fixed=one) for one in (True, False))
    assert {*fixed} < {*given}
    for shape in {*given} - {*fixed}:
        assert shape.held(width) <= even_share(shape.groups) < most_registers(shape.groups, fixed=False)
        assert are_given(shape.groups, shape.held(width))
