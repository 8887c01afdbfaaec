"""A deconvolution is a convolution for each remainder of the output position, and their results interleaved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp
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
from mlirt.dialects.tensor_types import dims, element_of, tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.passes.layout.convolution_rewriting import in_front_of, replace

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class ExpandDeconvolutionPass(ModulePass):
    """Rewrite float32 deconvolutions with constant kernels as convolutions, which have fast kernels.

    Output position `y` has `y + pre = s * a + r`; all positions with remainder `r` are a convolution of the input with
    every `s`-th tap of the kernel, which gets zeros where it is dilated. One convolution computes all remainders as
    channels; a transpose interleaves them and runs the epilogue. With stride 1 there is one remainder, and the
    convolution has the epilogue. Where the first position is none of remainder 0, remainders that lie in front of it
    are those of the next step, if the window has room for that; else, and where the last step has not all remainders,
    the interleaved result is cropped.

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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        store = weights_of(ctx)
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, ConvolutionOp) and inner.transposed.value.data:
                    _expand(inner, store)


@dataclass(frozen=True)
class _Axis:
    """One spatial dimension: `positions` steps of the convolution, the first of which is step `first` of the
    deconvolution, give `positions * stride` outputs, `cut` of which go off the front.
    """

    length: Dim
    output: Dim
    stride: int
    window: int
    pre: int

    @property
    def taps(self) -> int:
        return -(-self.window // self.stride)

    @property
    def _before(self) -> int:
        """Outputs of the first step that lie in front of the result."""
        return self.pre - self.first * self.stride

    @property
    def is_shifted(self) -> bool:
        """Whether the remainders in front of the result are those of the next step: the others leave a tap for it."""
        room = self.taps - 1 - self.first
        return 0 < self._before < self.stride and room > 0 and self._taps_of(self._before) < self.taps

    def _taps_of(self, remainder: int) -> int:
        return -(-(self.window - remainder) // self.stride)

    @property
    def first(self) -> int:
        return min(self.pre // self.stride, self.taps - 1)

    @property
    def cut(self) -> int:
        return 0 if self.is_shifted else self._before

    @property
    def positions(self) -> Dim:
        return floor_div(self.output - 1 + self.cut, self.stride) + 1

    @property
    def pre_padding(self) -> int:
        return self.taps - 1 - self.first - self.is_shifted

    @property
    def post_padding(self) -> Dim:
        return self.positions - self.length + self.taps - 1 - self.pre_padding

    @property
    def is_whole(self) -> bool:
        """Whether the steps give the result and nothing around it."""
        return self.cut == 0 and self.positions * self.stride == self.output

    def source(self, remainder: int, tap: int) -> int:
        """Which tap of the kernel is a tap of the convolution for a remainder; one outside of it stands for zero."""
        if self.is_shifted:
            late, remainder = divmod(remainder + self._before, self.stride)
            tap += 1 - late
        return remainder + self.stride * (self.taps - 1 - tap)


def _expand(op: ConvolutionOp, store: WeightStore) -> None:
    owner = op.kernel.owner
    if not isinstance(owner, ConstantOp) or not isinstance(element_of(op.input.type), Float32Type):
        return
    kernel = _undilated(owner.array(store), [dilation for _, dilation, _, _ in op.spatial()])
    windows = kernel.shape[2:]
    lengths, outputs = dims(op.input.type)[2:], dims(op.output.type)[2:]
    axes = [
        _Axis(length, output, stride, window, pre)
        for length, output, window, (stride, _, pre, _) in zip(lengths, outputs, windows, op.spatial(), strict=True)
    ]
    padding = [axis.post_padding for axis in axes if isinstance(axis.post_padding, int)]
    if len(padding) != len(axes) or any(pad < 0 for pad in padding):
        return
    packed = _remainder_kernels(kernel, axes, op.groups.value.data)
    made = ConstantOp.from_array(packed, store, f"{op.kernel.name_hint or 'kernel'} by remainder", owner.location)
    _rewrite(op, made, axes, padding)


def _undilated(kernel: Array, dilations: Sequence[int]) -> Array:
    """The kernel of dilation 1 that has zeros between the taps."""
    import numpy as np

    windows = [(size - 1) * dilation + 1 for size, dilation in zip(kernel.shape[2:], dilations, strict=True)]
    result = np.zeros((*kernel.shape[:2], *windows), kernel.dtype)
    result[(..., *(slice(None, None, dilation) for dilation in dilations))] = kernel
    return result


def _remainder_kernels(kernel: Array, axes: Sequence[_Axis], groups: int) -> Array:
    """`[groups * remainders * k / groups, c / groups, taps..]` from `[c, k / groups, window..]`."""
    import numpy as np

    per_group = kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:])
    taps = [axis.taps for axis in axes]
    remainders = [axis.stride for axis in axes]
    result = np.zeros((groups, *remainders, kernel.shape[1], per_group.shape[1], *taps), kernel.dtype)
    for remainder in np.ndindex(*remainders):
        for position in np.ndindex(*taps):
            source = [a.source(r, p) for r, p, a in zip(remainder, position, axes, strict=True)]
            if all(0 <= s < a.window for s, a in zip(source, axes, strict=True)):
                picked = per_group[(slice(None), slice(None), slice(None), *source)]
                result[(slice(None), *remainder, slice(None), slice(None), *position)] = picked.transpose(0, 2, 1)
    return result.reshape(-1, per_group.shape[1], *taps)


def _rewrite(op: ConvolutionOp, kernel: ConstantOp, axes: Sequence[_Axis], padding: Sequence[int]) -> None:
    batch, channels = dims(op.output.type)[:2]
    accumulator, count = op.epilogue.block.args[0].type, len(axes)
    positions = [axis.positions for axis in axes]
    strides = [axis.stride for axis in axes]
    insert = in_front_of(op)
    kernel_value = insert(kernel)
    is_whole = all(axis.is_whole for axis in axes) and not _asks_for_places(op)
    is_direct = is_whole and product(strides) == 1
    joined = insert(
        ConvolutionOp(
            op.input,
            kernel_value,
            op.output.type if is_direct else tensor(accumulator, [batch, channels * product(strides), *positions]),
            op.detach_region(op.epilogue) if is_direct else identity_region(accumulator),
            stride=[1] * count,
            dilation=[1] * count,
            pre_padding=[axis.pre_padding for axis in axes],
            post_padding=padding,
            groups=op.groups.value.data,
            extras=op.extras if is_direct else (),
            access=list(op.access) if is_direct else (),
        )
    )
    replace(op, joined if is_direct else _interleaved(op, joined, axes, ends_here=is_whole))


def _asks_for_places(op: ConvolutionOp) -> bool:
    return any(isinstance(inner, IndexOp) for inner in op.epilogue.block.ops)


def _interleaved(op: ConvolutionOp, joined: SSAValue, axes: Sequence[_Axis], *, ends_here: bool) -> SSAValue:
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
