"""The reference interpreter: names, symbols, errors that name the layer, and memory that is given back."""

from __future__ import annotations

from typing import Any, TypeAlias
from weakref import ReferenceType, ref

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.parser import Parser

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import input_names, interpret
from mlirt.dialects.registry import register_dialects
from mlirt.errors import InvalidInputError, InvalidModelError, MlirtError, UnsupportedError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

TWO_INPUTS = """
func.func @main(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>> {trt.name = "image"},
                %y: tensor<?x3xf32, #trt.dims<["n", "3"]>> {trt.name = "mask"})
    -> (tensor<?x3xf32, #trt.dims<["n", "3"]>> {trt.name = "total"}, tensor<?xf32>) {
  %s = trt.elementwise sum %x, %y : (tensor<?x3xf32, #trt.dims<["n", "3"]>>,
       tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["n", "3"]>> loc("add_1")
  %f = trt.shuffle %s {reshape_dims = #trt.dims<["-1"]>} : (tensor<?x3xf32, #trt.dims<["n", "3"]>>)
       -> tensor<?xf32, #trt.dims<["3*n"]>>
  func.return %s, %f : tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<?xf32, #trt.dims<["3*n"]>>
}
"""


def parsed(text: str) -> tuple[ModuleOp, RtContext]:
    ctx = RtContext()
    register_dialects(ctx)
    return Parser(ctx, text).parse_module(), ctx


def run(text: str, inputs: dict[str, Array], function: str = "main") -> dict[str, Array]:
    module, ctx = parsed(text)
    return interpret(module, ctx, inputs, function)


