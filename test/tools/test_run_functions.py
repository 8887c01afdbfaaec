"""How a test in IR is cut in two for a compiled target: the network, and what is expected of it."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from mlirt.dialects.check.expect_close import ExpectationError
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.xdsl_compat import module_text
from mlirt.passes.pipeline import check_ir
from mlirt.tools.input_files import new_context
from mlirt.tools.run_functions import expectations_of, input_arrays, network_of

TEXT = """
func.func @test() {
  %x = check.input {value = dense<[1.0, -2.0]> : tensor<2xf32>} : tensor<2xf32>
  %w = trt.constant {value = dense<3.0> : tensor<2xf32>} : tensor<2xf32>
  %s = trt.elementwise sum %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %y = trt.activation relu %x : (tensor<2xf32>) -> tensor<2xf32>
  %e = trt.constant {value = dense<[4.0, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %f = trt.constant {value = dense<[1.0, 0.0]> : tensor<2xf32>} : tensor<2xf32>
  check.expect_close %s, %e : tensor<2xf32>, tensor<2xf32>
  check.expect_close %y, %f : tensor<2xf32>, tensor<2xf32>
  check.expect_close %s, %e {rtol = 0.0 : f64} : tensor<2xf32>, tensor<2xf32>
  func.return
}
"""


@pytest.fixture
def function() -> FuncOp:
    module, _ = parse_source(new_context(), TEXT, "test.mlir")
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    return function


def _names(module: ModuleOp) -> list[str]:
    check_ir(module)
    return [op.name for op in module.walk() if op.name.startswith(("trt.", "check."))]


def test_network_takes_inputs_and_returns_what_is_looked_at(function: FuncOp) -> None:
    network = network_of(function)
    assert _names(network) == ["trt.constant", "trt.elementwise", "trt.activation"]
    assert "func.func @main(%input0: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)" in module_text(network)
    outputs = interpret(network, new_context(), input_arrays(function))
    assert [array.tolist() for array in outputs.values()] == [[4.0, 1.0], [1.0, 0.0]]


def test_expectations_take_what_the_network_returns(function: FuncOp) -> None:
    expectations = expectations_of(function)
    assert _names(expectations) == ["trt.constant", "trt.constant", *["check.expect_close"] * 3]
    right = {"actual0": np.array([4, 1], np.float32), "actual1": np.array([1, 0], np.float32)}
    interpret(expectations, new_context(), right)
    with pytest.raises(ExpectationError, match=r"1 of 2 elements are wrong, the worst at \[1\]: 5.0, expected 0.0"):
        interpret(expectations, new_context(), right | {"actual1": np.array([1, 5], np.float32)})


def test_the_function_itself_stays(function: FuncOp) -> None:
    before = str(function)
    network_of(function)
    expectations_of(function)
    assert str(function) == before
