"""Inputs and outputs of few bits: bytes that stand for numbers by a range (tensorrt-features.md#5.10), INT32 for int64.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.property_values import properties_of
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_of, element_type, numpy_dtype, rank
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.dialects.weights import WeightStore

_MAX_INT8 = 127.0

Append = Callable[[Operation], object]


def numbers_of_int8(value: SSAValue, reach: float, store: WeightStore, append: Append) -> SSAValue:
    """`q * reach / 127` as float32."""
    wide = IdentityOp.cast(value, element_type("float32"))
    append(wide)
    return _scaled(wide.output, reach / _MAX_INT8, store, append)


def int8_of_numbers(value: SSAValue, reach: float, store: WeightStore, append: Append) -> SSAValue:
    """The nearest bytes q with `q * reach / 127`, the outermost ones beyond the range."""
    scaled = _scaled(value, _MAX_INT8 / reach, store, append)
    rounded = _op(UnaryOp, [scaled], {"kind": "round"}, append)
    clipped = _op(ActivationOp, [rounded], {"kind": "clip", "alpha": -_MAX_INT8 - 1, "beta": _MAX_INT8}, append)
    narrow = IdentityOp.cast(clipped, element_type("int8"))
    append(narrow)
    return narrow.output


def within_int32(value: SSAValue, store: WeightStore, append: Append) -> SSAValue:
    """int64 numbers with those that INT32 cannot hold as the nearest that it can, still as int64."""
    import numpy as np

    limits = np.iinfo(np.int32)
    for kind, limit in (("min", limits.max), ("max", limits.min)):
        bound = ConstantOp.from_array(np.full((1,) * rank(value.type), limit, np.int64), store, "limit")
        append(bound)
        value = _op(ElementwiseOp, [value, bound.output], {"kind": kind}, append)
    return value


def _scaled(value: SSAValue, factor: float, store: WeightStore, append: Append) -> SSAValue:
    import numpy as np

    array = np.full((1,) * rank(value.type), factor, numpy_dtype(element_of(value.type)))
    constant = ConstantOp.from_array(array, store, "scale")
    append(constant)
    return _op(ElementwiseOp, [value, constant.output], {"kind": "prod"}, append)


def _op(op: type[TensorOp], operands: list[SSAValue], properties: dict[str, object], append: Append) -> SSAValue:
    made = op.build_inferred(operands, properties_of(op, properties))
    append(made)
    return made.results[0]
