"""Convolutions along one axis as convolutions of images of height 1, which have fast kernels."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerType
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.interleave import InterleaveOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import Dim, substitute, symbols
from mlirt.dialects.tensor_types import dims, element_of, rank, tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.layout.convolution_rewriting import DIRECT, kernel_of
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class ExpandConvolutionRankPass(RulePass):
    """Give rank-3 float32 convolutions with constant kernels a height of 1, by views that move nothing. What the
    epilogues of images read along channels has all axes of an image behind it too.

    Before: `%y = fused.convolution %x, %k {stride = array<i64: 2>, ..} : (1x8x50, 16x8x3) -> 1x16x24`
    After:

        %a = fused.view %x : 1x8x1x50
        %b = fused.convolution %a, %k' {stride = array<i64: 1, 2>, ..} : (1x8x1x50, 16x8x1x3) -> 1x16x1x24
        %y = fused.view %b : 1x16x24
    """

    name = "expand-convolution-rank"

    @rule(DIRECT)
    def expand(self, m: Match, convolution: ConvolutionOp, kernel: SSAValue) -> Outcome:
        if rank(convolution.output.type) != 3:
            return None
        array = m.array(kernel)
        flat = kernel_of(m, kernel, array.reshape(*array.shape[:2], 1, array.shape[2]), "of height 1")
        source = _image(m, convolution.input)
        extras = [_over_image(m, *pair) for pair in zip(convolution.extras, convolution.access, strict=True)]
        image = ConvolutionOp(
            source,
            flat,
            _with_height(convolution.output.type),
            convolution.detach_region(convolution.epilogue),
            stride=_behind(1, convolution.stride),
            dilation=_behind(1, convolution.dilation),
            pre_padding=_behind(0, convolution.pre_padding),
            post_padding=_behind(0, convolution.post_padding),
            groups=convolution.groups.value.data,
            padding_value=convolution.padding_value.value.data,
            extras=[extra for extra, _ in extras],
            access=[access for _, access in extras],
        )
        return m.insert(ViewOp(m.insert(image).output, convolution.output.type))

    @rule(op(InterleaveOp).named("interleave"))
    def expand_interleave(self, m: Match, interleave: InterleaveOp) -> Outcome:
        factors, images = integers(interleave.factors), [_source_of_view(value) for value in interleave.inputs]
        if len(factors) != 1 or not all(image is not None and rank(image.type) == _IMAGE for image in images):
            return None
        type_ = _with_height(interleave.output.type)
        made = InterleaveOp([image for image in images if image is not None], [1, *factors], type_)
        made.in_place = interleave.in_place
        return m.insert(ViewOp(m.insert(made).output, interleave.output.type))

    @rule(op(ConvolutionOp).named("convolution"))
    def expand_extras(self, m: Match, convolution: ConvolutionOp) -> Outcome:
        if rank(convolution.output.type) != _IMAGE:
            return None
        accesses = list(convolution.access)
        first = len(convolution.operands) - len(accesses)
        for position, (value, access) in enumerate(zip(convolution.extras, convolution.access, strict=True)):
            lengths = _lengths_by_axis(value, access)
            is_packed = isinstance(value.owner, ConstantOp) and lengths is not None and set(lengths) == {_CHANNEL}
            if lengths is not None and not is_packed:
                type_ = tensor(element_of(value.type), [lengths.get(axis, 1) for axis in range(_IMAGE)])
                convolution.operands[first + position] = m.insert(ViewOp(value, type_)).output
                accesses[position] = _over_result(convolution, lengths)
        if accesses == list(convolution.access):
            return None
        convolution.properties["access"] = ArrayAttr(accesses)
        return convolution


_IMAGE = 4


def _source_of_view(value: SSAValue) -> SSAValue | None:
    return value.owner.input if isinstance(value.owner, ViewOp) else None


_CHANNEL = 1
# How the epilogue of a signal reads another signal, and how that of an image does.
_SIGNAL = (iteration(0), iteration(1), iteration(2))
_WHOLE_IMAGE = AccessAttr.of([iteration(axis) for axis in range(4)])


def _image(m: Match, signal: SSAValue) -> SSAValue:
    return m.insert(ViewOp(signal, _with_height(signal.type))).output


def _over_image(m: Match, extra: SSAValue, access: AccessAttr) -> tuple[SSAValue, AccessAttr]:
    """What the epilogue of a signal reads, as that of the image reads it."""
    if access.indices() == _SIGNAL:
        return _image(m, extra), _WHOLE_IMAGE
    return extra, AccessAttr.of([_shifted(index) for index in access.indices()])


def _lengths_by_axis(value: SSAValue, access: AccessAttr) -> dict[int, Dim] | None:
    """The axes of the image along which an operand of lower rank lies, in its own order, and its lengths there.

    None where it has all axes, has them in another order, or does not differ between channels.
    """
    pairs = zip(access.indices(), dims(value.type), strict=True)
    kept = [(index, length) for index, length in pairs if not (index == 0 and length == 1)]
    axes = [axis for axis in range(_IMAGE) if iteration(axis) in (index for index, _ in kept)]
    if rank(value.type) >= _IMAGE or [index for index, _ in kept] != [iteration(axis) for axis in axes]:
        return None
    return dict(zip(axes, (length for _, length in kept), strict=True)) if _CHANNEL in axes else None


def _over_result(convolution: ConvolutionOp, axes: Collection[int]) -> AccessAttr:
    """How an operand with these axes is read: at the only element of the others, which the result may have too."""
    like = dims(convolution.output.type)
    return AccessAttr.of([iteration(axis) if axis in axes or like[axis] == 1 else 0 for axis in range(_IMAGE)])


def _with_height(signal: Attribute) -> Attribute:
    batch, channels, width = dims(signal)
    return tensor(element_of(signal), [batch, channels, 1, width])


def _behind(first: int, values: DenseArrayBase[IntegerType]) -> list[int]:
    return [first, *integers(values)]


def _shifted(index: Dim) -> Dim:
    """An index over `d0, d1, d2` as one over `d0, d1, d2 = 0, d3`."""
    return substitute(index, {"d2": iteration(3)}) if "d2" in symbols(index) else index
