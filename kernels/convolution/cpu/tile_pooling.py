"""What register tiles do where a convolution is pooled: a tile holds whole windows, or a row of each."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import f32

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.window import WindowKind
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.kernel.tile import tile_shape
from mlirt.dialects.symbolic import symbols
from mlirt.dialects.tensor_types import element_of
from mlirt.kernels.lib.language import Value, builder, kernel
from mlirt.kernels.lib.language.tile_words import fill, pool
from mlirt.kernels.lib.loops.scalar_regions import indices_in

_SPATIAL = (2, 3)


@dataclass(frozen=True)
class TilePooling:
    """Windows of `rows` x `columns` pixels, of which the largest element, the sum or the mean is kept."""

    kind: WindowKind
    rows: int
    columns: int

    @kernel
    def start(self, rows: int, columns: int, lanes: int) -> Value:
        """A tile of windows of which nothing has been seen."""
        pooled = fill(float("-inf") if self.kind is WindowKind.MAX else 0.0, rows, columns, lanes)
        return pooled

    @kernel
    def combine(self, values: Value, into: Value) -> Value:
        """A tile of pixels, or of the pixels of a row by blocks of channels, taken up by the windows."""
        high, wide = [tile_shape(tile.type)[:2] for tile in (values, into)]
        window = [more // fewer for more, fewer in zip(high, wide, strict=True)]
        pooled = pool(ReduceKind.MAX if self.kind is WindowKind.MAX else ReduceKind.ADD, values, into, window)
        return pooled

    def factor(self) -> Value | None:
        """What sums are multiplied with."""
        is_mean = self.kind is WindowKind.AVERAGE
        return builder().scalar(1 / prod((self.rows, self.columns)), f32) if is_mean else None


def tiles_can_pool(op: ConvolutionOp) -> bool:
    """Whether an op is not pooled, or in a way that tiles can: float32, and an epilogue that is the same for all pixels
    of a channel.
    """
    if op.pooling is None:
        return True
    places = {f"d{axis}" for axis in _SPATIAL}
    varies = any(places & _names(access) for access in op.access) or bool(set(_SPATIAL) & indices_in(op.epilogue))
    return element_of(op.output.type) == op.epilogue.block.args[0].type == f32 and not varies


def tile_pooling(op: ConvolutionOp) -> TilePooling | None:
    """How an op with two spatial axes is pooled."""
    if op.pooling is None:
        return None
    rows, columns = op.pooling.sizes()
    return TilePooling(op.pooling.kind.data, rows, columns)


def _names(access: AccessAttr) -> set[str]:
    return {name for index in access.indices() for name in symbols(index)}


__all__ = ["TilePooling", "tile_pooling", "tiles_can_pool"]
