"""What is known when the engine is built about a tensor value: its elements, or the one number that all of them are."""

from __future__ import annotations

import struct
from math import copysign, inf, isfinite
from typing import TYPE_CHECKING, Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.context import weights_of
from mlirt.dialects.tensor_types import byte_width, element_count, element_name, element_of, numpy_dtype
from mlirt.dialects.trt.constant import ConstantOp, looks

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


# Numbers are read without NumPy, whose import takes longer than most pipelines of a test.
_FORMS = {
    "float16": "=e", "float32": "=f", "float64": "=d", "bool": "=?",
    "int8": "=b", "uint8": "=B", "int16": "=h", "uint16": "=H",
    "int32": "=i", "uint32": "=I", "int64": "=q", "uint64": "=Q",
}  # fmt: skip
_FLOATS = ("float16", "float32", "float64")


def array_of(value: SSAValue, ctx: Context) -> Array | None:
    """The elements of a constant; None for a value that is computed."""
    owner = value.owner
    return owner.array(weights_of(ctx)) if isinstance(owner, ConstantOp) else None


def splat_of(value: SSAValue) -> float | None:
    """The number that all elements of a small constant are; None for other values."""
    owner = value.owner
    if not isinstance(owner, ConstantOp) or not isinstance(held := owner.value, DenseIntOrFPElementsAttr):
        return None
    element, data = element_of(owner.output.type), cast("DenseIntOrFPElementsAttr[Any]", held).data.data
    looks.count += 1
    first = data[: byte_width(element)]
    if not data or not element_count(owner.output.type) or data != first * (len(data) // len(first)):
        return None
    form = _FORMS.get(element_name(element))
    if form is not None:
        return struct.unpack(form, first)[0]
    import numpy as np

    return np.frombuffer(first, numpy_dtype(element))[0].item()


def rounded(number: float, element: Attribute) -> float:
    """What a number is as an element of a type; itself where the type has none like it."""
    name = element_name(element)
    if name in _FLOATS and isfinite(number):
        try:
            return struct.unpack(_FORMS[name], struct.pack(_FORMS[name], number))[0]
        except OverflowError:
            return copysign(inf, number)
    try:
        return numpy_dtype(element).type(number).item()
    except OverflowError:  # no integer of the type is near
        return number