def ones(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def test_inputs_and_outputs_have_public_names() -> None:
    results = run(TWO_INPUTS, {"mask": ones(2, 3), "image": ones(2, 3)})
    assert list(results) == ["total", "output1"]
    assert_array_equal(results["total"], 2 * ones(2, 3))
    assert results["output1"].shape == (6,)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"image": ones(2, 3)}, r"inputs \['image'\] do not fit the network, expected \['image', 'mask'\]"),
        ({"image": ones(2, 3), "mask": ones(2, 3), "z": ones(1)}, "do not fit the network"),
        ({"image": ones(2, 3), "mask": ones(2, 4)}, r"input 'mask': expected length 3 on axis 1 of \[n, 3\], got"),
        ({"image": ones(2, 3), "mask": ones(4, 3)}, r"input 'mask': expected length n = 2 on axis 0"),
        ({"image": ones(2, 3), "mask": ones(3)}, r"input 'mask': expected rank 2 \[n, 3\], got shape \[3\]"),
        (
            {"image": ones(2, 3), "mask": ones(2, 3).astype(np.float64)},
            "input 'mask': expected element type float32, got float64",
        ),
    ],
)
def test_inputs_that_do_not_fit(inputs: dict[str, Array], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        run(TWO_INPUTS, inputs)


def test_unknown_function() -> None:
    with pytest.raises(InvalidInputError, match="no function 'other' in the module, its functions are: main"):
        run(TWO_INPUTS, {}, "other")


def test_errors_name_the_layer() -> None:
    text = """
    func.func @main(%x: tensor<3xf32>, %i: tensor<1xi64>) -> tensor<?xf32> {
      %y = trt.slice %x start(%i : tensor<1xi64>) {size = #trt.dims<["2"]>, stride = array<i64: 1>}
           : (tensor<3xf32>) -> tensor<2xf32> loc("crop")
      func.return %y : tensor<2xf32>
    }"""
    assert_array_equal(run(text, {"x": ones(3), "i": np.array([1])})["output0"], [1, 1])
    with pytest.raises(InvalidInputError, match=r"'trt.slice' op \(layer crop\): out of bounds slice, input dim"):
        run(text, {"x": ones(3), "i": np.array([2])})


def test_reshape_without_solution_names_the_layer() -> None:
    text = """
    func.func @main(%x: tensor<6xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
      %y = trt.shuffle %x, %s : (tensor<6xf32>, tensor<2xi64>) -> tensor<?x?xf32> loc("reshape")
      func.return %y : tensor<?x?xf32>
    }"""
    assert run(text, {"x": ones(6), "s": np.array([2, -1])})["output0"].shape == (2, 3)
    with pytest.raises(InvalidInputError, match=r"\(layer reshape\): cannot be computed for these inputs: C7"):
        run(text, {"x": ones(6), "s": np.array([4, -1])})


def test_lengths_that_differ_at_run_time() -> None:
    text = """
    func.func @main(%x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>) -> tensor<?xf32> {
      %z = trt.elementwise sum %x, %y : (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xf32, #trt.dims<["m"]>>)
           -> tensor<?xf32, #trt.dims<["n"]>> loc("add")
      func.return %z : tensor<?xf32, #trt.dims<["n"]>>
    }"""
    assert run(text, {"x": ones(2), "y": ones(2)})["output0"].shape == (2,)
    with pytest.raises(InvalidInputError, match=r"\(layer add\): its inputs have the lengths 3 and 2"):
        run(text, {"x": ones(2), "y": ones(3)})
    with pytest.raises(InvalidInputError, match=r"\(layer add\): its inputs have the lengths 3 and 1"):
        run(text, {"x": ones(1), "y": ones(3)})


def test_symbols_are_known_to_every_layer() -> None:
    """The slice's own operand does not tell what `w` is."""
    text = """
    func.func @main(%x: tensor<?xf32, #trt.dims<["2*w + 1"]>>, %y: tensor<8xf32>) -> tensor<?xf32> {
      %z = trt.slice %y {start = #trt.dims<["0"]>, size = #trt.dims<["w"]>, stride = array<i64: 1>}
           : (tensor<8xf32>) -> tensor<?xf32, #trt.dims<["w"]>>
      func.return %z : tensor<?xf32, #trt.dims<["w"]>>
    }"""
    assert run(text, {"x": ones(7), "y": ones(8)})["output0"].shape == (3,)


def test_sizes_that_the_data_decide() -> None:
    text = """
    func.func @main(%x: tensor<2x3xf32>) -> tensor<?xi64> {
      %i = trt.non_zero %x : (tensor<2x3xf32>) -> tensor<2x?xi64, #trt.dims<["2", "found"]>>
      %z = trt.fill linspace {output_dims = #trt.dims<["found"]>} : tensor<?xi64, #trt.dims<["found"]>>
      func.return %z : tensor<?xi64, #trt.dims<["found"]>>
    }"""
    assert run(text, {"x": ones(2, 3)})["output0"].shape == (6,)


def test_weights_come_from_the_context() -> None:
    text = """
    func.func @main() -> tensor<4xf32> {
      %c = trt.constant {value = #trt.weights<"w", "0">} : tensor<4xf32> loc("conv1.weight")
      func.return %c : tensor<4xf32>
    }"""
    module, ctx = parsed(text)
    with pytest.raises(InvalidModelError, match=r"\(layer conv1.weight\): weights 'w' are not loaded"):
        interpret(module, ctx, {})
    ctx.weights.add("w", ones(4))
    assert_array_equal(interpret(module, ctx, {})["output0"], ones(4))


def test_expectations() -> None:
    text = """
    func.func @main(%x: tensor<2xf32>) {
      %c = trt.constant {value = dense<1.0> : tensor<2xf32>} : tensor<2xf32>
      check.expect_close %x, %c : tensor<2xf32>, tensor<2xf32>
      func.return
    }"""
    assert run(text, {"x": ones(2)}) == {}
    with pytest.raises(MlirtError, match=r"'check.expect_close' op failed: 2 of 2 elements are wrong"):
        run(text, {"x": 2 * ones(2)})


def test_ops_without_a_reference() -> None:
    text = """
    func.func @main(%x: tensor<2xf32>) {
      %y = tensor.empty() : tensor<2xf32>
      func.return
    }"""
    with pytest.raises(UnsupportedError, match=r"'tensor.empty' op is not known to the interpreter"):
        run(text, {"x": ones(2)})


def test_values_are_dropped_after_their_last_use() -> None:
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %a = trt.unary exp %x : (tensor<2xf32>) -> tensor<2xf32>
      %unused = trt.unary sin %a : (tensor<2xf32>) -> tensor<2xf32>
      %b = trt.unary neg %a : (tensor<2xf32>) -> tensor<2xf32>
      %c = trt.unary abs %b : (tensor<2xf32>) -> tensor<2xf32>
      func.return %c : tensor<2xf32>
    }"""
    module, ctx = parsed(text)
    alive: list[list[bool]] = []
    made: list[ReferenceType[Array]] = []

    def observe(op: Operation, results: Any) -> None:
        alive.append([seen() is not None for seen in made])
        made.extend(ref(result) for result in results)

    interpret(module, ctx, {"x": ones(2)}, observe=observe)
    # exp lives until neg has run, the unused sine is gone at once.
    assert alive == [[], [True], [True, False], [False, False, True]]


def test_a_name_that_two_arguments_have_is_that_of_neither() -> None:
    module, _ = parsed("func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>, %z: tensor<2xf32>) { func.return }")
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    function.body.block.args[1].name_hint = "x"
    assert input_names(function) == ["input0", "input1", "z"]
