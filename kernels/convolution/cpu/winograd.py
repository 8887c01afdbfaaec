"""Winograd convolution, 3 x 3, of blocked tensors: transform patches, multiply them by channel, transform back.

A dilated convolution is one of every second (third, ..) row and pixel, for each of the first ones of them. It takes the
convolutions for which a model of cycles says that fewer products make up for the transforms.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cpu import tiles
from mlirt.kernels.convolution.cpu.geometry import Geometry, geometry_of
from mlirt.kernels.convolution.cpu.tile_pooling import tile_pooling, tiles_can_pool
from mlirt.kernels.convolution.cpu.winograd_choice import MIN_GAIN, Cut, Image, choose_cut, gain_of
from mlirt.kernels.convolution.cpu.winograd_kernel import WinogradKernel
from mlirt.kernels.convolution.cpu.winograd_plan import Plan
from mlirt.kernels.convolution.cpu.winograd_transforms import WINDOW, pack_transformed, transform_kernel
from mlirt.kernels.lib.cpu.register_tiles.tile_code import TileCode
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tactics.registry import TACTIC

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 30
POOLS = True

# With fewer there is little to gain.
_MIN_CHANNELS = 32
_FIRST = 1e-9  # it comes first where it gains just that much


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """About the microseconds of the best cut, which has no name: those of the best register tile over its gain.

    So that it comes first only where it is `MIN_GAIN` times as fast, it is said to take as many times longer.
    """
    geometry, cpu, threads = geometry_of(op, lowering), lowering.target.cpu, lowering.target.threads
    image = None if geometry is None else _image(op, geometry, lowering)
    cut = None if image is None else choose_cut(image, cpu, threads, 0.0)
    if image is None or cut is None:
        return {}
    direct = min(tiles.estimates(op, lowering).values())
    return {"": direct * MIN_GAIN / gain_of(image, cut, cpu, threads) * (1 - _FIRST)}


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    geometry = geometry_of(op, lowering)
    image = None if geometry is None else _image(op, geometry, lowering)
    if geometry is None or image is None:
        return False
    # Asked for by name, it is taken wherever it is possible.
    least_gain = 0.0 if TACTIC in op.attributes else MIN_GAIN
    cut = choose_cut(image, lowering.target.cpu, lowering.target.threads, least_gain)
    if cut is None:
        return False
    packed = lowering.packed(op.kernel, partial(_packed, cut, geometry.lanes))
    batch, _, rows, length, _ = op.epilogue_dims()
    plan = Plan(image, cut, batch, rows, length, geometry.dilation)
    memory = lowering.placements.scratch(plan.memory_size * 4)
    if cut.is_shared:
        _kernel("winograd_input", op, geometry, plan, memory, lowering).write_transform()
    _kernel("winograd", op, geometry, plan, memory, lowering).write(packed)
    return True


def _packed(cut: Cut, lanes: int, weights: Array) -> Array:
    return pack_transformed(transform_kernel(weights, cut.scheme), cut.panels_per_group, cut.shape.blocks, lanes)


def _kernel(
    family: str, op: ConvolutionOp, geometry: Geometry, plan: Plan, memory: SSAValue, lowering: Lowering
) -> WinogradKernel:
    k = lowering.kernel(family)
    code = TileCode(k, op, lowering, geometry.lanes)
    return WinogradKernel(code, geometry, plan, k.memory(memory, f32), tile_pooling(op))


def _image(op: ConvolutionOp, geometry: Geometry, lowering: Lowering) -> Image | None:
    """The sizes, or guesses of them, of a convolution that can be computed in this way."""
    is_plain = geometry.groups == 1 and not geometry.is_depthwise and geometry.depth == geometry.lanes
    is_plain = is_plain and geometry.word == 1
    fits = geometry.window == (WINDOW, WINDOW) and geometry.stride == (1, 1)
    least = _MIN_CHANNELS // geometry.lanes
    if not is_plain or not fits or min(geometry.blocks_in, geometry.blocks_out) < least:
        return None
    pooling, (down, across) = tile_pooling(op), geometry.dilation
    windows = (1, 1) if pooling is None else (pooling.rows, pooling.columns)
    # The pixels of a patch of a dilated convolution are no neighbours.
    if not tiles_can_pool(op) or (down > 1 < windows[0]) or (across > 1 < windows[1]):
        return None
    guesses = typical_values(lowering.block)
    batch, _, rows, length, _ = (typical(size, guesses) for size in op.epilogue_dims())
    phases, rows, length = down * across, -(-rows // down), -(-length // across)
    return Image(batch, rows, length, geometry.blocks_in, geometry.blocks_out, geometry.lanes, phases, windows)
