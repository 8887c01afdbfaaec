"""The static and the dynamic form of each op agree: what `bench/cpu_fuzz.py --static` does with thousands."""

from __future__ import annotations

from functools import cache, partial

import cpu_fuzz
import numpy as np
import onnx
import pytest
from cpu_fuzz import judge
from fuzz_cases import Case, node_cases, random_case
from fuzz_operators import OPERATORS
from onnx import helper

_AGREES = ("right", "refused", "unsupported")
"""Nothing is wrong, or the dynamic form, or both forms, are refused when they are built."""


_RANDOM = ("Bernoulli", "RandomUniformLike")
"""Their numbers depend on how many runs an engine has had."""


@cache
def _case_of_each_op() -> list[Case]:
    """The first of ONNX's node tests of each op, with lengths that fit and with lengths that may not."""
    found: dict[str, Case] = {}
    for plain, changed in zip(node_cases(), node_cases(contradicts=True), strict=True):
        op = max(plain.model.graph.node, key=lambda node: not node.name.startswith(("before_", "after_"))).op_type
        found.setdefault(op, Case(plain.name, plain.model, (*plain.runs, *changed.runs)))
    return [case for op, case in found.items() if op not in _RANDOM]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("part", range(8))
def test_node_tests_of_onnx(part: int) -> None:
    cases = _case_of_each_op()[part::8]
    assert len(cases) > 10
    wrong = {
        case.name: why for case in cases if (why := judge(case, "reference", by_static_form=True))[0] not in _AGREES
    }
    assert not wrong


@pytest.mark.parametrize("number", range(1, len(OPERATORS), 4))
@pytest.mark.parametrize("contradicts", [False, True])
def test_random_graphs(number: int, contradicts: bool) -> None:
    case = random_case(number, 8, contradicts=contradicts)
    outcome, why = judge(case, "reference", by_static_form=True)
    assert outcome in _AGREES, why


def _other_results(answer: object, case: Case, target: str) -> list[object]:
    return [answer]


def test_a_form_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"], "y")],
        "negation",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ("n",))],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    case = Case("negation", model, ({"x": np.ones(3, np.float32)},))
    assert judge(case, "reference", by_static_form=True) == ("right", "")
    for other in ({"y": np.ones(3, np.float32)}, "these lengths do not fit"):
        monkeypatch.setattr(cpu_fuzz, "static_results", partial(_other_results, other))
        assert judge(case, "reference", by_static_form=True)[0] == "wrong"
