"""Loops that read a state whose shape each trip changes: a decoder takes the likeliest token until it is the last."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_control_flow import check_on_cpu
from onnx_models import Array, assert_agrees, imported_text, numbers

from mlirt.errors import UnsupportedError

WORDS, WIDTH, MOST = 7, 4, 5
DECODER = """<ir_version: 8, opset_import: ["": 17]>
decoder (float[7,4] table, float[4,7] head, int64[n] start, int64 stop) => (int64[m] tokens, float[k,4] rows) {
  LIMIT go = Constant<value = bool {1}>()
  tokens, rows = Loop(most, go, start)<
    body = b (int64 i, bool c, int64[l] t) => (bool d, int64[u] s, float[4] row) {
      x = Gather(table, t) turned = Transpose<perm = [1, 0]>(x) scores = MatMul(x, turned)
      weights = Softmax<axis = -1>(scores) mixed = MatMul(weights, x)
      zero = Constant<value = int64[1] {0}>() one = Constant<value = int64[1] {1}>()
      shape = Shape(t) last = Sub(shape, one) final = Gather<axis = 0>(mixed, last) row = Squeeze(final, zero)
      logits = MatMul(final, head) new = ArgMax<axis = -1, keepdims = 0>(logits) s = Concat<axis = 0>(t, new)
      same = Equal(new, stop) flat = Squeeze(same, zero) d = Not(flat)
    }>
}"""
DOUBLING = """<ir_version: 8, opset_import: ["": 17]>
doubling (float[n,2] start) => (float[m,2] y) {
  most = Constant<value = int64 {3}>()
  y = Loop(most, "", start)<
    body = b (int64 i, bool c, float[l,2] s) => (bool d, float[u,2] t) {
      d = Identity(c) zero = Constant<value = int64[1] {0}>() top = ReduceMax<axes = [0], keepdims = 1>(s)
      part = Sub(s, top) t = Concat<axis = 0>(s, part)
    }>
}"""
CONSTANT = "most = Constant<value = int64 {5}>()"


def decoder(limit: str = CONSTANT) -> onnx.ModelProto:
    text = DECODER.replace("LIMIT", limit)
    if not limit:
        text = text.replace("int64 stop)", "int64 stop, int64 most)")
    return onnx.parser.parse_model(text)


def feeds(length: int, stop: int) -> dict[str, Array]:
    return {
        "table": numbers(WORDS, WIDTH),
        "head": numbers(WIDTH, WORDS, seed=1),
        "start": np.arange(length, dtype=np.int64),
        "stop": np.array(stop),
    }


def test_a_decoder_with_a_growing_sequence() -> None:
    """One engine for all lengths and ends."""
    check_on_cpu(decoder(), *(feeds(length, stop) for stop in (99, *range(WORDS)) for length in (2, 1, 4)))


@pytest.mark.parametrize("length", [1, 3])
def test_a_state_that_is_joined_to_itself(length: int) -> None:
    assert_agrees(onnx.parser.parse_model(DOUBLING), {"start": numbers(length, 2)})


def test_how_many_trips_there_may_be_must_be_known() -> None:
    with pytest.raises(
        UnsupportedError, match=r"number of trips, as state 0 is .* must be known .* graph input 'most'"
    ):
        imported_text(decoder(""))
    with pytest.raises(UnsupportedError, match=r"state 0 is \['n'\] before a trip .* it has no number of trips"):
        imported_text(onnx.parser.parse_model(DECODER.replace("LIMIT", "").replace("Loop(most,", 'Loop("",')))
