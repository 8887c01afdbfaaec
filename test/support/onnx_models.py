"""Small ONNX models for tests, and the comparison of their results with onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import helper
from onnxruntime_session import cpu_session

from mlirt.builder.reference_engine import ReferenceEngine
from mlirt.dialects.context import RtContext
from mlirt.dialects.xdsl_compat import module_text
from mlirt.frontend.onnx.importer import import_model

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Shape: TypeAlias = "Sequence[int | str | None]"


def tensor_info(name: str, dtype: str, shape: Shape) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(shape))


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[str, Shape]],
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
    opset: int = 17,
    functions: Sequence[onnx.FunctionProto] = (),
    domains: Sequence[str] = (),
) -> onnx.ModelProto:
    """A model; the types of its outputs are left to the reader."""
    stored = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    declared = [tensor_info(name, dtype, shape) for name, (dtype, shape) in inputs.items()]
    graph = helper.make_graph(nodes, "test", declared, [onnx.ValueInfoProto(name=name) for name in outputs], stored)
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10)


def one_node(
    op_type: str,
    arrays: Sequence[Array | None],
    opset: int = 17,
    constants: Sequence[int] = (),
    outputs: int = 1,
    domain: str = "",
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one node named `node`, and its feeds; the inputs at `constants` are stored in the model."""
    names = ["" if array is None else f"in{k}" for k, array in enumerate(arrays)]
    results = [f"out{k}" for k in range(outputs)]
    node = helper.make_node(op_type, names, results, name="node", domain=domain, **attributes)
    given = {name: np.asarray(array) for name, array in zip(names, arrays, strict=True) if array is not None}
    stored = {name: array for name, array in given.items() if int(name[2:]) in constants}
    feeds = {name: array for name, array in given.items() if name not in stored}
    inputs = {name: (array.dtype.name, array.shape) for name, array in feeds.items()}
    return model_of([node], inputs, results, stored, opset, domains=[domain] if domain else []), feeds


def imported_text(model: onnx.ModelProto, **options: Any) -> str:
    """The IR that the importer makes of a model."""
    return module_text(import_model(model, RtContext(), **options))


def run_reference(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs of a model by the interpreter."""
    ctx = RtContext()
    return list(ReferenceEngine(import_model(model, ctx), ctx).run(feeds).values())


def run_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs of a model by onnxruntime."""
    return [np.asarray(array) for array in cpu_session(model).run(None, dict(feeds))]


def write_model(model: onnx.ModelProto, path: Path) -> None:
    path.write_bytes(model.SerializeToString())


def assert_agrees(model: onnx.ModelProto, feeds: Mapping[str, Array], rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """The interpreter gives what onnxruntime gives: types, shapes and numbers."""
    for got, want in zip(run_reference(model, feeds), run_onnxruntime(model, feeds), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def check_node(
    op_type: str, arrays: Sequence[Array | None], opset: int = 17, constants: Sequence[int] = (), **attributes: Any
) -> None:
    """One node against onnxruntime."""
    assert_agrees(*one_node(op_type, arrays, opset, constants, **attributes))


def numbers(*shape: int, seed: int = 0, dtype: str = "float32") -> Array:
    """Reproducible numbers around 0."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def small_integers(*shape: int, low: int = 0, high: int = 10, seed: int = 0, dtype: str = "int64") -> Array:
    """Reproducible integers in [low, high)."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)
