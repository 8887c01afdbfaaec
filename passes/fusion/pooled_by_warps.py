"""Which convolutions of halves pool or add up their own results by the matrix units of warps, from planes to planes."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.pooling import FIRST
from mlirt.dialects.symbolic import product
from mlirt.dialects.target import Target
from mlirt.dialects.tensor_types import dims, element_count, element_of, is_half, stored_bytes
from mlirt.dialects.trt.constant import ConstantOp

_MAX_RESULTS_APART = 16  # channels of a deconvolution: one tile of matrix units
# Operations and results in a microsecond of an H200 of the matrix units of warps from planes to planes (four
# convolutions of 8 channels and a deconvolution of 3 in fp16 take what this says, a fifth more or less); bytes that a
# pooling reads, microseconds of its launch.
_WARPS, _RESULTS, _BYTES, _LAUNCH = 1.0e8, 1.4e6, 3.5e6, 1.5
# Of the input: more are multiplied by warpgroups, with channels innermost. A mean over the 49 pixels of MobileNetV3's
# last convolution, of 160 channels, took 450 us by warps, which read them across memory.
_MAX_CHANNELS = 15


def obstacle_for_warps(convolution: ConvolutionOp, window: Sequence[int]) -> str | None:
    """Why the matrix units of warps do not pool windows of what a convolution computes; None where they do."""
    values = (convolution.input, convolution.kernel, convolution.output)
    one_type = len({element_of(value.type) for value in values}) == 1
    if not one_type or not is_half(element_of(convolution.output.type)):
        return "it is no convolution of halves"
    sizes = [*dims(convolution.input.type), *dims(convolution.output.type), *dims(convolution.kernel.type)]
    rows, spatial = dims(convolution.output.type)[1], convolution.spatial()
    if not all(isinstance(size, int) and size > 0 for size in sizes) or not isinstance(rows, int):
        return "sizes are not known"
    if not isinstance(convolution.kernel.owner, ConstantOp):
        return "the weights are not known"
    flips = bool(convolution.transposed.value.data)
    channels = dims(convolution.input.type)[1]
    if not isinstance(channels, int) or channels > _MAX_CHANNELS:
        return "warpgroups compute it, with channels innermost"
    if flips and rows > _MAX_RESULTS_APART:
        return "threads have no registers for the windows of so many channels until all results of a pixel are there"
    steps = [stride if flips else 1 for stride, _, _, _ in spatial]
    if any(size % step for size, step in zip(window, steps, strict=True)):
        return "windows have parts of the results of a pixel"
    return None if _gains(convolution, flips=flips) else "others compute it faster, the pooling included"


def fits_tiles(convolution: ConvolutionOp, target: Target) -> bool:
    """Whether the matrix units of warps have a tile for a convolution that pools, or adds up."""
    from mlirt.kernels.convolution.cuda.plane_tiles import fitting_tiles  # not for a CPU

    return next(fitting_tiles(convolution, target), None) is not None


NO_TILE = "no tile of it has whole windows and room for its weights"


def _gains(convolution: ConvolutionOp, *, flips: bool) -> bool:
    """Whether what is not written and read again takes longer than the matrix units of warps take longer."""
    pixels = dims((convolution.input if flips else convolution.output).type)
    pixels = (pixels[0], *pixels[1 if flips else FIRST :])
    taps = dims(convolution.kernel.type)
    work = 2 * product([*pixels, *taps[1:]]) if flips else 2 * product([*pixels, *taps])
    moved, own = stored_bytes(convolution.output.type), stored_bytes(convolution.input.type)
    results = element_count(convolution.output.type)
    assert isinstance(work, int)
    assert isinstance(moved, int)
    assert isinstance(own, int)
    assert isinstance(results, int)
    pooled = max(work / _WARPS, results / _RESULTS)
    apart = max(work / _WARPS, (own + moved) / _BYTES) + _LAUNCH + moved / _BYTES
    return pooled < apart


__all__ = ["NO_TILE", "fits_tiles", "obstacle_for_warps"]
