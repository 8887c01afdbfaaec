"""Squeeze-and-excitation: the mean of a 1x1 convolution is the convolution of the mean, so the gate can come first."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule, value


def _obstacle(convolution: ConvolutionOp) -> str | None:
    """Why the mean of a convolution is not the convolution of the mean."""
    if any(length != 1 for length in convolution.sizes()):
        return "the convolution has windows, and the mean knows nothing of borders"
    if any(length for pads in convolution.padding() for length in pads) or any(s != 1 for s in convolution.strides()):
        return "the convolution leaves elements out, or adds some"
    return None


CONVOLUTION = op(ConvolutionOp, value("x"), ...).unless(_obstacle).named("convolution").shared()
MEAN = op(ReduceOp, CONVOLUTION, kind="avg", axes=(2, 3), keep_dims=True).named("mean")


@dataclass(frozen=True)
class MoveMeanBeforeConvolutionPass(RulePass):
    """Take the mean over an image in front of a 1x1 convolution.

    The mean reads fewer channels where the convolution makes many of few. What follows from it, such as a gate, is
    known before the convolution starts, whose epilogue can then multiply with it.

    Before:

        %c = trt.convolution %x, %w : (tensor<1x32x14x14xf32>, tensor<128x32x1x1xf32>) -> tensor<1x128x14x14xf32>
        %m = trt.reduce avg %c {axes = array<i64: 2, 3>} : (tensor<1x128x14x14xf32>) -> tensor<1x128x1x1xf32>

    After:

        %n = trt.reduce avg %x {axes = array<i64: 2, 3>} : (tensor<1x32x14x14xf32>) -> tensor<1x32x1x1xf32>
        %m = trt.convolution %n, %w : (tensor<1x32x1x1xf32>, tensor<128x32x1x1xf32>) -> tensor<1x128x1x1xf32>
    """

    name = "move-mean-before-convolution"

    @rule(MEAN)
    def move(self, m: Match, convolution: ConvolutionOp, mean: ReduceOp, x: SSAValue) -> Outcome:
        small = m.make(ReduceOp, x, **mean.properties)
        return m.make(ConvolutionOp, small.output, *convolution.operands[1:], **convolution.properties)
