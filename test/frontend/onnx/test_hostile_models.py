"""Models that readers disagree about, or with names that are hard to print, get an answer of one line."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of, one_node

import mlirt
from mlirt.codegen.python_names import kernel_name
from mlirt.dialects.diagnostics import OperationError
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.symbolic_text import parse
from mlirt.tools.input_files import new_context

X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize("keepdims", [7, -1, -(2**63)])
@pytest.mark.parametrize("op", ["ReduceMax", "ArgMax", "ReduceL1"])
def test_a_flag_is_0_or_1(op: str, keepdims: int) -> None:
    model, _ = one_node(op, [X], keepdims=keepdims)
    with pytest.raises(mlirt.InvalidModelError, match=r"the attribute keepdims is .*, expected 0 or 1"):
        mlirt.compile(model, target="reference")


def test_a_flag_of_a_function_is_0_or_1() -> None:
    rows = np.ones((1, 4, 2), np.float32)
    model, _ = one_node("RotaryEmbedding", [np.ones((1, 2, 4, 4), np.float32), rows, rows], 23, interleaved=-(2**63))
    with pytest.raises(mlirt.InvalidModelError, match=r"the attribute interleaved is .*, expected 0 or 1"):
        mlirt.compile(model, target="reference")


@pytest.mark.parametrize("names", [[""], ["x", ""]])
def test_an_input_has_a_name(names: list[str]) -> None:
    node = helper.make_node("Relu", [names[0] or "x"], ["y"])
    model = model_of([node], dict.fromkeys(names, ("float32", [3])), ["y"])
    with pytest.raises(mlirt.InvalidModelError, match=r"graph input [01] has no name"):
        mlirt.compile(model, target="reference")


def test_initializers_of_one_name_differ() -> None:
    model = model_of([helper.make_node("Add", ["x", "w"], ["y"])], {"x": ("float32", [3])}, ["y"], {"w": X[0]})
    model.graph.initializer.append(model.graph.initializer[0])
    mlirt.compile(model, target="reference")
    model.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(X[0] * 2, "w"))
    with pytest.raises(mlirt.InvalidModelError, match="there are two initializers 'w', which differ"):
        mlirt.compile(model, target="reference")


def test_a_long_name_of_a_dimension() -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", ["a" * 5000, 3])}, ["y"])
    assert mlirt.compile(model, target="reference").run({"x": X})["y"].shape == (2, 3)


def test_control_characters_are_escaped() -> None:
    assert str(mlirt.InvalidModelError("layer a\nb\x1b[31m: été")) == "layer a\\nb\\x1b[31m: été"


@pytest.mark.parametrize("text", ["n//0", "n%0", "1//0", "(" * 5000 + "n"])
def test_what_is_no_formula(text: str) -> None:
    with pytest.raises(ValueError, match="is not a dimension"):
        parse(text)


def test_a_formula_does_not_grow_without_end() -> None:
    with pytest.raises(mlirt.UnsupportedError, match="more than a thousand products"):
        parse("*".join(f"(a{k}+b{k})" for k in range(30)))


@pytest.mark.parametrize("name", ["z(a): pass\nimport os", "for", "a b", "1a", ""])
def test_a_kernel_is_called_by_an_identifier(name: str) -> None:
    new_context()
    with pytest.raises(OperationError, match="a kernel cannot be called"):
        kernel_name(FuncOp(name, []))
