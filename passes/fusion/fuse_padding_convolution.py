"""Folds explicit padding into the padding of the window behind it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Attribute

from mlirt.dialects.constant_values import splat_of
from mlirt.dialects.integer_list import integer_list, integers
from mlirt.dialects.slicing import PadMode
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.pooling import PoolingKind, PoolingOp
from mlirt.dialects.trt.windowed_op import PaddingModeAttr
from mlirt.dialects.window_arithmetic import PaddingMode
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

Windowed = ConvolutionOp | DeconvolutionOp | PoolingOp


@dataclass(frozen=True)
class FusePaddingConvolutionPass(RulePass):
    """Add the cells of a zero padding to the pads of the convolution, deconvolution or average pooling that reads it.

    The padding adds cells to spatial axes only; around bytes they hold the convolution's `padding_value`. An average
    pooling takes it where it has no pads of its own, and from then on counts padding; a maximum pooling takes padding
    with minus infinity. Pads that the mode SAME makes are written out first, for which the spatial lengths must be
    numbers. Windows that round up are left alone. The pads of a deconvolution are cut off its result, of which each
    zero adds as many as the stride: so many fewer are cut off, and where that is negative, cells are added.

    Before:

        %p = trt.padding %x {pre = array<i64: 0, 0, 1, 1>, post = array<i64: 0, 0, 1, 1>} : ...
        %y = trt.convolution %p, %w : ...

    After:

        %y = trt.convolution %x, %w {pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : ...
    """

    name = "fuse-padding-convolution"

    @rule(op(Windowed, op(PaddingOp).shared().named("padding"), ...).named("window"))
    def fuse(self, m: Match, window: Windowed, padding: PaddingOp) -> Outcome:
        if (reason := _obstacle(window, padding)) is not None:
            return reason
        operands = [padding.input, *window.operands[1:]]
        made = type(window).create(
            operands=operands, properties=_padded(window, padding), result_types=[window.output.type]
        )
        return m.insert(made, padding, window)


_ROUNDS_DOWN = (
    PaddingMode.EXPLICIT_ROUND_DOWN,
    PaddingMode.CAFFE_ROUND_DOWN,
    PaddingMode.SAME_UPPER,
    PaddingMode.SAME_LOWER,
)


def _padded(op: Windowed, padding: PaddingOp) -> dict[str, Attribute]:
    """The properties of a window that pads by itself."""
    own = op.padding()
    lead = len(integers(padding.pre)) - len(own)
    pre, post = integers(padding.pre), integers(padding.post)
    factors = [-stride for stride in op.strides()] if isinstance(op, DeconvolutionOp) else [1] * len(own)
    before = [_number(pair[0]) + cells * each for pair, cells, each in zip(own, pre[lead:], factors, strict=True)]
    after = [_number(pair[1]) + cells * each for pair, cells, each in zip(own, post[lead:], factors, strict=True)]
    properties: dict[str, Attribute] = {
        **op.properties,
        "padding_mode": PaddingModeAttr(PaddingMode.EXPLICIT_ROUND_DOWN),
        "pre_padding": integer_list(before),
        "post_padding": integer_list(after),
    }
    if isinstance(op, PoolingOp) and op.kind.data is PoolingKind.AVERAGE:
        properties["average_count_excludes_padding"] = BoolAttr.from_bool(False)
    return properties


def _obstacle(op: Windowed, padding: PaddingOp) -> str | None:
    """Why a window cannot have the cells of the padding before it as its own; None where it can."""
    if padding.mode.data is not PadMode.CONSTANT:
        return f"the padding repeats elements ({padding.mode.data.value})"
    fill = 0.0 if padding.value is None else splat_of(padding.value)
    own = [pair for pair in op.padding() if isinstance(pair[0], int) and isinstance(pair[1], int)]
    if len(own) < len(op.sizes()):
        return "its own pads follow from lengths that are no numbers"
    if op.padding_mode.data not in _ROUNDS_DOWN:
        return f"its windows round up ({op.padding_mode.data.value})"
    if not _takes(op, fill, any(map(any, own))):
        return f"cells of {'several values' if fill is None else fill} are not what it pads with"
    lead = len(integers(padding.pre)) - len(own)
    pre, post = integers(padding.pre), integers(padding.post)
    if any((*pre[:lead], *post[:lead])):
        return "the padding adds batches or channels"
    return "the padding cuts elements off" if min((*pre, *post)) < 0 else None


def _number(length: object) -> int:
    assert isinstance(length, int)
    return length


def _takes(op: Windowed, fill: float | None, has_pads: bool) -> bool:
    """Whether cells with the value `fill` mean to an op what its own padding means."""
    if isinstance(op, ConvolutionOp):
        return fill == op.padding_value.value.data
    if isinstance(op, DeconvolutionOp):
        return fill == 0
    if op.kind.data is PoolingKind.MAX:
        return fill == float("-inf")
    return op.kind.data is PoolingKind.AVERAGE and fill == 0 and not has_pads
