"""Convolutions along one axis as convolutions of images of height 1, which have fast kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerType, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.symbolic import Dim, substitute, symbols
from mlirt.dialects.tensor_types import dims, element_of, rank, tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.passes.layout.convolution_rewriting import in_front_of, is_direct, replace


@dataclass(frozen=True)
class ExpandConvolutionRankPass(ModulePass):
    """Give rank-3 float32 convolutions with constant kernels a height of 1, by views that move nothing. The same height
    is given to signals that the epilogues of images of height 1 read.

    Before: `%y = fused.convolution %x, %k {stride = array<i64: 2>, ..} : (1x8x50, 16x8x3) -> 1x16x24`
    After:

        %a = fused.view %x : 1x8x1x50
        %b = fused.convolution %a, %k' {stride = array<i64: 1, 2>, ..} : (1x8x1x50, 16x8x1x3) -> 1x16x1x24
        %y = fused.view %b : 1x16x24
    """

    name = "expand-convolution-rank"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        store = weights_of(ctx)
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, ConvolutionOp) and is_direct(inner, 3):
                    _expand(inner, store)
                elif isinstance(inner, ConvolutionOp) and rank(inner.output.type) == len(_FLAT_IMAGE) + 1:
                    _expand_extras(inner)


# How an image's epilogue reads a signal of its own batch, channels and width.
_FLAT_IMAGE = (iteration(0), iteration(1), iteration(3))


def _expand_extras(op: ConvolutionOp) -> None:
    """Signals that lie as the result does are read as images of height 1."""
    insert, like = in_front_of(op), dims(op.output.type)
    accesses = list(op.access)
    for position, (value, access) in enumerate(zip(op.extras, op.access, strict=True)):
        if access.indices() == _FLAT_IMAGE and like == (*(of := dims(value.type))[:2], 1, of[2]):
            image = insert(ViewOp(value, tensor(element_of(value.type), like)))
            op.operands[len(op.operands) - len(accesses) + position] = image
            accesses[position] = AccessAttr.of([iteration(axis) for axis in range(len(like))])
    op.properties["access"] = ArrayAttr(accesses)


def _expand(op: ConvolutionOp, store: WeightStore) -> None:
    insert, owner = in_front_of(op), op.kernel.owner
    assert isinstance(owner, ConstantOp)
    array = owner.array(store)
    hint = f"{op.kernel.name_hint or 'kernel'} of height 1"
    kernel = insert(ConstantOp.from_array(array.reshape(*array.shape[:2], 1, array.shape[2]), store, hint))
    source = insert(ViewOp(op.input, tensor(element_of(op.input.type), _with_height(dims(op.input.type)))))
    extras: list[SSAValue] = []
    accesses: list[AccessAttr] = []
    for value, access in zip(op.extras, op.access, strict=True):
        if access.indices() == (iteration(0), iteration(1), iteration(2)):
            image_type = tensor(element_of(value.type), _with_height(dims(value.type)))
            extras.append(insert(ViewOp(value, image_type)))
            accesses.append(AccessAttr.of([iteration(axis) for axis in range(4)]))
        else:
            extras.append(value)
            accesses.append(AccessAttr.of([_shifted(index) for index in access.indices()]))
    image = ConvolutionOp(
        source,
        kernel,
        tensor(element_of(op.output.type), _with_height(dims(op.output.type))),
        op.detach_region(op.epilogue),
        stride=_behind(1, op.stride),
        dilation=_behind(1, op.dilation),
        pre_padding=_behind(0, op.pre_padding),
        post_padding=_behind(0, op.post_padding),
        groups=op.groups.value.data,
        padding_value=op.padding_value.value.data,
        extras=extras,
        access=accesses,
    )
    replace(op, insert(ViewOp(insert(image), op.output.type)))


def _with_height(shape: Sequence[Dim]) -> list[Dim]:
    return [shape[0], shape[1], 1, shape[2]]


def _behind(first: int, values: DenseArrayBase[IntegerType]) -> list[int]:
    return [first, *integers(values)]


def _shifted(index: Dim) -> Dim:
    """An index over `d0, d1, d2` as one over `d0, d1, d2 = 0, d3`."""
    return substitute(index, {"d2": iteration(3)}) if "d2" in symbols(index) else index
