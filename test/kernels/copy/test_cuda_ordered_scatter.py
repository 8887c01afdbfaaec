"""Scatters whose updates meet, on the interpreter of GPU kernels: those of one place are applied in order."""

from __future__ import annotations

import numpy as np
import pytest
from fused_network import check, random_array, t

from mlirt.dialects.fused.scatter import ScatterOp
from mlirt.dialects.indexing import ScatterMode, ScatterReduction

RNG = np.random.default_rng(3)
TOLERANCE = {"float32": 1e-5, "float16": 2e-2, "int32": 0.0}
KINDS = [
    *(("float32", kind) for kind in ScatterReduction),
    ("float16", ScatterReduction.ADD),
    ("int32", ScatterReduction.NONE),
    ("int32", ScatterReduction.MUL),
]


@pytest.mark.parametrize(("element", "reduction"), KINDS)
@pytest.mark.parametrize("tail", [(), (2, 5)])
def test_slices(element: str, reduction: ScatterReduction, tail: tuple[int, ...]) -> None:
    """More updates than a block has threads, for fewer places; some have none."""
    updates = random_array(RNG, element, (2, 150, *tail))
    check(
        [t(element, 5, 4, *tail), t("int64", 2, 150, 2), t(element, 2, 150, *tail)],
        lambda network: [network.add(ScatterOp(*network.triple, ScatterMode.ND, reduction=reduction))],
        [random_array(RNG, element, (5, 4, *tail)), RNG.integers(-7, 7, (2, 150, 2)), updates],
        rtol=TOLERANCE[element],
        atol=TOLERANCE[element] or 1e-6,
    )


@pytest.mark.parametrize(("element", "reduction"), KINDS)
@pytest.mark.parametrize("axis", [0, 1])
def test_elements(element: str, reduction: ScatterReduction, axis: int) -> None:
    """Each row, or column, has updates of its own, with 32-bit indices."""
    shape = (300, 3) if axis == 0 else (3, 300)
    updates, indices = random_array(RNG, element, shape), RNG.integers(-7, 7, shape).astype(np.int32)
    check(
        [t(element, 5, 5), t("int32", *shape), t(element, *shape)],
        lambda network: [network.add(ScatterOp(*network.triple, axis=axis, reduction=reduction))],
        [random_array(RNG, element, (5, 5)), indices, updates],
        rtol=TOLERANCE[element],
        atol=TOLERANCE[element] or 1e-6,
    )


def test_updates_of_unknown_number() -> None:
    """Their typical number decides; of none nothing is left to do."""
    network = [t("float32", 5, 3), t("int64", "n", 1), t("float32", "n", 3)]
    for count in (0, 1, 257):
        arrays = [random_array(RNG, "float32", (5, 3)), RNG.integers(-6, 6, (count, 1))]
        check(
            network,
            lambda network: [network.add(ScatterOp(*network.triple, ScatterMode.ND, reduction=ScatterReduction.ADD))],
            [*arrays, random_array(RNG, "float32", (count, 3))],
        )
