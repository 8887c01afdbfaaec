"""What planes of channels cost: eight pixels of a channel at once where pixels are rows of a product, else runs."""

from __future__ import annotations

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_types import byte_width, dims, element_of
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.tactics.lowering import Lowering

_BYTES = 3.5e6  # moved in a microsecond by accesses along memory
_SECTOR, _PIXELS, _PIECE = 32, 8, 16  # bytes, of a channel that a warp writes at once, bytes of the widest access
# Times as long as whole sectors take: rows that begin anywhere in a sector, kept by the cache and not. Measured on an
# H100, 64 to 128 channels of 126 x 126 pixels in fp16: 1.90 ms for 0.46 with channels innermost.
_KEPT_PARTS, _LOST_PARTS = 3.5, 8.0
_KEPT = 4.0e7  # bytes that the second-level cache keeps
# The same of runs of planes, whose ends lie in sectors of two tiles, and whose pieces do if they are words.
_RUNS, _PARTED_RUNS = 0.2, 0.5


def planes_cost(op: ConvolutionOp, lowering: Lowering) -> float:
    """Microseconds on top of those with channels innermost, 0 where they are."""
    sizes, steps = dims(op.output.type), lowering.placements[op.output].strides
    if steps[1] == 1 or sizes[1] == 1 or steps[-1] != 1:
        return 0.0
    known, width = typical_values(lowering.block), byte_width(element_of(op.output.type))
    total = typical(product(sizes), known) * width
    if width < 4 and typical(sizes[-1], known) * width % _PIECE > 0:
        return (_KEPT_PARTS if total <= _KEPT else _LOST_PARTS) * total / _BYTES
    return _SECTOR / (_PIXELS * width) * total / _BYTES


def runs_cost(op: ConvolutionOp, lowering: Lowering) -> float:
    """Microseconds on top of those with channels innermost where channels are rows of a product, and pixels columns."""
    known, width = typical_values(lowering.block), byte_width(element_of(op.output.type))
    images, channels, *spatial = dims(op.output.type)
    plane = typical(product(spatial), known) * width
    total = typical(product([images, channels]), known) * plane
    return (_PARTED_RUNS if plane % _PIECE else _RUNS) * total / _BYTES
