"""The borders of a plan's buffers: which launches write them again, and the numbers by which they do so.

A buffer whose border can be written again shares memory with any other buffer. On a GPU, and where a plugin is the
first to touch a buffer, none is.
"""

from __future__ import annotations

import numpy as np

from mlirt.runtime.border_writers import first_touches
from mlirt.runtime.expressions import ExpressionError
from mlirt.runtime.formula_table import EvaluatedFormulas, FormulaTable
from mlirt.runtime.manifest import BORDER_NUMBERS, Manifest

_MAX_NUMBER = float(1 << 62)


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
        distinct = np.array(list(alike), np.int64).reshape(-1, BORDER_NUMBERS + 2)
        self._formulas, self._fills = distinct[:, :BORDER_NUMBERS], distinct[:, BORDER_NUMBERS]
        first = dict(zip(reversed(self._which.tolist()), reversed(self.buffers), strict=True))
        self._first = np.array([first[k] for k in range(len(alike))], np.intp)
        """The first buffer of each kind."""

    def numbers(self, evaluated: EvaluatedFormulas, results: np.ndarray | None, sizes: np.ndarray) -> np.ndarray:
        """For each border images, rows, bytes of a row, rows above, bytes beside and the byte that fills it.

        `results` are those of all formulas, where all have one; buffers without bytes have no images. Raises
        ExpressionError where a border does not lie in its buffer.
        """
        held = sizes[self._first]
        found = np.zeros((len(self._first), BORDER_NUMBERS + 1), np.int64)
        if results is not None:
            found[:, :BORDER_NUMBERS] = results[self._formulas]
        else:
            for k in np.flatnonzero(held):
                found[k, :BORDER_NUMBERS] = evaluated.numbered(self._formulas[k])
        found[:, BORDER_NUMBERS] = self._fills
        found[held == 0] = 0
        images, rows, row, above, beside, _ = found.T
        of_row = (images.astype(float) * (rows + 2.0 * above) * row < _MAX_NUMBER) & (2 * beside <= row)
        fits = of_row & (images * (rows + 2 * above) * row == held) & (beside <= (rows + above) * row)
        fits &= (found >= 0).all(axis=1)
        if not bool(fits.all()):
            k = int(np.argmin(fits))
            raise ExpressionError(f"the border of buffer {self._first[k]} does not lie in its {held[k]} bytes")
        return found[self._which]
