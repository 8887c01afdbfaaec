"""Padding by contiguous segments, compiled for the CPU, against the meaning of the op: every mode, every kind of row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from compiled_ops import check_compiled
from cpu_kernel_runs import MAX_WIDTH, widths
from fused_network import Network, dim, random_array, t
from xdsl.ir import SSAValue

from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.slicing import PadMode

RNG = np.random.default_rng(4)
MODES = list(PadMode)


def padded(
    shape: Sequence[int],
    pre: Sequence[int | str],
    out: Sequence[int | str],
    mode: PadMode,
    *,
    names: Sequence[int | str] | None = None,
    element: str = "float32",
    bits: int = MAX_WIDTH,
    stride: Sequence[int] | None = None,
) -> set[str]:
    def build(network: Network) -> list[SSAValue]:
        places = [dim(one) for one in pre]
        return [network.add(PadOp(network.inputs[0], places, t(element, *out), mode, stride=stride))]

    return check_compiled([t(element, *(names or shape))], build, [random_array(RNG, element, tuple(shape))], bits)


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("mode", MODES)
def test_modes(mode: PadMode, bits: int) -> None:
    assert padded((2, 5, 37), (0, 2, 3), (2, 9, 51), mode, bits=bits) == {"segments"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("element", ["float64", "float16", "int8", "bool", "int64"])
def test_element_types(mode: PadMode, element: str) -> None:
    assert padded((3, 21), (1, 20), (5, 70), mode, element=element) == {"segments"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("pre", "length", "out"), [(-3, 40, 30), (-3, 40, 50), (9, 2, 60), (4, 1, 19), (100, 33, 260)])
def test_crops_and_many_repetitions(mode: PadMode, pre: int, length: int, out: int) -> None:
    assert padded((3, length), (0, pre), (3, out), mode) == {"segments"}


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_several_tasks(mode: PadMode) -> None:
    assert padded((5000,), (777,), (10001,), mode) == {"segments"}


@pytest.mark.parametrize("mode", MODES)
def test_sizes_of_the_run(mode: PadMode) -> None:
    assert padded((4, 19), ("n", "m"), ("3*n", "3*m"), mode, names=("n", "m")) == {"segments"}


@pytest.mark.parametrize("mode", [PadMode.CONSTANT, PadMode.WRAP])
def test_what_moves_with_an_axis_is_part_of_its_segments(mode: PadMode) -> None:
    assert padded((3, 7, 5), (0, 4, 0), (3, 25, 5), mode) == {"segments"}


def test_a_fill_that_is_given() -> None:
    def build(network: Network) -> list[SSAValue]:
        x, fill = network.inputs
        return [network.add(PadOp(x, [1, 5], t("float32", 5, 40), PadMode.CONSTANT, fill))]

    inputs = [random_array(RNG, "float32", (3, 30)), np.full(1, 7, np.float32)]
    assert check_compiled([t("float32", 3, 30), t("float32", 1)], build, inputs) == {"segments"}


@pytest.mark.parametrize("mode", [PadMode.EDGE, PadMode.REFLECT])
def test_rows_that_are_copies_are_left_to_other_tactics(mode: PadMode) -> None:
    assert padded((3, 5, 33), (0, 2, 0), (3, 9, 33), mode) == {"pad"}


def test_rows_with_strides_are_left_to_other_tactics() -> None:
    assert padded((3, 33), (0, 2), (3, 20), PadMode.WRAP, stride=(1, 2)) == {"pad"}
