"""The halo of a padded allocation: where the cells around images lie, which hold one byte all over."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_name, element_of, halo, halo_fill, stored_dims

BORDER_NUMBERS = 5


@dataclass(frozen=True)
class Border:
    """Memory of `planes` images, each of `rows` rows between `above` rows of border on both sides.

    A row takes `row` bytes, of which `beside` at each end are border. All bytes of the border are `fill`.
    """

    geometry: str
    """The same for memory with equal cells and equal borders."""
    fill: int
    planes: Dim
    rows: Dim
    row: Dim
    above: Dim
    beside: Dim

    @property
    def numbers(self) -> tuple[Dim, ...]:
        """What a run must know to write it."""
        return self.planes, self.rows, self.row, self.above, self.beside

    @staticmethod
    def of(type_: Attribute) -> Border | None:
        """That of a tensor type; None for one without."""
        cells = halo(type_)
        if not any(cells):
            return None
        stored, width = stored_dims(type_), byte_width(element_of(type_))
        fill = halo_fill(type_)
        kind = f"{'x'.join(map(str, stored))}x{element_name(element_of(type_))}"
        pixel = product(stored[4:]) * width
        return Border(
            geometry=f"{kind} halo {'x'.join(map(str, cells))}{f' of {fill}' if fill else ''}",
            fill=fill,
            planes=product(stored[:2]),
            rows=dims(type_)[2],
            row=stored[3] * pixel,
            above=cells[0],
            beside=cells[1] * pixel,
        )
