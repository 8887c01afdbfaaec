"""ONNX's backend interface, on the reference target."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.backend.base import Backend
from onnx_models import model_of, numbers, one_node

import mlirt
import mlirt.onnx_backend as backend
from mlirt.errors import InvalidInputError, UnsupportedError


@pytest.fixture(autouse=True)
def _reference(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("MLIRT_BACKEND_TARGET", "reference")


def test_it_is_a_backend() -> None:
    assert issubclass(backend.MlirtBackend, Backend)
    assert backend.supports_device("CPU")
    assert not backend.supports_device("TPU")


def test_inputs_by_position_and_by_name() -> None:
    model, feeds = one_node("Sub", [numbers(3), numbers(3, seed=1)])
    prepared = backend.prepare(model)
    wanted = feeds["in0"] - feeds["in1"]
    np.testing.assert_array_equal(prepared.run(list(feeds.values()))[0], wanted)
    np.testing.assert_array_equal(prepared.run(feeds)[0], wanted)
    np.testing.assert_array_equal(backend.run_model(model, list(feeds.values()))[0], wanted)


def test_one_node_alone() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    np.testing.assert_array_equal(backend.run_node(node, [np.array([-1.0, 2.0], np.float32)])[0], [0, 2])


def test_an_input_that_steers_the_network_is_built_in_for_each_value() -> None:
    x = numbers(2, 3, 4)
    inputs: dict[str, Any] = {"x": ("float32", [2, 3, 4]), "axes": ("int64", ["n"])}
    model = model_of([helper.make_node("ReduceSum", ["x", "axes"], ["y"])], inputs, ["y"])
    prepared = backend.prepare(model)
    for axis in (0, 1, 2, 1):
        np.testing.assert_allclose(prepared.run([x, np.array([axis])])[0], x.sum(axis, keepdims=True), rtol=1e-5)


def test_steering_inputs_that_show_one_after_the_other() -> None:
    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["a"], keepdims=0),
        helper.make_node("TopK", ["a", "k"], ["y", ""]),
    ]
    inputs: dict[str, Any] = {"x": ("float32", [3, 5]), "axes": ("int64", ["n"]), "k": ("int64", [1])}
    x = numbers(3, 5)
    (got,) = backend.prepare(model_of(nodes, inputs, ["y"])).run([x, np.array([0]), np.array([2])])
    np.testing.assert_allclose(got, np.sort(x.sum(0))[::-1][:2], rtol=1e-5)


def test_protos_in_protos_out() -> None:
    model, feeds = one_node("Neg", [numbers(3)])
    (got,) = backend.prepare(model).run([onnx.numpy_helper.from_array(feeds["in0"])])
    assert isinstance(got, onnx.TensorProto)
    assert got.name == "out0"
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(got), -feeds["in0"])


def test_what_is_not_supported_is_said_so() -> None:
    model, _ = one_node("StringNormalizer", [numbers(3)])
    with pytest.raises(NotImplementedError, match="StringNormalizer"):
        backend.prepare(model)
    with pytest.raises(UnsupportedError):
        backend.prepare(model)


def test_wrong_inputs() -> None:
    model, feeds = one_node("Sub", [numbers(3), numbers(3, seed=1)])
    prepared = backend.prepare(model)
    with pytest.raises(InvalidInputError, match=r"expected 2 inputs \['in0', 'in1'\], got 1"):
        prepared.run([feeds["in0"]])
    with pytest.raises(InvalidInputError, match="device 'TPU' is not known"):
        _without_environment("TPU", model)


def _without_environment(device: str, model: onnx.ModelProto) -> None:
    import os

    os.environ.pop("MLIRT_BACKEND_TARGET")
    backend.prepare(model, device)


OPS = ["Relu", "Conv", "Softmax", "Reshape", "Slice", "Pad", "ReduceL2"]


@cache
def cases_of_onnx() -> list[Any]:
    from onnx.backend.test.case.node import collect_testcases

    return collect_testcases(None)


@pytest.mark.parametrize("op_type", OPS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_cases_of_onnx(op_type: str) -> None:
    cases = [case for case in cases_of_onnx() if [node.op_type for node in case.model.graph.node] == [op_type]]
    assert cases
    for case in cases:
        for inputs, outputs in case.data_sets:
            for got, want in zip(backend.prepare(case.model).run(list(inputs)), outputs, strict=True):
                np.testing.assert_allclose(got, want, rtol=case.rtol, atol=1e-5)


def test_softmax_in_bfloat16_is_compiled_but_not_compared() -> None:
    """ONNX's own numbers are less exact there than ours."""
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=TensorProto.BFLOAT16),
        helper.make_node("Softmax", ["narrow"], ["y"], name="soft"),
    ]
    ends = [("x", TensorProto.FLOAT), ("y", TensorProto.BFLOAT16)]
    x, y = (helper.make_tensor_value_info(name, kind, [2, 8]) for name, kind in ends)
    model = helper.make_model(helper.make_graph(nodes, "soft", [x], [y]), ir_version=10)
    with pytest.raises(UnsupportedError, match=r"Softmax \(node 'soft'\) in bfloat16.*mlirt.compile runs"):
        backend.prepare(model)
    found = mlirt.compile(model, target="cpu").run({"x": numbers(2, 8)})["y"].astype(np.float64)
    np.testing.assert_allclose(found.sum(1), 1.0, rtol=2e-2)


def test_blocked_quantisation_gives_onnx_s_numbers() -> None:
    """ONNX's case wants a `TensorProto` for an array, so that its numbers are compared here."""
    from onnx import numpy_helper
    from onnx.backend.test.case.node import collect_testcases

    (case,) = [
        one for one in collect_testcases("QuantizeLinear") if one.name == "test_quantizelinear_blocked_symmetric"
    ]
    data: Any = case.data_sets
    ((inputs, (want,)),) = data
    assert case.model is not None
    (found,) = backend.prepare(case.model).run(list(inputs))
    np.testing.assert_array_equal(found, numpy_helper.to_array(want))


@pytest.mark.parametrize(
    "case",
    [
        "test_identity_opt",
        "test_if_opt",
        "test_if_seq",
        "test_loop13_seq",
        "test_loop16_seq_none",
        "test_optional_has_element_empty_optional_input",
        "test_sequence_insert_at_front",
        "test_sequence_map_add_1_sequence_1_tensor",
        "test_sequence_map_extract_shapes_expanded",
        "test_split_to_sequence_nokeepdims",
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sequences_and_optionals_in_cases_of_onnx(case: str) -> None:
    (found,) = [known for known in cases_of_onnx() if known.name == case]
    prepared = backend.prepare(found.model)
    for inputs, outputs in found.data_sets:
        for got, want in zip(prepared.run(list(inputs)), outputs, strict=True):
            assert isinstance(got, list) == isinstance(want, list)
            for item, wanted in zip(_items(got), _items(want), strict=True):
                np.testing.assert_allclose(item, wanted, rtol=1e-6)


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownArgumentType]


def test_random_numbers_are_compiled_but_not_compared() -> None:
    model, feeds = one_node("RandomNormalLike", [numbers(64, 64)])
    with pytest.raises(UnsupportedError, match=r"RandomNormalLike .*differ between backends; mlirt.compile runs"):
        backend.prepare(model)
    (drawn,) = mlirt.compile(model, "reference").run(feeds).values()
    assert abs(drawn.std() - 1) < 0.1
