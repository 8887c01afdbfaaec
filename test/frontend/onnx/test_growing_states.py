"""Loops whose states only grow: tensors by concatenation, sequences by another item; the run tells how often."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_models import Array, assert_agrees, imported_text, numbers

from mlirt.errors import UnsupportedError

GROWING = """<ir_version: 8, opset_import: ["": 17]>
growing (float[2,K,3] start, float[2,2,3] x, int64 n) => (float y, float total) {
    zero = Constant<value = float {0}>()
    y, total, rows = Loop(n, , start, zero)<
        body = b (int64 i, bool c, float[2,L,3] s, float t) => (bool d, float[2,M,3] u, float v, float row) {
            d = Identity(c) f = Cast<to = 1>(i) row = Mul(x, f) v = Add(t, f) u = Concat<axis = AXIS>(PARTS)
        }>
}"""
COLLECTING = """<ir_version: 8, opset_import: ["": 17]>
collecting (float[2,3] x, float top) => (float y, float z, int64 count) {
    more = Constant<value = bool {1}>() one = Constant<value = float {1}>() last = Constant<value = int64 {-1}>()
    all_start = START
    value, all = Loop("", more, one, all_start)<
        body = b (int64 i, bool c, float v, seq(float) s) => (bool d, float w, seq(float) t) {
            w = Add(v, v) part = Mul(x, v) t = SequenceInsert(s, part) d = Less(w, top)
        }>
    y = ConcatFromSequence<axis = 1, new_axis = NEW>(all)
    z = SequenceAt(all, last)
    count = SequenceLength(all)
}"""


def growing(parts: str, axis: int) -> onnx.ModelProto:
    return onnx.parser.parse_model(GROWING.replace("PARTS", parts).replace("AXIS", str(axis)))


@pytest.mark.parametrize("count", [3, 0, 1])
@pytest.mark.parametrize(("parts", "axis"), [("s, row", 1), ("row, s", 1), ("s, row", -2)])
def test_a_tensor_grows_at_either_end(parts: str, axis: int, count: int) -> None:
    feeds: dict[str, Array] = {"start": numbers(2, 4, 3), "x": numbers(2, 2, 3, seed=1), "n": np.array(count)}
    assert_agrees(growing(parts, axis), feeds)


def test_a_state_that_is_read_is_no_growing_one() -> None:
    with pytest.raises(
        UnsupportedError, match=r"trip count, as state 0 is .* before an iteration and .* must be known"
    ):
        imported_text(growing("s, s", 1))


@pytest.mark.parametrize("start", ["SequenceEmpty()", "SequenceConstruct(x, x)"])
@pytest.mark.parametrize("new", [0, 1])
def test_a_sequence_collects_what_each_iteration_makes(start: str, new: int) -> None:
    model = onnx.parser.parse_model(COLLECTING.replace("NEW", str(new)).replace("START", start))
    for top in (9.0, 2.0):
        assert_agrees(model, {"x": numbers(2, 3), "top": np.array(top, np.float32)})


def test_what_needs_the_length_of_such_a_sequence_is_refused() -> None:
    text = COLLECTING.replace("NEW", "0").replace("START", "SequenceEmpty()")
    with pytest.raises(UnsupportedError, match="how long its sequence is only the run tells"):
        imported_text(
            onnx.parser.parse_model(
                text.replace("z = SequenceAt(all, last)", "s = SequenceErase(all) z = SequenceAt(s, last)")
            )
        )
    with pytest.raises(UnsupportedError, match="how long the graph output 'all' is, a sequence, only the run tells"):
        imported_text(
            onnx.parser.parse_model(text.replace("float z", "seq(float) all").replace("z = SequenceAt(all, last)", ""))
        )
