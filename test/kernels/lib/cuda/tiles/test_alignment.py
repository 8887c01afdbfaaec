"""Lengths that are multiples of a number whatever their symbols stand for."""

from __future__ import annotations

import pytest

from mlirt.dialects.symbolic import Dim, sym
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple

N = sym("n")


@pytest.mark.parametrize("length", [0, 48, 16 * N, 2304 * N * sym("m") + 32, -16 * N])
def test_multiples(length: Dim) -> None:
    assert is_multiple(length, 16)


@pytest.mark.parametrize("length", [8, N, 24 * N, 16 * N + 8])
def test_others(length: Dim) -> None:
    assert not is_multiple(length, 16)
