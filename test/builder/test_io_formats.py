"""Types and formats of a model's inputs and outputs, as trtexec spells them (tensorrt-features.md#5.7, 5.9, 30.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of, numbers

import mlirt
from mlirt.builder.io_formats import read_io_type
from mlirt.errors import InvalidInputError, InvalidModelError


def model(dtype: str = "float32") -> onnx.ModelProto:
    """A convolution of five channels to eight, with a bias, and a sum with another input."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], name="conv"),
        helper.make_node("Add", ["a", "z"], ["y"], name="add"),
    ]
    inputs = {"x": (dtype, ["n", 5, 6, 6]), "z": (dtype, ["n", 8, 6, 6])}
    weights = {"w": np.round(numbers(8, 5, 3, 3) * 4).astype(dtype)}
    return model_of(nodes, inputs, ["y"], weights)


def feeds(dtype: str = "float32") -> dict[str, Any]:
    return {
        "x": np.round(numbers(2, 5, 6, 6) * 4).astype(dtype),
        "z": np.round(numbers(2, 8, 6, 6) * 4).astype(dtype),
    }


EXPECTED = mlirt.compile(model(), "reference").run(feeds())["y"]


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (["fp16:chw"], ["fp16:hwc8"]),
        (["fp16:chw2", "fp32:chw32+hwc"], ["fp32:hwc"]),
        ([], ["fp16:chw16"]),
        (["fp16:hwc16"], []),
    ],
)
def test_other_types_and_formats(inputs: list[str], outputs: list[str]) -> None:
    """tensorrt-features.md#5.9: the network computes what it did."""
    engine = mlirt.compile(model(), "cpu", input_formats=inputs, output_formats=outputs)
    types = {"fp16": "float16", "fp32": "float32"}
    given = [types[text.split(":")[0]] for text in inputs * (2 if len(inputs) == 1 else 1)] or ["float32"] * 2
    assert [one.dtype for one in engine.inputs] == given
    assert [one.shape for one in engine.outputs] == [("n", 8, 6, 6)]
    found = engine.run({name: array.astype(dtype) for (name, array), dtype in zip(feeds().items(), given, strict=True)})
    np.testing.assert_array_equal(found["y"].astype(np.float32), EXPECTED)
    assert found["y"].dtype == types[outputs[0].split(":")[0] if outputs else "fp32"]


def test_the_reference_has_the_types() -> None:
    engine = mlirt.compile(model(), "reference", input_formats=["fp16:chw"])
    np.testing.assert_array_equal(engine.run(feeds("float16"))["y"], EXPECTED)


def test_bytes_at_the_borders() -> None:
    """tensorrt-features.md#5.10: bytes stand for numbers by the ranges of a calibration."""
    ranges = {"x": 127.0, "z": 254.0, "y": 1270.0, "a": 500.0}
    options: dict[str, Any] = {"dynamic_ranges": ranges, "layer_precisions": {"*": "fp32"}}
    kinds: dict[str, Any] = {"input_formats": ["int8:chw4"], "output_formats": ["int8:chw32"]}
    engine = mlirt.compile(model(), "cpu", "int8", **options, **kinds)
    array = {name: one.astype(np.int8) for name, one in feeds().items()}
    plain = mlirt.compile(model(), "cpu", "int8", **options)
    number = plain.run({"x": array["x"].astype(np.float32), "z": array["z"].astype(np.float32) * 2})["y"]
    np.testing.assert_array_equal(engine.run(array)["y"], np.clip(np.rint(number / 10), -128, 127).astype(np.int8))


def test_direct_io() -> None:
    """tensorrt-features.md#5.7: without formats, all inputs and outputs are linear and stay where they are."""
    engine = mlirt.compile(model(), "cpu", direct_io=True)
    assert [record["name"] for record in engine.layers] == ["conv + add"]
    np.testing.assert_array_equal(engine.run(feeds())["y"], EXPECTED)
    with pytest.raises(InvalidModelError, match=r"input 'x': DIRECT_IO is set, but the layers do not work on .* HWC"):
        mlirt.compile(model(), "cpu", input_formats=["fp32:hwc"], direct_io=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_formats": ["fp16:chw"] * 3}, "3 types and formats for 2 inputs: x, z"),
        ({"output_formats": ["fp8:chw"]}, "'fp8:chw': expected TYPE:FORMAT"),
        ({"output_formats": ["fp16"]}, "'fp16': expected TYPE:FORMAT"),
        ({"output_formats": ["int32:chw"]}, "'y' has elements of type float32, which int32 cannot stand for"),
        ({"output_formats": ["fp16:hwc"]}, "y: the format HWC is for float32, not for float16"),
        ({"output_formats": ["fp16:dla_hwc4"]}, "y: the format DLA_HWC4 is for DLA, and there is none"),
        ({"input_formats": ["int8:chw"]}, "Could not find scales for tensor x"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], message: str) -> None:
    """tensorrt-features.md#31.7 among them."""
    with pytest.raises((InvalidInputError, InvalidModelError), match=message):
        mlirt.compile(model(), "cpu", **options)


def test_names_are_those_of_trtexec() -> None:
    assert read_io_type("fp16:chw").formats == ("LINEAR",)
    assert read_io_type("int8:chw4+chw32+dla_hwc4").formats == ("CHW4", "CHW32", "DLA_HWC4")
