"""The arguments of `mlirt.compile`, and its reference target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of, numbers, write_model

import mlirt
from mlirt.errors import CompileError, InvalidInputError, InvalidModelError


def network() -> onnx.ModelProto:
    return model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", ["n", 3])}, ["y"])


@pytest.mark.parametrize("form", ["proto", "bytes", "path", "text"])
def test_every_form_of_a_model(tmp_path: Path, form: str) -> None:
    path = tmp_path / "small.onnx"
    write_model(network(), path)
    source: Any = {"proto": network(), "bytes": path.read_bytes(), "path": path, "text": str(path)}[form]
    engine = mlirt.compile(source, target="reference")
    x = numbers(2, 3)
    np.testing.assert_array_equal(engine.run({"x": x})["y"], np.maximum(x, 0))
    assert engine.name == {"proto": "test", "bytes": "network"}.get(form, "small")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "tpu"}, "target 'tpu' is not known; expected one of auto, cpu, cuda, reference"),
        ({"precision": "fp8"}, "precision 'fp8' is not known; expected one of fp32, tf32, fp16, int8"),
        ({"input_shapes": {"z": [1]}}, "the model has no input 'z'"),
        ({"input_shapes": {"x": [1.5, 3]}}, r"input 'x': 1.5 in \[1.5, 3\] is no length"),
        (
            {"constants": {"x": np.ones((3, 3, 3), np.float32)}},
            r"input 'x' has the shape \[n, 3\], but its constant is",
        ),
        ({"profiles": "x"}, "profiles are .* shapes by input name, got str"),
        ({"profiles": {"z": [[1], [1], [1]]}}, "there is a profile for 'z', but the inputs of the network are"),
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"target": "reference", **arguments}
    with pytest.raises(InvalidInputError, match=message):
        mlirt.compile(network(), **given)


def test_a_layer_that_is_not_there_is_warned_of() -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"], name="relu")], {"x": ("float32", ["n", 3])}, ["y"])
    with pytest.warns(UserWarning, match=r"layer_precisions: the network has no layer 'relo'; did you mean 'relu'\?"):
        mlirt.compile(model, "reference", layer_precisions={"relo": "fp32"})


def test_all_layers_that_are_not_named() -> None:
    """tensorrt-features.md#30.3: the star asks for what a CPU has not; that is a warning, or an error where it must be
    obeyed.
    """
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="relu"), helper.make_node("Exp", ["a"], ["y"], name="exp")]
    model = model_of(nodes, {"x": ("float32", [3])}, ["y"])
    asked = {"relu": "fp32", "*": "fp16"}
    with pytest.warns(UserWarning, match="exp"):
        mlirt.compile(model, "cpu", "fp16", layer_precisions=asked)
    with pytest.raises(CompileError, match=r"exp\): computes in f32, but fp16 was asked for"):
        mlirt.compile(model, "cpu", "fp16", layer_precisions=asked, obey_layer_precisions=True)
    mlirt.compile(model, "cpu", "fp16", layer_precisions={"*": "fp32"}, obey_layer_precisions=True)


def test_a_profile_without_a_choice_fixes_the_dimension() -> None:
    engine = mlirt.compile(network(), "reference", profiles={"x": [(2, 3), (2, 3), (2, 3)]})
    assert engine.inputs[0].shape == (2, 3)
    engine = mlirt.compile(network(), "reference", profiles={"x": [(1, 3), (2, 3), (8, 3)]})
    assert engine.inputs[0].shape == ("n", 3)


def test_constants_are_built_in() -> None:
    model = model_of(
        [helper.make_node("Add", ["x", "b"], ["y"])], {"x": ("float32", [2]), "b": ("float32", [2])}, ["y"]
    )
    engine = mlirt.compile(model, "reference", constants={"b": np.ones(2, np.float32)})
    assert [tensor.name for tensor in engine.inputs] == ["x"]
    np.testing.assert_array_equal(engine.run({"x": np.zeros(2, np.float32)})["y"], np.ones(2, np.float32))


def test_a_damaged_model() -> None:
    with pytest.raises(InvalidModelError, match="not a readable protobuf"):
        mlirt.compile(b"nonsense!", "reference")
