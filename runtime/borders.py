"""The borders of a plan's buffers: which launches write them again, and the numbers by which they do so.

A buffer whose border can be written again shares memory with any other buffer. On a GPU, and where a plugin is the
first to touch a buffer, none is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.runtime.border_writers import first_touches
from mlirt.runtime.expressions import ExpressionError
from mlirt.runtime.formula_table import EvaluatedFormulas, FormulaTable
from mlirt.runtime.manifest import BORDER_NUMBERS, Manifest


class Borders:
    """What of borders is the same for all shapes."""

    def __init__(self, manifest: Manifest, table: FormulaTable) -> None:
        buffers = manifest.buffers
        has_border = [i for i, one in enumerate(buffers) if one.border and one.view_of is None]
        touches = first_touches(manifest, has_border) if manifest.target.kind == "cpu" else []
        hosted = manifest.hosted
        of_plugins = {buffer for launch, buffer in touches if launch in hosted}
        self.buffers = [buffer for buffer in dict.fromkeys(b for _, b in touches) if buffer not in of_plugins]
        """The buffers that have one."""
        place = {buffer: k for k, buffer in enumerate(self.buffers)}
        self.writers = sorted((launch, place[buffer]) for launch, buffer in touches if buffer in place)
        """The launches that write the border of one of `buffers`, by its place there, before all else."""
        rows = [[table.add(number) for number in buffers[i].border] for i in self.buffers]
        # Most borders of a network have the same numbers as others: these are looked at once.
        alike: dict[tuple[int, ...], int] = {}
        given = ((buffers[i].fill, table.add(buffers[i].size)) for i in self.buffers)
        described = [(*row, *one) for row, one in zip(rows, given, strict=True)]
        self._which = np.array([alike.setdefault(one, len(alike)) for one in described], np.intp)
        self._formulas = [one[:BORDER_NUMBERS] for one in alike]
        self._fills = [one[BORDER_NUMBERS] for one in alike]
        first = dict(zip(reversed(self._which.tolist()), reversed(self.buffers), strict=True))
        self._first = [first[k] for k in range(len(alike))]
        """The first buffer of each kind."""

    def numbers(self, evaluated: EvaluatedFormulas, sizes: np.ndarray) -> np.ndarray:
        """For each border images, rows, bytes of a row, rows above, bytes beside and the byte that fills it.

        Buffers without bytes have no images. Raises ExpressionError where a border does not lie in its buffer.
        """
        described = zip(self._first, self._formulas, self._fills, strict=True)
        found = [_numbers(evaluated, int(sizes[i]), i, formulas, fill) for i, formulas, fill in described]
        return np.array(found, np.int64).reshape(-1, BORDER_NUMBERS + 1)[self._which]


def _numbers(
    evaluated: EvaluatedFormulas, held: int, buffer: int, formulas: Sequence[int], fill: int
) -> tuple[int, ...]:
    """The numbers of one border, in Python: few are different, and these are small."""
    if not held:
        return (0,) * (BORDER_NUMBERS + 1)
    found = (*evaluated.numbered(formulas), fill)
    images, rows, row, above, beside, _ = found
    is_whole = min(found) >= 0 and images * (rows + 2 * above) * row == held
    if not is_whole or 2 * beside > row or beside > (rows + above) * row:
        raise ExpressionError(f"the border of buffer {buffer} does not lie in its {held} bytes")
    return found
