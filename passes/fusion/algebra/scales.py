"""Equations between scales and shifts: constants that meet, factors in common, and scales in front of linear layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Block, SSAValue

from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_bool, is_float, rank
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.passes.rules import Outcome, binary, constant, either, op, value
from mlirt.passes.rules.equality.equation import EqualMatch, equation

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

x, y, z = value("x"), value("y"), value("z")
_MAX_ELEMENTS = 1 << 20  # of constants that are combined
_FLOAT32_BYTES = 4
_MAX_WEIGHTS = 1 << 24  # elements of weights that are scaled


@equation(binary("sum", binary("sum", x, constant("a")), constant("b")))
def add_constants(m: EqualMatch, x: SSAValue, a: SSAValue, b: SSAValue) -> Outcome:
    """(x + a) + b = x + (a + b); integers wrap around either way."""
    return _joined(m, x, a, b, "sum")


@equation(binary("prod", binary("prod", x, constant("a")), constant("b")))
def multiply_constants(m: EqualMatch, x: SSAValue, a: SSAValue, b: SSAValue) -> Outcome:
    """(x * a) * b = x * (a * b)."""
    return _joined(m, x, a, b, "prod")


def _joined(m: EqualMatch, x: SSAValue, a: SSAValue, b: SSAValue, kind: str) -> Outcome:
    import numpy as np

    first, second = m.array(a), m.array(b)
    if max(first.size, second.size) > _MAX_ELEMENTS or is_bool(element_of(x.type)):
        return None
    if not is_float(element_of(x.type)):
        both = first + second if kind == "sum" else first * second
        return m.make(ElementwiseOp, x, m.constant(both, "constants"), kind=kind)
    m.need("reassociate")
    if byte_width(element_of(x.type)) < _FLOAT32_BYTES:
        m.need("finite")  # what lies between may overflow in half precision, and shall do so
    wide = first.astype(np.float64), second.astype(np.float64)
    both = narrowed(wide[0] + wide[1] if kind == "sum" else wide[0] * wide[1], first)
    if both is None or (kind == "prod" and ((both == 0) & (wide[0] * wide[1] != 0)).any()):
        return "the constants leave the range of their type together"
    return m.make(ElementwiseOp, x, m.constant(both, "constants"), kind=kind)


@equation(op(ElementwiseOp, op(ElementwiseOp, x, constant("a"), kind="sub"), constant("b"), kind=either("sum", "sub")))
def add_to_difference(m: EqualMatch, x: SSAValue, a: SSAValue, b: SSAValue) -> Outcome:
    """(x - a) + b = x + (b - a), (x - a) - b = x - (a + b)."""
    root = m.root
    assert isinstance(root, ElementwiseOp)
    minus = root.kind.data is ElementwiseKind.SUB
    return _shifted(m, x, b, a, -1 if minus else 1, -1)


@equation(op(ElementwiseOp, binary("sum", x, constant("a")), constant("b"), kind="sub"))
def subtract_from_sum(m: EqualMatch, x: SSAValue, a: SSAValue, b: SSAValue) -> Outcome:
    """(x + a) - b = x + (a - b)."""
    return _shifted(m, x, a, b, 1, -1)


def _shifted(m: EqualMatch, x: SSAValue, a: SSAValue, b: SSAValue, sign: int, other: int) -> Outcome:
    import numpy as np

    first, second = m.array(a), m.array(b)
    if not is_float(element_of(x.type)) or max(first.size, second.size) > _MAX_ELEMENTS:
        return None
    m.need("reassociate")
    both = narrowed(sign * first.astype(np.float64) + other * second.astype(np.float64), first)
    if both is None:
        return "the constants leave the range of their type together"
    return m.make(ElementwiseOp, x, m.constant(both, "constants"), kind="sum")


@equation(op(ElementwiseOp, x, constant("divisor"), kind="div"))
def divide_by_constant(m: EqualMatch, x: SSAValue, divisor: SSAValue) -> Outcome:
    """x / c = x * (1 / c): the same number where c is a power of two, else another rounding."""
    import numpy as np

    array = m.array(divisor)
    if not is_float(element_of(x.type)) or array.size > _MAX_ELEMENTS:
        return None
    wide = array.astype(np.float64)
    if not np.isfinite(wide).all() or not wide.all():
        return None
    inverse = narrowed(1 / wide, array)
    if inverse is None or not _are_normal(inverse):
        return "the inverse leaves the range of its type"
    if not (np.frexp(wide)[0] == np.copysign(0.5, wide)).all():
        m.need("reciprocal")
    return m.make(ElementwiseOp, x, m.constant(inverse, "inverse"), kind="prod")


@equation(binary("sum", binary("prod", x, z), binary("prod", y, z)).named("total"), "reassociate")
def factor_out(m: EqualMatch, total: ElementwiseOp, x: SSAValue, y: SSAValue, z: SSAValue) -> Outcome:
    """x * z + y * z = (x + y) * z; infinite numbers may cancel in one of them."""
    if not is_float(element_of(z.type)):
        return None
    if not isinstance(z.owner, ConstantOp):
        m.need("finite")
    both = m.make(ElementwiseOp, x, y, kind="sum")
    return m.make(ElementwiseOp, both.output, z, kind="prod")


@equation(op(ReduceOp, binary("prod", x, constant("factor")), kind=either("sum", "avg")).named("total"), "reassociate")
def scale_after_sum(m: EqualMatch, total: ReduceOp, x: SSAValue, factor: SSAValue) -> Outcome:
    """sum(x * c) = sum(x) * c, where c is the same along the axes that are summed."""
    axes, lengths = integers(total.axes), dims(factor.type)
    if not is_float(element_of(x.type)) or dims(x.type) != dims(total.input.type):
        return None
    if any(lengths[axis] != 1 for axis in axes):
        return None
    array = m.array(factor)
    kept = (
        array if total.keep_dims.value.data else array.reshape([n for k, n in enumerate(array.shape) if k not in axes])
    )
    smaller = m.make_after([total], ReduceOp, x, **total.properties)
    return m.make(ElementwiseOp, smaller.output, m.constant(kept, "factor"), kind="prod")


@equation(
    op(MatrixMultiplyOp, binary("prod", x, constant("factor")), constant("weights")).named("product"), "reassociate"
)
def scale_into_matrix(
    m: EqualMatch, product: MatrixMultiplyOp, x: SSAValue, factor: SSAValue, weights: SSAValue
) -> Outcome:
    """(x * c) W = x (c W), where c is one number, or one for each row of W."""
    import numpy as np

    scale, matrix = m.array(factor), m.array(weights)
    if not _is_plain(product) or x.type != product.lhs.type or not is_float(element_of(x.type)):
        return None
    if any(size != 1 for size in scale.shape[:-1]) or matrix.size > _MAX_WEIGHTS or not _has_own_launch(x):
        return None
    by_row = scale.reshape(-1).astype(np.float64)
    is_transposed = product.rhs_op.data is MatrixOperation.TRANSPOSE
    scaled = narrowed(matrix.astype(np.float64) * (by_row if is_transposed else by_row[:, None]), matrix)
    if scaled is None:
        return "the weights leave the range of their type"
    return m.make_after(m.ops, MatrixMultiplyOp, x, m.constant(scaled, "scaled", product), **product.properties)


@equation(
    op(
        MatrixMultiplyOp,
        op(ElementwiseOp, x, constant("shift"), kind=either("sum", "sub")).named("total"),
        constant("w"),
    ).named("product"),
    "reassociate",
)
def shift_behind_matrix(
    m: EqualMatch, product: MatrixMultiplyOp, total: ElementwiseOp, x: SSAValue, shift: SSAValue, w: SSAValue
) -> Outcome:
    """(x + c) W = x W + c W, where c is the same for all rows of x."""
    import numpy as np

    added, matrix = m.array(shift), m.array(w)
    if not _is_plain(product) or x.type != product.lhs.type or not is_float(element_of(x.type)):
        return None
    if any(size != 1 for size in added.shape[:-1]) or rank(w.type) != rank(x.type) or not _has_own_launch(x):
        return None
    wide = matrix.astype(np.float64)
    wide = wide.swapaxes(-1, -2) if product.rhs_op.data is MatrixOperation.TRANSPOSE else wide
    row = np.broadcast_to(added, (*added.shape[:-1], wide.shape[-2])).astype(np.float64)
    moved = narrowed((row if total.kind.data is ElementwiseKind.SUM else -row) @ wide, matrix)
    if moved is None:
        return "the shift leaves the range of its type"
    plain = m.make_after([product], MatrixMultiplyOp, x, w, **product.properties)
    return m.make(ElementwiseOp, plain.output, m.constant(moved, "shift", total), kind="sum")


@equation(
    op(ConvolutionOp, binary("prod", x, constant("factor")), constant("kernel"), ...).named("layer"), "reassociate"
)
def scale_into_kernel(m: EqualMatch, layer: ConvolutionOp, x: SSAValue, factor: SSAValue, kernel: SSAValue) -> Outcome:
    """conv(x * c, W) = conv(x, W * c), where c is one number, or one for each input channel: padding stays 0."""
    import numpy as np

    scale, weights, axes = m.array(factor), m.array(kernel), len(layer.sizes())
    if x.type != layer.input.type or not is_float(element_of(x.type)) or layer.padding_value.value.data != 0:
        return None
    channel = scale.ndim - axes - 1
    if weights.size > _MAX_WEIGHTS or not _has_own_launch(x):
        return None
    if channel < 0 or any(size != 1 for axis, size in enumerate(scale.shape) if axis != channel):
        return None
    by_channel = scale.reshape(-1).astype(np.float64)
    if by_channel.size > 1 and layer.num_groups.value.data != 1:
        return None
    wide = weights.astype(np.float64) * by_channel.reshape(1, -1, *[1] * axes)
    scaled = narrowed(wide, weights)
    if scaled is None:
        return "the weights leave the range of their type"
    moved = m.constant(scaled, "scaled", layer)
    return m.make_after(m.ops, ConvolutionOp, x, moved, layer.bias, **layer.properties)


def _has_own_launch(x: SSAValue) -> bool:
    """Whether what scales a tensor is no epilogue of what computes it: where it is one, its weights need not change."""
    while isinstance(owner := x.owner, ElementwiseOp | IdentityOp) and x.has_one_use():
        computed = [value for value in owner.operands if not isinstance(value.owner, ConstantOp)]
        if len(computed) != 1:
            return False
        (x,) = computed
    return isinstance(owner, Block) or not x.has_one_use()


def _is_plain(product: MatrixMultiplyOp) -> bool:
    """Whether one matrix multiplies rows."""
    shape = dims(product.rhs.type)
    is_one = all(size == 1 for size in shape[:-2])
    return product.lhs_op.data is MatrixOperation.NONE and product.rhs_op.data is not MatrixOperation.VECTOR and is_one


def narrowed(wide: Array, like: Array) -> Array | None:
    """Numbers in the type of others; None where they are not finite there."""
    import numpy as np

    with np.errstate(over="ignore"):
        found = wide.astype(like.dtype)
    return found if np.isfinite(found.astype(np.float64)).all() else None


def _are_normal(array: Array) -> bool:
    import numpy as np

    least = {2: 6.2e-5, 4: 1.2e-38, 8: 2.3e-308}[array.dtype.itemsize]
    return bool((np.abs(array.astype(np.float64)) >= least).all())


EQUATIONS = (
    add_constants,
    multiply_constants,
    add_to_difference,
    subtract_from_sum,
    divide_by_constant,
    factor_out,
    scale_after_sum,
    scale_into_matrix,
    shift_behind_matrix,
    scale_into_kernel,
)
