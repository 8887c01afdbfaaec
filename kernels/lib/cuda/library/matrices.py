"""Operands of a product as libraries take them: batches of matrices with one step between lines and one between
matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mlirt.dialects.symbolic import Dim, product
from mlirt.kernels.lib.builder.placement import Placement


@dataclass(frozen=True)
class Matrices:
    """Steps in elements. A line is a row, or a column of `transposed` matrices; a batch of 1 has the step 0."""

    place: Placement
    transposed: bool
    line: Dim
    matrix: Dim = 0
    batch: Dim = 1


def matrices(place: Placement, sizes: Sequence[Dim], axes: tuple[int, int]) -> Matrices | None:
    """A tensor whose `axes` are the rows and columns of matrices; None where lines or matrices lie at several steps."""
    steps = place.strides
    row, column = axes
    if steps[column] == 1 or sizes[column] == 1:
        transposed, line, length = False, steps[row], sizes[column]
        alone = sizes[row] == 1
    elif steps[row] == 1 or sizes[row] == 1:
        transposed, line, length = True, steps[column], sizes[row]
        alone = sizes[column] == 1
    else:
        return None
    line = length if alone else line
    if isinstance(line, int) and isinstance(length, int) and line < max(length, 1):
        return None
    batch = [axis for axis in range(len(sizes) - 2) if sizes[axis] != 1]
    if any(steps[outer] != steps[inner] * sizes[inner] for outer, inner in pairwise(batch)):
        return None
    step = steps[batch[-1]] if batch else 0
    return Matrices(place, transposed, line, step, product([sizes[axis] for axis in batch]))


def joined(one: Matrices, rows: Dim) -> Matrices | None:
    """A batch as one matrix with all the rows; None where the rows do not follow each other at one step."""
    if one.batch != 1 and (one.transposed or one.matrix != one.line * rows):
        return None
    return replace(one, matrix=0, batch=1)
