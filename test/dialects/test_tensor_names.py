"""Names of tensors survive as name hints, through printing and parsing, exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.tensor_names import aliases, hint_of_name, name_of_hint, tensor_names
from mlirt.tools.input_files import new_context


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("conv", "conv"),
        ("conv_1", "conv-1"),
        ("/model.0/conv/Conv_output_0", "$model.0$conv$Conv_output-0"),
        ("497", ".497"),
        ("images:0", "images-x3a0"),
    ],
)
def test_hints_stay_legible(name: str, hint: str) -> None:
    assert hint_of_name(name) == hint


@given(name=st.one_of(st.text("ab_-.$/x0123456789", min_size=1), st.text(st.characters(codec="utf-8"), min_size=1)))
def test_a_hint_gives_the_name_back(name: str) -> None:
    hint = hint_of_name(name)
    assert SSAValue.extract_valid_name(hint) == hint, "the IR would keep another hint"
    assert name_of_hint(hint) == name


def test_each_tensor_has_a_name_of_its_own() -> None:
    text = """
        func.func @main(%x: tensor<4xf32> {trt.name = "in/put"}) -> (tensor<4xf32> {trt.name = "out/put"}) {
          %relu-1 = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("a")
          %0 = trt.unary exp %relu-1 : (tensor<4xf32>) -> tensor<4xf32> loc("b")
          %y = trt.unary neg %0 : (tensor<4xf32>) -> tensor<4xf32> loc("c")
          func.return %y : tensor<4xf32>
        }
        """
    module, _ = parse_source(new_context(), text, "network.mlir")
    assert list(tensor_names(module).values()) == ["in/put", "relu_1", "b#0", "y"]
    names = tensor_names(module)
    assert [(name, names[value]) for name, value in aliases(module).items()] == [("out/put", "y")]
