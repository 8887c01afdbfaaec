"""Random graphs against onnxruntime: what `bench/cpu_fuzz.py` does with thousands, here with a few of each kind."""

from __future__ import annotations

from dataclasses import replace

import cpu_fuzz
import numpy as np
import onnx
import pytest
from cpu_fuzz import difference, judge
from fuzz_cases import Case, node_cases, random_case
from fuzz_graphs import Array
from fuzz_operators import OPERATORS
from onnx import helper


@pytest.mark.parametrize("number", range(0, len(OPERATORS), 3))
def test_the_reference_agrees_on_random_graphs(number: int) -> None:
    assert judge(random_case(number, 8), "reference") == ("right", "")


@pytest.mark.parametrize("number", [0, 4, 30, 64, 101])
def test_kernels_agree_on_random_graphs(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_GUARD", "end")
    assert judge(random_case(number, 8), "cpu") == ("right", "")


def test_node_tests_are_judged_with_all_lengths_dynamic() -> None:
    wanted = ("node test_add_bcast", "node test_gemm_default_vector_bias", "node test_transpose_default")
    outcomes = {case.name: judge(case, "reference") for case in node_cases() if case.name in wanted}
    assert outcomes == dict.fromkeys(wanted, ("right", ""))


def _negation(dims: tuple[str, ...], run: dict[str, Array]) -> Case:
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"], "y")],
        "negation",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
    )
    return Case("negation", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), (run,))


@pytest.mark.parametrize("answer", [{"y": np.ones(3, np.float32)}, "these lengths do not fit"])
def test_a_wrong_result_is_found(answer: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def other_results(case: Case, level: str) -> list[object]:
        return [answer]

    case = _negation(("n",), {"x": np.ones(3, np.float32)})
    assert judge(case, "reference")[0] == "right"
    monkeypatch.setattr(cpu_fuzz, "peer_results", other_results)
    assert judge(case, "reference")[0] == "wrong"


def test_where_a_node_test_has_our_results_the_peer_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def other_results(case: Case, level: str) -> list[dict[str, Array]]:
        return [{"y": np.ones(3, np.float32)}]

    monkeypatch.setattr(cpu_fuzz, "peer_results", other_results)
    case = _negation(("n",), {"x": np.ones(3, np.float32)})
    ours, others = ({"y": np.full(3, number, np.float32)} for number in (-1, 2))
    outcome, why = judge(replace(case, expected=(ours,)), "reference")
    assert outcome == "peer"
    assert "node test" in why
    assert judge(replace(case, expected=(others,)), "reference")[0] == "wrong"


def test_node_tests_bring_the_results_that_they_expect() -> None:
    case = next(one for one in node_cases() if one.name == "node test_add_bcast")
    (feeds,), (expected,) = case.runs, case.expected
    x, y = (array for array in feeds.values() if array.ndim)
    np.testing.assert_allclose(expected["sum"], x + y)


def test_what_differs_is_said() -> None:
    ones = np.ones(3, np.float32)
    assert difference(ones, ones + np.float32(1e-6)) == ""
    assert "error" in difference(ones, ones + np.float32(1e-2))
    assert "float64" in difference(ones.astype(np.float64), ones)
    assert "(3,)" in difference(ones, np.ones(4, np.float32))
    assert "NaN" in difference(ones, np.array([1, np.nan, 1], np.float32))
    assert "1 of 3" in difference(np.array([1, 2, 3]), np.array([1, 2, 4]))
