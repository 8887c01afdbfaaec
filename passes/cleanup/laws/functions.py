"""Laws of one-operand layers: functions that are done twice, undone, or do nothing."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import BoolAttr, f32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.tensor_types import byte_width, element_of, is_bool, is_float, is_float8, is_unsigned
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.lrn import LrnOp
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.pooling import PoolingOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.dialects.trt.resize import ResizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.unary import UnaryKind, UnaryOp
from mlirt.passes.cleanup.laws.law import Laws, Site, real
from mlirt.passes.cleanup.rewriting import insert_before

_UNDONE_BY_ITSELF = frozenset({UnaryKind.NEG, UnaryKind.NOT, UnaryKind.BITWISE_NOT})
_ONCE_IS_ENOUGH = frozenset({UnaryKind.ABS, UnaryKind.CEIL, UnaryKind.FLOOR, UnaryKind.ROUND, UnaryKind.SIGN})
# One tensor in, one out, and half precision is computed in float32.
_ROUNDS_ONCE = ResizeOp | PoolingOp | SoftmaxOp | LrnOp | ShuffleOp | SliceOp | PaddingOp
_WHOLE = frozenset({UnaryKind.CEIL, UnaryKind.FLOOR, UnaryKind.ROUND})


def drop_identity(at: Site) -> SSAValue | None:
    """A conversion to the element type that the input has."""
    op = at.op
    assert isinstance(op, IdentityOp)
    return op.input


def skip_exact_conversion(at: Site) -> SSAValue | None:
    """A -> B -> C is A -> C where B holds every number of A."""
    op = at.op
    assert isinstance(op, IdentityOp)
    inner = op.input.owner
    if not isinstance(inner, IdentityOp):
        return None
    source = inner.input
    if not holds(element_of(inner.output.type), element_of(source.type)):
        return None
    target = element_of(op.output.type)
    if element_of(source.type) == target:
        return source
    made = IdentityOp.cast(source, target, op.location)
    block = op.parent
    assert block is not None
    block.insert_op_before(made, op)
    return made.output


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


def stay_narrow(at: Site) -> SSAValue | None:
    """narrow(op(widen(x))) -> op(x): such a layer computes half precision in float32 anyway, and rounds once."""
    op = at.op
    assert isinstance(op, IdentityOp)
    layer, target = op.input.owner, element_of(op.output.type)
    if not isinstance(layer, _ROUNDS_ONCE) or not op.input.has_one_use() or byte_width(target) != 2:
        return None
    widened = layer.operands[0].owner
    if len(layer.operands) > 1 or not is_float(target) or not isinstance(widened, IdentityOp):
        return None
    if element_of(widened.output.type) != f32 or element_of(widened.input.type) != target:
        return None
    made = type(layer).create(
        operands=[widened.input], properties=dict(layer.properties), result_types=[op.output.type]
    )
    return insert_before(op, made, layer.location)


def undo_twice(at: Site) -> SSAValue | None:
    """neg(neg(x)) -> x."""
    op = at.op
    assert isinstance(op, UnaryOp)
    inner = op.input.owner
    if isinstance(inner, UnaryOp) and inner.kind == op.kind and op.kind.data in _UNDONE_BY_ITSELF:
        return inner.input
    return None


def take_log_in_softmax(at: Site) -> SSAValue | None:
    """log(softmax(x)) -> the softmax that gives logarithms: there is no 0 of which to take one."""
    op = at.op
    assert isinstance(op, UnaryOp)
    inner = op.input.owner
    if op.kind.data is not UnaryKind.LOG or not isinstance(inner, SoftmaxOp) or inner.log.value.data:
        return None
    if not inner.output.has_one_use():
        return None
    return at.make(SoftmaxOp, [inner.input], {**inner.properties, "log": BoolAttr.from_bool(True)}, inner)


def apply_unary_once(at: Site) -> SSAValue | None:
    """abs(abs(x)) -> abs(x); integers are whole already."""
    op = at.op
    assert isinstance(op, UnaryOp)
    inner = op.input.owner
    if op.kind.data in _WHOLE and not is_float(element_of(op.input.type)):
        return op.input
    if isinstance(inner, UnaryOp) and inner.kind == op.kind and op.kind.data in _ONCE_IS_ENOUGH:
        return op.input
    return None


def apply_relu_once(at: Site) -> SSAValue | None:
    """relu(y) -> y where y is the result of relu, sigmoid, or a clip to at least 0."""
    op = at.op
    assert isinstance(op, ActivationOp)
    inner = op.input.owner
    if op.kind.data is not ActivationKind.RELU or not isinstance(inner, ActivationOp):
        return None
    kind = inner.kind.data
    positive = kind in (ActivationKind.RELU, ActivationKind.SIGMOID, ActivationKind.HARD_SIGMOID)
    clipped = kind is ActivationKind.CLIP and inner.alpha.value.data >= 0
    return op.input if positive or clipped else None


def join_clips(at: Site) -> SSAValue | None:
    """clip(clip(x)) and clip(relu(x)) -> clip(x), where the second range lies in the first."""
    op = at.op
    assert isinstance(op, ActivationOp)
    inner = op.input.owner
    if op.kind.data is not ActivationKind.CLIP or not isinstance(inner, ActivationOp):
        return None
    if inner.kind.data is ActivationKind.RELU:
        first = (0.0, math.inf)
    elif inner.kind.data is ActivationKind.CLIP:
        first = (inner.alpha.value.data, inner.beta.value.data)
    else:
        return None
    low, high = op.alpha.value.data, op.beta.value.data
    if not first[0] <= low <= high <= first[1]:
        return None
    properties = {"kind": op.kind, "alpha": real(low), "beta": real(high)}
    return at.make(ActivationOp, [inner.input], properties, inner)


def drop_requantization(at: Site) -> SSAValue | None:
    """quantize(dequantize(q)) with the same scale and zero point -> q."""
    op = at.op
    assert isinstance(op, QuantizeOp)
    inner = op.input.owner
    if not isinstance(inner, DequantizeOp):
        return None
    same = op.scale is inner.scale and op.zero_point is inner.zero_point and op.axis == inner.axis
    return inner.input if same else None


LAWS: Laws = {
    IdentityOp: (drop_identity, skip_exact_conversion, stay_narrow),
    UnaryOp: (undo_twice, apply_unary_once, take_log_in_softmax),
    ActivationOp: (apply_relu_once, join_clips),
    QuantizeOp: (drop_requantization,),
}
