"""Models by path, bytes and proto; files that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx_models import imported_text, numbers, one_node, write_model

from mlirt.errors import InvalidInputError, InvalidModelError, UnsupportedError
from mlirt.frontend.onnx.model_reader import Model, opsets, read_model

MODEL, _ = one_node("Relu", [numbers(3)])


def test_path_bytes_and_proto_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    write_model(MODEL, path)
    assert read_model(path) == Model(MODEL, folder=tmp_path)
    assert read_model(str(path)) == Model(MODEL, folder=tmp_path)
    assert read_model(MODEL.SerializeToString()) == Model(MODEL)
    assert read_model(MODEL) == Model(MODEL)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"hello world, this is no model", "it is not a readable protobuf"),
        (MODEL.SerializeToString()[:-9], "it is not a readable protobuf"),
        (onnx.ModelProto(ir_version=8).SerializeToString(), "it has no graph"),
    ],
)
def test_files_that_are_no_models(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(InvalidModelError, match=rf"m\.onnx: .*{message}") as found:
        read_model(path)
    assert "\n" not in str(found.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match=r"nowhere\.onnx: expected a readable ONNX model"):
        read_model(tmp_path / "nowhere.onnx")


def test_other_objects() -> None:
    other: Any = 3
    with pytest.raises(InvalidInputError, match=r"a model is a path, bytes or an onnx\.ModelProto, but it is int"):
        read_model(other)


def test_names_must_be_text() -> None:
    content = MODEL.SerializeToString().replace(b"in0", b"i\xff0")
    with pytest.raises(InvalidModelError, match=r"expected names in UTF-8, got b'i\\xff0'"):
        read_model(content)


def test_operator_sets() -> None:
    assert opsets(MODEL) == {"": 17}
    model = onnx.ModelProto()
    model.opset_import.add(domain="ai.onnx", version=11)
    model.opset_import.add(domain="com.microsoft", version=1)
    assert opsets(model) == {"": 11, "com.microsoft": 1}


def test_newer_operator_sets_are_refused() -> None:
    model, _ = one_node("Relu", [numbers(3)], opset=1000)
    with pytest.raises(
        UnsupportedError, match="the model needs opset 1000, the newest that the installed onnx package"
    ):
        imported_text(model)
