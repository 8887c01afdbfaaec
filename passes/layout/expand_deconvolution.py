"""A deconvolution is a convolution for each remainder of the output position, and their results interleaved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.fused_op import IndexOp, identity_region
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.symbolic import Dim, floor_div, product, substitute
from mlirt.dialects.tensor_types import dims, element_of, is_float, tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.kernels.lib.deconvolution_phases import (
    PhaseAxis,
    phase_axes,
    remainder_kernels,
    undilated,
    undilated_windows,
)
from mlirt.passes.layout.convolution_rewriting import in_front_of, replace


@dataclass(frozen=True)
class ExpandDeconvolutionPass(ModulePass):
    """Rewrite float32 deconvolutions with constant kernels as convolutions, which have fast kernels.

    Output position `y` has `y + pre = s * a + r`; all positions with remainder `r` are a convolution of the input with
    every `s`-th tap of the kernel, which gets zeros where it is dilated. One convolution computes all remainders as
    channels; a transpose interleaves them and runs the epilogue. With stride 1 there is one remainder, and the
    convolution has the epilogue. Where the first position is none of remainder 0, remainders that lie in front of it
    are those of the next step, if the window has room for that; else, and where the last step has not all remainders,
    the interleaved result is cropped.

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
    """

    name = "expand-deconvolution"

    only_direct: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        store = weights_of(ctx)
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, ConvolutionOp) and inner.transposed.value.data:
                    _expand(inner, store, only_direct=self.only_direct)


def _expand(op: ConvolutionOp, store: WeightStore, *, only_direct: bool) -> None:
    owner, element = op.kernel.owner, element_of(op.input.type)
    wanted = (element == element_of(op.kernel.type) and is_float(element)) if only_direct else element == f32
    if not isinstance(owner, ConstantOp) or not wanted:
        return
    axes = phase_axes(op, undilated_windows(op, [int(str(size)) for size in dims(op.kernel.type)[2:]]))
    if axes is None or (only_direct and not _is_direct(op, axes)):
        return
    kernel = undilated(owner.array(store), [dilation for _, dilation, _, _ in op.spatial()])
    packed = remainder_kernels(kernel, axes, op.groups.value.data)
    made = ConstantOp.from_array(packed, store, f"{op.kernel.name_hint or 'kernel'} by remainder", owner.location)
    _rewrite(op, made, axes)


def _is_whole(op: ConvolutionOp, axes: Sequence[PhaseAxis]) -> bool:
    """Whether the positions of the convolution give the result and nothing around it, whose places nobody asks for."""
    return all(axis.is_whole for axis in axes) and not _asks_for_places(op)


def _is_direct(op: ConvolutionOp, axes: Sequence[PhaseAxis]) -> bool:
    return _is_whole(op, axes) and all(axis.stride == 1 for axis in axes)


def _rewrite(op: ConvolutionOp, kernel: ConstantOp, axes: Sequence[PhaseAxis]) -> None:
    batch, channels = dims(op.output.type)[:2]
    accumulator, count = op.epilogue.block.args[0].type, len(axes)
    positions = [axis.positions for axis in axes]
    strides = [axis.stride for axis in axes]
    insert = in_front_of(op)
    kernel_value = insert(kernel)
    is_whole, is_direct = _is_whole(op, axes), _is_direct(op, axes)
    joined = insert(
        ConvolutionOp(
            op.input,
            kernel_value,
            op.output.type if is_direct else tensor(accumulator, [batch, channels * product(strides), *positions]),
            op.detach_region(op.epilogue) if is_direct else identity_region(accumulator),
            stride=[1] * count,
            dilation=[1] * count,
            pre_padding=[axis.pre_padding for axis in axes],
            post_padding=[int(str(axis.post_padding)) for axis in axes],
            groups=op.groups.value.data,
            extras=op.extras if is_direct else (),
            access=list(op.access) if is_direct else (),
        )
    )
    replace(op, joined if is_direct else _interleaved(op, joined, axes, ends_here=is_whole))


def _asks_for_places(op: ConvolutionOp) -> bool:
    return any(isinstance(inner, IndexOp) for inner in op.epilogue.block.ops)


def _interleaved(op: ConvolutionOp, joined: SSAValue, axes: Sequence[PhaseAxis], *, ends_here: bool) -> SSAValue:
    """The results of all remainders in their places, and behind the epilogue."""
    batch, channels = dims(op.output.type)[:2]
    accumulator, count, insert = op.epilogue.block.args[0].type, len(axes), in_front_of(op)
    positions = [axis.positions for axis in axes]
    strides = [axis.stride for axis in axes]
    groups = op.groups.value.data
    each = floor_div(channels, groups)
    split = insert(ViewOp(joined, tensor(accumulator, [batch, groups, *strides, each, *positions])))
    sizes = [batch, groups, each, *(size for pair in zip(positions, strides, strict=True) for size in pair)]
    order = [iteration(0), iteration(1)]
    order += [iteration(4 + 2 * axis) for axis in range(count)]
    order += [iteration(2)]
    order += [iteration(3 + 2 * axis) for axis in range(count)]
    mixed = AccessAttr.of(order)
    if ends_here:
        places: dict[str, Dim] = {"d0": iteration(0), "d1": iteration(1) * each + iteration(2)}
        for k, step in enumerate(strides):
            places[f"d{2 + k}"] = iteration(3 + 2 * k) * step + iteration(4 + 2 * k)
        access = [AccessAttr.of([substitute(index, places) for index in one.indices()]) for one in op.access]
        type_ = tensor(element_of(op.output.type), sizes)
        ended = insert(PointwiseOp([split, *op.extras], [mixed, *access], [type_], op.detach_region(op.epilogue)))
        return insert(ViewOp(ended, op.output.type))
    apart = insert(PointwiseOp([split], [mixed], [tensor(accumulator, sizes)], identity_region(accumulator)))
    whole_sizes = [size * step for size, step in zip(positions, strides, strict=True)]
    whole = insert(ViewOp(apart, tensor(accumulator, [batch, channels, *whole_sizes])))
    crop = [iteration(0), iteration(1), *(iteration(2 + k) + axis.cut for k, axis in enumerate(axes))]
    epilogue = op.detach_region(op.epilogue)
    return insert(PointwiseOp([whole, *op.extras], [AccessAttr.of(crop), *op.access], [op.output.type], epilogue))
