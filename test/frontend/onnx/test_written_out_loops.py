"""Loops and branches with sequences: written out where their trip count is known, refused where it is not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_models import imported_text, run_reference

from mlirt.errors import UnsupportedError
from mlirt.frontend.importing.refusals import ValueNeededError

GROWING = """<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x, int64 n) => (float y, float rows) {
    more = Constant<value = bool {1}>()
    empty = SequenceEmpty()
    all, rows = Loop(n, more, empty)<body = b (int64 i, bool c, seq(float) s) => (bool d, seq(float) t, float row) {
        f = Cast<to = 1>(i) row = Mul(x, f) t = SequenceInsert(s, row)
        two = Constant<value = int64 {2}>() d = Less(i, two)
    }>
    y = ConcatFromSequence<axis = 0>(all)
}"""

BRANCHING = """<ir_version: 8, opset_import: ["": 17]> g (float[2] x, bool c) => (float y) {
    s = If(c)<then_branch = a () => (seq(float) p) { p = SequenceConstruct(x, x) },
              else_branch = b () => (seq(float) q) { z = Neg(x) q = SequenceConstruct(OTHER) }>
    y = ConcatFromSequence<axis = 0>(s)
}"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(("limit", "iterations"), [(1, 1), (3, 3), (9, 3)])
def test_a_sequence_grows_until_the_limit_or_the_condition(limit: int, iterations: int) -> None:
    model = onnx.parser.parse_model(GROWING.replace("Loop(n", f"Loop(k{limit}"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(limit), f"k{limit}"))
    y, rows = run_reference(model, {"x": X, "n": np.array(0)})
    np.testing.assert_array_equal(y, np.concatenate([X * k for k in range(iterations)]))
    np.testing.assert_array_equal(rows, np.stack([X * k for k in range(iterations)]))


def test_a_number_of_iterations_that_only_the_run_knows_is_asked_for() -> None:
    part = "zero = Constant<value_ints = [0]>() end = Unsqueeze(i, zero) part = Slice(x, zero, end)"
    text = GROWING.replace("t = SequenceInsert(s, row)", f"{part} t = SequenceInsert(s, part)")
    with pytest.raises(ValueNeededError, match="the trip count, as the items of a sequence differ") as raised:
        imported_text(onnx.parser.parse_model(text))
    assert raised.value.inputs == ("n",)


def test_a_loop_without_iterations_collects_nothing_that_has_a_shape() -> None:
    model = onnx.parser.parse_model(GROWING.replace("Loop(n", "Loop(none"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(0), "none"))
    with pytest.raises(UnsupportedError, match="it has no iterations"):
        imported_text(model)


def test_branches_whose_sequences_are_alike() -> None:
    model = onnx.parser.parse_model(BRANCHING.replace("OTHER", "z, x"))
    x = np.array([1, 2], np.float32)
    for condition, want in ((True, [1, 2, 1, 2]), (False, [-1, -2, 1, 2])):
        np.testing.assert_array_equal(run_reference(model, {"x": x, "c": np.array(condition)})[0], want)


def test_branches_whose_sequences_differ_need_the_condition() -> None:
    with pytest.raises(ValueNeededError, match="the condition, as its branches give sequences that differ") as raised:
        imported_text(onnx.parser.parse_model(BRANCHING.replace("OTHER", "z")))
    assert raised.value.inputs == ("c",)
