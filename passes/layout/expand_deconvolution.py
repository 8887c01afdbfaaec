"""A deconvolution is a convolution for each remainder of the output position, and their results interleaved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.fused_op import IndexOp, identity_region, region_with
from mlirt.dialects.fused.interleave import InterleaveOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.symbolic import Dim, floor_div, numbers_of, product
from mlirt.dialects.tensor_types import dims, element_of, is_float, tensor
from mlirt.kernels.lib.deconvolution_phases import (
    PhaseAxis,
    RemainderAxis,
    kernel_of_remainder,
    phase_axes,
    remainder_axes,
    remainder_kernels,
    undilated,
    undilated_windows,
)
from mlirt.passes.layout.convolution_rewriting import kernel_of
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, constant, op, rule

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class ExpandDeconvolutionPass(RulePass):
    """Rewrite float32 deconvolutions with constant kernels as convolutions, which have fast kernels.

    Output position `y` has `y + pre = s * a + r`; all positions with remainder `r` are a convolution of the input with
    every `s`-th tap of the kernel, which gets zeros where it is dilated. One convolution computes all remainders as
    channels; a transpose interleaves them and runs the epilogue. With stride 1 there is one remainder, and the
    convolution has the epilogue. Where the first position is none of remainder 0, remainders that lie in front of it
    are those of the next step, if the window has room for that; else, and where the last step has not all remainders,
    the interleaved result is cropped.

    With `lanes` the remainders of images and signals with at least so many channels are convolutions of their own, each
    with its taps alone and with the epilogue; they write their pixels into the result in turn, also in blocks of
    channels.

    With `only-direct` just those are rewritten that become one convolution, also in half precision: a GPU has kernels
    that compute all remainders and write them to their places.

    Before:

        %y = fused.convolution %x, %k {stride = array<i64: 2, 2>, transposed = true, ..}
             : (1x8x5x5, 8x4x2x2) -> 1x4x10x10

    After:

        %a = fused.convolution %x, %k' {stride = array<i64: 1, 1>, ..} : (1x8x5x5, 16x8x1x1) -> 1x16x5x5
        %b = fused.view %a : 1x1x2x2x4x5x5
        %c = fused.pointwise %b {access = [["d0", "d1", "d4", "d6", "d2", "d3", "d5"]], ..} : 1x1x4x5x2x5x2
        %y = fused.view %c : 1x4x10x10

    After, with `lanes`:

        %a = fused.convolution %x, %k0 {stride = array<i64: 1, 1>, ..} : (1x8x5x5, 4x8x1x1) -> 1x4x5x5
        ...
        %y = fused.interleave %a, %b, %c, %d {factors = array<i64: 2, 2>, ..} : (1x4x5x5, ..) -> 1x4x10x10
    """

    name = "expand-deconvolution"

    only_direct: bool = False
    lanes: int = option(0, at_least=0)

    @rule(op(ConvolutionOp, kernel=constant("kernel"), transposed=True, pooling=None, totals=None).named("convolution"))
    def expand(self, m: Match, convolution: ConvolutionOp, kernel: SSAValue) -> Outcome:
        element = element_of(convolution.input.type)
        if self.lanes and element == element_of(kernel.type) == f32:
            apart = self._by_remainder(m, convolution, kernel)
            if apart is not None:
                return apart
        wanted = element == element_of(kernel.type) and is_float(element) if self.only_direct else element == f32
        axes = phase_axes(convolution, undilated_windows(convolution, numbers_of(dims(kernel.type)[2:])))
        is_direct = axes is not None and _is_direct(convolution, axes)
        if not wanted or axes is None or (self.only_direct and not is_direct):
            return "its type, its window or its places are none that convolutions compute"
        dilations = [dilation for _, dilation, _, _ in convolution.spatial()]
        packed = remainder_kernels(undilated(m.array(kernel), dilations), axes, convolution.groups.value.data)
        joined = m.insert(_joined(convolution, kernel_of(m, kernel, packed, "by remainder"), axes))
        return joined if is_direct else _interleaved(m, convolution, joined.output, axes)

    def _by_remainder(self, m: Match, convolution: ConvolutionOp, kernel: SSAValue) -> Operation | None:
        """A convolution for each combination of remainders, and their pixels in turn; None where another way fits."""
        strides = [stride for stride, _, _, _ in convolution.spatial()]
        channels = dims(convolution.output.type)[1]
        few = not isinstance(channels, int) or channels < self.lanes
        if few or len(strides) > _IMAGE_AXES or not 1 < prod(strides) <= _MAX_REMAINDERS:
            return None
        if _asks_for_places(convolution):
            return None
        array = undilated(m.array(kernel), [dilation for _, dilation, _, _ in convolution.spatial()])
        combinations = remainder_axes(convolution, array.shape[2:])
        if combinations is None:
            return None
        parts = [_of_remainder(m, convolution, kernel, array, axes) for axes in combinations]
        made = InterleaveOp(parts, strides, convolution.output.type)
        made.in_place = [True] * len(parts)
        return m.insert(made)


_IMAGE_AXES = 2
_MAX_REMAINDERS = 16


def _of_remainder(
    m: Match, convolution: ConvolutionOp, kernel: SSAValue, array: Array, axes: Sequence[RemainderAxis]
) -> SSAValue:
    """The convolution that computes the outputs with some remainders, epilogue included."""
    groups, count = convolution.groups.value.data, len(axes)
    name = "of remainder " + " ".join(str(axis.remainder) for axis in axes)
    packed = kernel_of(m, kernel, kernel_of_remainder(array, axes, groups), name)
    batch, channels = dims(convolution.output.type)[:2]
    places: dict[str, Dim] = {
        f"d{2 + k}": iteration(2 + k) * axis.stride + axis.remainder for k, axis in enumerate(axes)
    }
    type_ = tensor(element_of(convolution.output.type), [batch, channels, *(axis.positions for axis in axes)])
    region = convolution.epilogue
    made = ConvolutionOp(
        convolution.input,
        packed,
        type_,
        region_with(region, [arg.type for arg in region.block.args], range(len(region.block.args))),
        stride=[1] * count,
        dilation=[1] * count,
        pre_padding=[axis.pre_padding for axis in axes],
        post_padding=numbers_of(axis.post_padding for axis in axes),
        groups=groups,
        extras=convolution.extras,
        access=[one.substituted(places) for one in convolution.access],
    )
    return m.insert(made).output


def _is_whole(convolution: ConvolutionOp, axes: Sequence[PhaseAxis]) -> bool:
    """Whether the positions of the convolution give the result and nothing around it, whose places nobody asks for."""
    return all(axis.is_whole for axis in axes) and not _asks_for_places(convolution)


def _is_direct(convolution: ConvolutionOp, axes: Sequence[PhaseAxis]) -> bool:
    return _is_whole(convolution, axes) and all(axis.stride == 1 for axis in axes)


def _joined(convolution: ConvolutionOp, kernel: SSAValue, axes: Sequence[PhaseAxis]) -> ConvolutionOp:
    """The convolution that computes all remainders, as channels; with the epilogue where there is one remainder."""
    batch, channels = dims(convolution.output.type)[:2]
    accumulator, count = convolution.epilogue.block.args[0].type, len(axes)
    is_direct = _is_direct(convolution, axes)
    remainders = product([axis.stride for axis in axes])
    accumulators = tensor(accumulator, [batch, channels * remainders, *(axis.positions for axis in axes)])
    return ConvolutionOp(
        convolution.input,
        kernel,
        convolution.output.type if is_direct else accumulators,
        convolution.detach_region(convolution.epilogue) if is_direct else identity_region(accumulator),
        stride=[1] * count,
        dilation=[1] * count,
        pre_padding=[axis.pre_padding for axis in axes],
        post_padding=numbers_of(axis.post_padding for axis in axes),
        groups=convolution.groups.value.data,
        extras=convolution.extras if is_direct else (),
        access=list(convolution.access) if is_direct else (),
    )


def _asks_for_places(convolution: ConvolutionOp) -> bool:
    return any(isinstance(inner, IndexOp) for inner in convolution.epilogue.block.ops)


def _interleaved(m: Match, convolution: ConvolutionOp, joined: SSAValue, axes: Sequence[PhaseAxis]) -> Operation:
    """The results of all remainders in their places, and behind the epilogue."""
    batch, channels = dims(convolution.output.type)[:2]
    accumulator, count = convolution.epilogue.block.args[0].type, len(axes)
    positions = [axis.positions for axis in axes]
    strides = [axis.stride for axis in axes]
    groups = convolution.groups.value.data
    each = floor_div(channels, groups)
    split = m.insert(ViewOp(joined, tensor(accumulator, [batch, groups, *strides, each, *positions]))).output
    sizes = [batch, groups, each, *(size for pair in zip(positions, strides, strict=True) for size in pair)]
    order = [iteration(0), iteration(1)]
    order += [iteration(4 + 2 * axis) for axis in range(count)]
    order += [iteration(2)]
    order += [iteration(3 + 2 * axis) for axis in range(count)]
    mixed = AccessAttr.of(order)
    if _is_whole(convolution, axes):
        places: dict[str, Dim] = {"d0": iteration(0), "d1": iteration(1) * each + iteration(2)}
        for k, step in enumerate(strides):
            places[f"d{2 + k}"] = iteration(3 + 2 * k) * step + iteration(4 + 2 * k)
        access = [one.substituted(places) for one in convolution.access]
        type_ = tensor(element_of(convolution.output.type), sizes)
        epilogue = convolution.detach_region(convolution.epilogue)
        ended = m.insert(PointwiseOp([split, *convolution.extras], [mixed, *access], [type_], epilogue))
        return m.insert(ViewOp(ended.outputs[0], convolution.output.type))
    apart = m.insert(PointwiseOp([split], [mixed], [tensor(accumulator, sizes)], identity_region(accumulator)))
    whole_sizes = [size * step for size, step in zip(positions, strides, strict=True)]
    whole = m.insert(ViewOp(apart.outputs[0], tensor(accumulator, [batch, channels, *whole_sizes]))).output
    crop = [iteration(0), iteration(1), *(iteration(2 + k) + axis.cut for k, axis in enumerate(axes))]
    epilogue = convolution.detach_region(convolution.epilogue)
    access = [AccessAttr.of(crop), *convolution.access]
    return m.insert(PointwiseOp([whole, *convolution.extras], access, [convolution.output.type], epilogue))
