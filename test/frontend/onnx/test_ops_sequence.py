"""Sequences, whose items are tensors of the network: what the ops make of them, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import imported_text, run_onnxruntime, run_reference

from mlirt.errors import InvalidInputError, InvalidModelError, UnsupportedError
from mlirt.frontend.importing.refusals import ValueNeededError

ITEMS = [np.arange(6, dtype=np.float32).reshape(2, 3), -np.ones((2, 3), np.float32), np.full((2, 3), 7, np.float32)]
INPUTS = {f"s{k}": item for k, item in enumerate(ITEMS)}


def model(body: str, inputs: str = "float[2,3] s0, float[2,3] s1, float[2,3] s2", output: str = "float y") -> Any:
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => ({output}) {{ {body} }}'  # the format of ONNX's texts
    )


def agree(body: str, **more: np.ndarray) -> None:
    inputs = "float[2,3] s0, float[2,3] s1, float[2,3] s2" + "".join(f", int64 {name}" for name in more)
    made = model(f"s = SequenceConstruct(s0, s1, s2) {body}", inputs)
    feeds = {**INPUTS, **more}
    for got, want in zip(run_reference(made, feeds), run_onnxruntime(made, feeds), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("place", [0, 2, -1, -3])
def test_an_item_at_a_known_place(place: int) -> None:
    agree(f"p = Constant<value_int = {place}>() y = SequenceAt(s, p)")


@pytest.mark.parametrize("place", [0, 2, -1, -3])
def test_an_item_at_a_place_that_only_the_run_knows(place: int) -> None:
    agree("y = SequenceAt(s, p)", p=np.array(place))


@pytest.mark.parametrize("place", [3, -4])
def test_a_run_that_asks_for_no_item_is_an_error(place: int) -> None:
    made = model("s = SequenceConstruct(s0, s1) y = SequenceAt(s, p)", "float[2,3] s0, float[2,3] s1, int64 p")
    with pytest.raises(InvalidInputError, match="the sequence of 2 items has no such item"):
        run_reference(made, {"s0": ITEMS[0], "s1": ITEMS[1], "p": np.array(place)})


def test_items_come_and_go() -> None:
    agree(
        """one = Constant<value_int = 1>() zero = Constant<value_int = 0>()
        longer = SequenceInsert(s, s1) inserted = SequenceInsert(longer, s2, one) shorter = SequenceErase(inserted)
        rest = SequenceErase(shorter, zero) y = ConcatFromSequence<axis = 1>(rest)"""
    )


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_a_new_axis(axis: int) -> None:
    agree(f"y = ConcatFromSequence<axis = {axis}, new_axis = 1>(s)")


def test_the_length() -> None:
    agree("n = SequenceLength(s) f = Cast<to = 1>(n) y = Mul(s0, f)")


def test_an_empty_sequence_grows() -> None:
    agree("e = SequenceEmpty() t = SequenceInsert(e, s1) y = ConcatFromSequence<axis = 0>(t)")


@pytest.mark.parametrize(
    ("operand", "attributes", "body"),
    [
        ("", "", ""),
        ("", "keepdims = 0, axis = 1", ""),
        ("p", "axis = 1", "p = Constant<value_int = 2>()"),
        ("p", "axis = 1", "p = Constant<value_ints = [1, 2]>()"),
    ],
)
def test_a_tensor_is_split(operand: str, attributes: str, body: str) -> None:
    call = f"SplitToSequence<{attributes}>" if attributes else "SplitToSequence"
    agree(
        f"{body} t = {call}({', '.join(filter(None, ['s0', operand]))}) "
        "i = Constant<value_int = 1>() y = SequenceAt(t, i)"
    )


@pytest.mark.parametrize("sizes", ["rest = Sub(n, one) sizes = Concat<axis = 0>(one, rest)", "sizes = Div(n, two)"])
def test_a_tensor_of_any_length_is_split_into_a_known_number_of_parts(sizes: str) -> None:
    made = model(
        "one = Constant<value_ints = [1]>() two = Constant<value_int = 2>() x = Concat<axis = 0>(a, a) "
        "both = Shape<start = 0, end = 1>(x) n = " + ("Identity(both)" if "rest" in sizes else "Squeeze(both)") + " "
        f"{sizes} t = SplitToSequence(x, sizes) i = Constant<value_int = 1>() y = SequenceAt(t, i)",
        "float[n,3] a",
    )
    for length in (1, 4):
        feeds = {"a": np.arange(3 * length, dtype=np.float32).reshape(length, 3)}
        np.testing.assert_array_equal(run_reference(made, feeds)[0], run_onnxruntime(made, feeds)[0])


def test_lengths_of_parts_that_are_not_the_whole_are_an_error_of_the_run() -> None:
    made = model(
        "p = Constant<value_ints = [1, 2]>() t = SplitToSequence(a, p) i = Constant<value_int = 1>() "
        "y = SequenceAt(t, i)",
        "float[n,3] a",
    )
    feeds = {"a": np.arange(9, dtype=np.float32).reshape(3, 3)}
    np.testing.assert_array_equal(run_reference(made, feeds)[0], run_onnxruntime(made, feeds)[0])
    with pytest.raises(InvalidInputError, match=r"its parts .* add up to .*, but axis"):
        run_reference(made, {"a": np.zeros((4, 3), np.float32)})


def test_a_number_of_parts_that_only_a_run_tells_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="the length n makes a number of parts of 1 that only a run tells"):
        imported_text(model("t = SplitToSequence(a) y = SequenceAt(t, a)", "float[n,3] a"))


def test_a_map_is_the_body_for_each_item() -> None:
    agree("t = SequenceMap(s, s2)<body = b (float[2,3] a, float[2,3] c) => (float[2,3] d) { d = Sub(a, c) }> "
          "y = ConcatFromSequence<axis = 0>(t)")  # fmt: skip


SEQUENCES = model("i = Constant<value_int = 0>() y = SequenceErase(x, i)", "seq(float) x", "seq(float) y")


def test_a_sequence_is_an_input_for_each_item() -> None:
    shapes = {"x": [[2], ["n", 3], [4]]}
    text = imported_text(SEQUENCES, input_shapes=shapes)
    assert all(f'trt.name = "{name}"' in text for name in ("x[0]", "x[1]", "x[2]", "y[0]", "y[1]"))
    assert '"y[2]"' not in text
    text = imported_text(SEQUENCES, input_shapes={"x": [[1], [2]]}, constants={"x[1]": np.array([1, 2], np.float32)})
    assert '"x[1]"' not in text


def test_a_sequence_without_shapes_is_refused() -> None:
    with pytest.raises(ValueNeededError, match="input_shapes must say the shape of each item"):
        imported_text(SEQUENCES)
    with pytest.raises(InvalidInputError, match=r"the model has no input 'x\[2\]'"):
        imported_text(SEQUENCES, input_shapes={"x": [[1], [2]]}, constants={"x[2]": ITEMS[0]})


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (
            "s = SequenceConstruct(s0) y = Relu(s)",
            InvalidModelError,
            "expected a tensor as input 0, but it is a sequence",
        ),
        ("y = SequenceLength(s0)", InvalidModelError, "expected a sequence as input 0"),
        ("s = SequenceEmpty() y = ConcatFromSequence<axis = 0>(s)", InvalidModelError, "its sequence is empty"),
        ("s = SequenceEmpty() y = SequenceErase(s)", InvalidModelError, "the place -1 does not exist; there are 0"),
        (
            "i = Cast<to = 6>(s0) s = SequenceConstruct(i, s1) y = SequenceErase(s)",
            InvalidModelError,
            "one element type",
        ),
        ("y = Optional()", UnsupportedError, "'y' is an optional without a value"),
        ("o = Optional() y = Relu(o)", InvalidModelError, "it is an optional without a value"),
    ],
)
def test_what_makes_no_sense(body: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        imported_text(model(body))
