"""Rules for one-operand layers: functions that are done twice, undone, or do nothing."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.tensor_types import (
    byte_width,
    dims,
    element_of,
    is_bool,
    is_float,
    is_float8,
    is_unsigned,
    numpy_dtype,
    rank,
)
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.lrn import LrnOp
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.pooling import PoolingOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.dialects.trt.resize import ResizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.passes.rules import Match, Outcome, Rule, either, layer, op, rule, value

# One tensor in, one out, and half precision is computed in float32.
_ROUNDS_ONCE = ResizeOp | PoolingOp | SoftmaxOp | LrnOp | ShuffleOp | SliceOp | PaddingOp
_RANGES = either("relu", "clip", "sigmoid", "hard_sigmoid")
x = value("x")
CAST = op(IdentityOp, x).named("cast")
INNER_CAST = op(IdentityOp, x).named("inner").shared()
INNER = op(UnaryOp, x).named("inner").shared()


@rule(CAST)
def drop_identity(cast: IdentityOp, x: SSAValue) -> Outcome:
    """A conversion to the element type that the input has."""
    return x if x.type == cast.output.type else None


@rule(op(IdentityOp, INNER_CAST).named("cast"))
def skip_exact_conversion(m: Match, cast: IdentityOp, inner: IdentityOp, x: SSAValue) -> Outcome:
    """A -> B -> C is A -> C where B holds every number of A."""
    if not holds(element_of(inner.output.type), element_of(x.type)):
        return None
    return x if x.type == cast.output.type else m.insert(IdentityOp.cast(x, element_of(cast.output.type)))


def holds(wide: Attribute, narrow: Attribute) -> bool:
    """Whether every number of one element type is one of another."""
    if wide == narrow or is_bool(narrow):
        return True
    if is_float8(wide) or is_float8(narrow):
        return is_float(wide) and is_float8(narrow)
    if is_bool(wide) or (is_float(narrow) and not is_float(wide)):
        return False
    digits = {2: 8, 4: 24, 8: 53}[byte_width(wide)] if is_float(wide) else 0
    if is_float(narrow):  # float16 and bfloat16 do not hold each other
        return byte_width(wide) > byte_width(narrow)
    if is_float(wide):
        return digits >= 8 * byte_width(narrow)
    same_sign = is_unsigned(wide) == is_unsigned(narrow) or is_unsigned(narrow)
    return same_sign and byte_width(wide) > byte_width(narrow)


@rule(op(IdentityOp, op(_ROUNDS_ONCE, op(IdentityOp, x).shared().named("wide")).named("layer")).named("cast"))
def stay_narrow(m: Match, cast: IdentityOp, layer: SoftmaxOp, wide: IdentityOp, x: SSAValue) -> Outcome:
    """narrow(op(widen(x))) -> op(x): such a layer computes half precision in float32 anyway, and rounds once."""
    target = element_of(cast.output.type)
    if byte_width(target) != 2 or not is_float(target):
        return None
    if element_of(wide.output.type) != f32 or element_of(x.type) != target:
        return None
    made = type(layer).create(operands=[x], properties=dict(layer.properties), result_types=[cast.output.type])
    return m.insert(made, layer)


@rule(op(UnaryOp, INNER, kind=either("neg", "not", "bitwise_not")).named("outer"))
def undo_twice(outer: UnaryOp, inner: UnaryOp, x: SSAValue) -> Outcome:
    """neg(neg(x)) -> x."""
    return x if inner.kind == outer.kind else None


@rule(op(UnaryOp, INNER, kind=either("abs", "ceil", "floor", "round", "sign")).named("outer"))
def apply_unary_once(outer: UnaryOp, inner: UnaryOp) -> Outcome:
    """abs(abs(x)) -> abs(x)."""
    return inner.output if inner.kind == outer.kind else None


@rule(op(UnaryOp, x, kind=either("ceil", "floor", "round")))
def leave_integers(x: SSAValue) -> Outcome:
    """Integers are whole already."""
    return None if is_float(element_of(x.type)) else x


# log(softmax(x)) -> the softmax that gives logarithms: there is no 0 of which to take one.
TAKE_LOG_IN_SOFTMAX = Rule(
    op(UnaryOp, op(SoftmaxOp, x, log=False).named("softmax"), kind="log"),
    layer(SoftmaxOp, x, like="softmax", log=True),
    "take_log_in_softmax",
)


@rule(op(ActivationOp, op(ActivationOp, x, kind=_RANGES).named("inner").shared(), kind="relu"))
def apply_relu_once(inner: ActivationOp) -> Outcome:
    """relu(y) -> y where y is the result of relu, sigmoid, or a clip to at least 0."""
    return None if inner.kind.data is ActivationKind.CLIP and inner.alpha.value.data < 0 else inner.output


@rule(
    op(ActivationOp, op(ActivationOp, x, kind=either("relu", "clip")).named("inner").shared(), kind="clip").named(
        "clip"
    )
)
def join_clips(m: Match, clip: ActivationOp, inner: ActivationOp, x: SSAValue) -> Outcome:
    """clip(clip(x)) and clip(relu(x)) -> clip(x), where the second range lies in the first."""
    is_relu = inner.kind.data is ActivationKind.RELU
    first = (0.0, math.inf) if is_relu else (inner.alpha.value.data, inner.beta.value.data)
    within = first[0] <= clip.alpha.value.data <= clip.beta.value.data <= first[1]
    return m.make_after([inner, clip], ActivationOp, x, **clip.properties) if within else None


@rule(op(QuantizeOp, op(DequantizeOp).named("real").shared(), ...).named("integers"))
def drop_requantization(integers: QuantizeOp, real: DequantizeOp) -> Outcome:
    """quantize(dequantize(q)) with the same scale and zero point -> q."""
    same = integers.scale is real.scale and integers.zero_point is real.zero_point and integers.axis == real.axis
    return real.input if same and real.input.type == integers.output.type else None


@rule(op(ConvolutionOp).named("layer"))
def sum_no_channels(m: Match, layer: ConvolutionOp) -> Outcome:
    """convolution(x, k, b) of no input channels -> b, spread over the output; zeros where there is no bias."""
    lengths = dims(layer.output.type)
    if dims(layer.kernel.type)[1] != 0 or not all(isinstance(length, int) for length in lengths):
        return None
    shape = [int(str(length)) for length in lengths]
    import numpy as np  # not before it is needed: rt-opt starts without it

    zeros = m.constant(np.zeros(shape, numpy_dtype(element_of(layer.output.type))), "", layer)
    if layer.bias is None:
        return zeros
    axis = len(shape) - rank(layer.kernel.type) + 1
    spread = [length if k == axis else 1 for k, length in enumerate(shape)]
    bias = m.make(ShuffleOp, layer.bias, None, reshape_dims=spread, zero_is_placeholder=False)
    return m.make(ElementwiseOp, zeros, bias.output, kind="sum")


RULES = (
    drop_identity,
    skip_exact_conversion,
    stay_narrow,
    undo_twice,
    apply_unary_once,
    leave_integers,
    TAKE_LOG_IN_SOFTMAX,
    apply_relu_once,
    join_clips,
    drop_requantization,
    sum_no_channels,
)
