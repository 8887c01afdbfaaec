"""Loops that read a state whose shape each iteration changes: a decoder takes the likeliest token until it is the
last.
"""

from __future__ import annotations

import onnx
import pytest
from onnx_control_flow import DECODER, check_on_cpu, decoder_feeds, model
from onnx_models import assert_agrees, imported_text, numbers

from mlirt.errors import UnsupportedError

DOUBLING = """<ir_version: 8, opset_import: ["": 17]>
doubling (float[n,2] start) => (float[m,2] y) {
  most = Constant<value = int64 {3}>()
  y = Loop(most, "", start)<
    body = b (int64 i, bool c, float[l,2] s) => (bool d, float[u,2] t) {
      d = Identity(c) zero = Constant<value = int64[1] {0}>() top = ReduceMax<axes = [0], keepdims = 1>(s)
      part = Sub(s, top) t = Concat<axis = 0>(s, part)
    }>
}"""
GIVEN = DECODER.replace("most = Constant<value = int64 {5}>()", "").replace("int64 stop)", "int64 stop, int64 most)")
UNLIMITED = DECODER.replace("most = Constant<value = int64 {5}>()", "").replace("Loop(most,", 'Loop("",')


def test_a_decoder_with_a_growing_sequence() -> None:
    """One engine for all lengths and ends."""
    ends = (99, *range(7))
    check_on_cpu(model(DECODER), *(decoder_feeds(length, end) for end in ends for length in (2, 1, 4)))


@pytest.mark.parametrize("length", [1, 3])
def test_a_state_that_is_joined_to_itself(length: int) -> None:
    assert_agrees(onnx.parser.parse_model(DOUBLING), {"start": numbers(length, 2)})


def test_how_many_iterations_there_may_be_must_be_known() -> None:
    with pytest.raises(UnsupportedError, match=r"trip count, as state 0 is .* must be known .* graph input 'most'"):
        imported_text(onnx.parser.parse_model(GIVEN))
    with pytest.raises(UnsupportedError, match=r"state 0 is \['n'\] before an iteration .* it has no trip count"):
        imported_text(onnx.parser.parse_model(UNLIMITED))
