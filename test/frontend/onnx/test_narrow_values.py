"""Networks with element types of at most 8 bits, against ONNX's own evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mlirt
from mlirt import onnx_backend
from mlirt.errors import UnsupportedError
from mlirt.frontend.onnx.narrow_types import NARROW_TYPES

X = np.array([[-300.0, -7.6, -1.5, -0.1], [0.0, 0.3, 2.5, 6.0], [7.49, 90.0, 448.0, 1e5]], np.float32)


def _model(nodes: Sequence[NodeProto], output: int = TensorProto.FLOAT, **stored: Any) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", output, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in stored.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])


def _check(model: onnx.ModelProto, x: np.ndarray[Any, np.dtype[Any]] = X) -> None:
    evaluator: Any = ReferenceEvaluator(model)
    (expected,) = evaluator.run(None, {"x": x})
    (found,) = onnx_backend.prepare(model, "reference").run([x])
    found = numpy_helper.to_array(found) if isinstance(found, TensorProto) else found
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.fixture(autouse=True)
def _on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_BACKEND_TARGET", "reference")


@pytest.mark.parametrize("target", sorted(NARROW_TYPES))
def test_there_and_back(target: int) -> None:
    x = np.clip(X, *NARROW_TYPES[target].limits()) if NARROW_TYPES[target].is_integer else X
    there = helper.make_node("Cast", ["x"], ["narrow"], to=target)
    _check(_model([there, helper.make_node("Cast", ["narrow"], ["y"], to=TensorProto.FLOAT)]), x)
    _check(_model([helper.make_node("Cast", ["x"], ["y"], to=target)], target), x)


@pytest.mark.parametrize("target", [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2])
@pytest.mark.parametrize("block", [0, 2])
def test_blocks_of_small_integers(target: int, block: int) -> None:
    kind = NARROW_TYPES[target]
    low, high = kind.limits()
    scale = np.linspace(0.5, 2, 6 if block else 4).astype(np.float32).reshape((3, 2) if block else (4,))
    zero = np.full(scale.shape, high // 2).astype(kind.dtype)
    attributes: dict[str, Any] = {"axis": 1, "block_size": block} if block else {"axis": 1}
    quantize = helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], **attributes)
    back = helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], **attributes)
    _check(_model([quantize, back], scale=scale, zero=zero))
    assert low <= 0 < high


def test_stored_weights_become_numbers_at_once() -> None:
    import ml_dtypes

    weights = np.array([[0.5, -1, 448, 0.07]], np.float32).astype(ml_dtypes.float8_e4m3fn)
    widen = helper.make_node("DequantizeLinear", ["w", "scale"], ["wide"])
    nodes = [widen, helper.make_node("Mul", ["x", "wide"], ["y"])]
    _check(_model(nodes, w=weights, scale=np.array(0.25, np.float32)))


def test_elements_are_moved() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=TensorProto.FLOAT8E5M2),
        helper.make_node("Transpose", ["q"], ["t"]),
        helper.make_node("Concat", ["t", "t"], ["c"], axis=0),
        helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT),
    ]
    _check(_model(nodes))


def test_arithmetic_is_refused() -> None:
    nodes = [helper.make_node("Cast", ["x"], ["q"], to=TensorProto.INT4), helper.make_node("Add", ["q", "q"], ["y"])]
    with pytest.raises(UnsupportedError, match=r"Add .* it reads the element type int4; cast it to float32 or int8"):
        onnx_backend.prepare(_model(nodes, TensorProto.INT4))


def test_arrays_of_narrow_types_are_inputs() -> None:
    import ml_dtypes

    graph = helper.make_graph(
        [helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT)],
        "g",
        [helper.make_tensor_value_info("q", TensorProto.FLOAT8E4M3FN, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    numbers = np.array([0.5, -3, 100, 448], np.float32)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    (found,) = onnx_backend.prepare(model).run([numbers.astype(ml_dtypes.float8_e4m3fn)])
    np.testing.assert_array_equal(found, numbers.astype(ml_dtypes.float8_e4m3fn).astype(np.float32))


def test_beyond_the_largest_number_is_not_a_number_of_its_sign() -> None:
    import ml_dtypes

    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["q"], to=TensorProto.FLOAT8E4M3FN, saturate=0)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [7])],
        [helper.make_tensor_value_info("q", TensorProto.FLOAT8E4M3FN, [7])],
    )
    numbers = np.array([0.5, -3, -1e-7, 1e6, -1e6, np.inf, -np.inf], np.float32)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    for target in ("cpu", "reference"):
        (found,) = mlirt.compile(model, target).run({"x": numbers}).values()
        assert found.tobytes() == numbers.astype(ml_dtypes.float8_e4m3fn).tobytes()
