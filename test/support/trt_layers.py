"""Runs one trt layer on arrays and holds its types against its results; runs one ONNX node in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np
import onnx
from onnx import helper
from onnxruntime_session import cpu_session
from xdsl.dialects.builtin import BoolAttr, FloatAttr, IntegerAttr, StringAttr, f64, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import VarOperandDef
from xdsl.utils.str_enum import StrEnum
from xdsl.utils.test_value import create_ssa_value

from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.symbolic import Dim, evaluate
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims, element_of, element_type, is_unknown, numpy_dtype, tensor

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def layer(
    op_class: type[TensorOp],
    arrays: Sequence[Array | None],
    shapes: Mapping[int, str] | None = None,
    results: int = 1,
    **properties: object,
) -> TensorOp:
    """The op on operands of the arrays' types; `shapes` gives the dimensions of operand k as text, `n, 3, 2*w`."""
    values: list[SSAValue | None] = []
    for k, array in enumerate(arrays):
        if array is None:
            values.append(None)
            continue
        sizes: list[Dim] = [int(size) for size in array.shape]
        if shapes is not None and k in shapes:
            sizes = [parse(text) for text in shapes[k].split(",")]
        values.append(create_ssa_value(tensor(element_type(array.dtype.name), sizes)))
    definitions = [definition for _, definition in op_class.get_irdl_definition().operands]
    operands: list[SSAValue | list[SSAValue] | None] = [*values, *[None] * (len(definitions) - len(values))]
    if type(definitions[0]) is VarOperandDef:
        operands = [[value for value in values if value is not None]]
    attributes = {name: as_attribute(op_class, name, value) for name, value in properties.items()}
    return op_class.build_inferred(operands, attributes, results=results)


def run(
    op_class: type[TensorOp],
    arrays: Sequence[Array | None],
    shapes: Mapping[int, str] | None = None,
    results: int = 1,
    **properties: object,
) -> list[Array]:
    """The layer's results, which have the shapes and element types that its `infer` gives."""
    op = layer(op_class, arrays, shapes, results, **properties)
    op.verify()
    given = [array for array in arrays if array is not None]
    found = [np.asarray(result) for result in op.reference(*given)]
    values = lengths(given, shapes or {})
    for result, array in zip(op.results, found, strict=True):
        assert array.dtype == numpy_dtype(element_of(result.type))
        expected = [
            size if is_unknown(dim) else evaluate(dim, values)
            for dim, size in zip(dims(result.type), array.shape, strict=True)
        ]
        assert expected == list(array.shape), f"infer gives {result.type}, reference {array.shape}"
    return found


def lengths(arrays: Sequence[Array], shapes: Mapping[int, str]) -> dict[str, int]:
    """What the plain symbols of `shapes` stand for."""
    values: dict[str, int] = {}
    for k, text in shapes.items():
        for name, size in zip(text.split(","), arrays[k].shape, strict=True):
            if name.strip().isidentifier():
                values[name.strip()] = int(size)
    return values


def as_attribute(op_class: type[TensorOp], name: str, value: object) -> Attribute:
    """A property from a plain value; enum members find their attribute class in the op's module."""
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    if isinstance(value, float):
        return FloatAttr(value, f64)
    if isinstance(value, StrEnum):
        return _enum_attribute(type(value))(value)
    if isinstance(value, str):
        return StringAttr(value)
    assert isinstance(value, Sequence), f"{op_class.name}: property {name} from {value!r}"
    return integer_list(cast(Sequence[int], value))


@lru_cache
def _enum_attribute(kind: type[StrEnum]) -> type[EnumAttribute[Any]]:
    from mlirt.dialects.trt import Trt

    for attribute in Trt.attributes:
        if issubclass(attribute, EnumAttribute) and attribute.enum_type is kind:
            return cast(type[EnumAttribute[Any]], attribute)
    raise AssertionError(f"no attribute of trt holds {kind.__name__}")


def onnx_node(
    op_type: str,
    inputs: Sequence[Array | None],
    outputs: int = 1,
    opset: int = 17,
    **attributes: Any,
) -> list[Array]:
    """The outputs of one ONNX node, computed by ONNX Runtime on the CPU."""
    names = [f"x{k}" if array is not None else "" for k, array in enumerate(inputs)]
    node = helper.make_node(op_type, names, [f"y{k}" for k in range(outputs)], **attributes)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, inputs, strict=True)
        if array is not None
    ]
    results = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "one_node", values, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    feeds = {name: array for name, array in zip(names, inputs, strict=True) if array is not None}
    return [np.asarray(value) for value in cpu_session(model).run(None, feeds)]


def random(shape: Sequence[int], seed: int = 0, dtype: str = "float32") -> Array:
    """Reproducible numbers: floats of a normal distribution, integers in -100 to 100, unsigned in 0 to 100."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "f":
        return np.asarray(rng.standard_normal(tuple(shape)), dtype)
    if kind == "b":
        return np.asarray(rng.integers(0, 2, tuple(shape)), np.bool_)
    return np.asarray(rng.integers(0 if kind == "u" else -100, 101, tuple(shape)), dtype)
