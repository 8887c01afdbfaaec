"""Large weights stay in the bytes of the model; whatever has another form is left to the parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import model_of, numbers, write_model

from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidModelError
from mlirt.frontend.onnx.importer import import_model
from mlirt.frontend.onnx.model_reader import read_model
from mlirt.frontend.onnx.stored_bytes import MIN_BYTES, without_large_initializers
from mlirt.mapped_files import is_mapped

LARGE, SMALL = numbers(200, 300), numbers(4)


def adding(constants: dict[str, np.ndarray[Any, np.dtype[Any]]]) -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", name], [f"y_{name}"]) for name in constants]
    return model_of(nodes, {"x": ("float32", [1])}, [f"y_{name}" for name in constants], constants)


def test_large_raw_data_lies_in_the_bytes_that_were_given() -> None:
    model = adding({"small": SMALL, "large": LARGE, "other": LARGE + 1})
    content = model.SerializeToString()
    rest, stored = without_large_initializers(memoryview(content))
    assert set(stored) == {1, 2}
    assert len(rest) < len(content) - 2 * LARGE.nbytes + 100
    parsed = onnx.ModelProto.FromString(bytes(rest))
    for number, raw in stored.items():
        assert np.shares_memory(np.frombuffer(raw, np.uint8), np.frombuffer(content, np.uint8))
        assert parsed.graph.initializer[number].raw_data == b""
        parsed.graph.initializer[number].raw_data = bytes(raw)
    assert parsed == model


@pytest.mark.parametrize("constants", [{"small": SMALL}, {"large": np.ones(MIN_BYTES // 4 - 16, np.float32)}])
def test_small_models_are_parsed_as_they_are(constants: dict[str, np.ndarray[Any, np.dtype[Any]]]) -> None:
    content = memoryview(adding(constants).SerializeToString())
    assert without_large_initializers(content) == (content, {})


def test_other_forms_are_left_to_the_parser() -> None:
    floats = helper.make_tensor("floats", TensorProto.FLOAT, [LARGE.size], LARGE.reshape(-1))
    twice = numpy_helper.from_array(LARGE, "twice").SerializeToString()
    again = twice + TensorProto(raw_data=LARGE.tobytes()).SerializeToString()
    for tensor in (floats.SerializeToString(), again):
        graph = b"\x2a" + _varint(len(tensor)) + tensor
        content = memoryview(b"\x3a" + _varint(len(graph)) + graph)
        assert without_large_initializers(content) == (content, {})
    assert without_large_initializers(memoryview(bytes(content) * 2))[1] == {}


def _varint(number: int) -> bytes:
    return bytes([number & 127 | 128, number >> 7 & 127 | 128, number >> 14])


def test_damaged_bytes_are_left_to_the_parser() -> None:
    content, random = adding({"large": LARGE}).SerializeToString(), np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(content[: int(random.integers(len(content)))])
        if len(damaged) > 10:
            damaged[int(random.integers(10))] = int(random.integers(256))
        rest, stored = without_large_initializers(memoryview(damaged))
        assert stored or bytes(rest) == damaged


def test_weights_of_a_file_are_not_copied_by_the_importer(tmp_path: Path) -> None:
    write_model(adding({"large": LARGE, "half": LARGE.astype(np.float16).astype(np.float32)}), tmp_path / "m.onnx")
    context = RtContext()
    import_model(tmp_path / "m.onnx", context)
    arrays = [array for _, array in context.weights.items() if array.nbytes == LARGE.nbytes]
    assert len(arrays) == 2
    assert all(is_mapped(array) for array in arrays)
    np.testing.assert_array_equal(arrays[0], LARGE)


def test_weights_in_bytes_are_not_copied_by_the_importer() -> None:
    content, context = adding({"large": LARGE}).SerializeToString(), RtContext()
    import_model(content, context)
    ((_, array),) = context.weights.items()
    assert np.shares_memory(array, np.frombuffer(content, np.uint8))


def test_equal_names_with_other_bytes_are_refused() -> None:
    model = adding({"large": LARGE})
    model.graph.initializer.append(numpy_helper.from_array(LARGE, "large"))
    import_model(model.SerializeToString(), RtContext())
    model.graph.initializer[1].raw_data = (LARGE + 1).tobytes()
    with pytest.raises(InvalidModelError, match="two initializers 'large', which differ"):
        import_model(model.SerializeToString(), RtContext())


def test_narrow_types() -> None:
    codes = np.random.default_rng(0).standard_normal(MIN_BYTES).astype(ml_dtypes.float8_e4m3fn)
    nodes = [helper.make_node("Cast", ["codes"], ["y"], to=TensorProto.FLOAT)]
    model = model_of(nodes, {"x": ("float32", [1])}, ["y"], opset=19)
    kind = TensorProto.FLOAT8E4M3FN
    model.graph.initializer.append(
        TensorProto(name="codes", data_type=kind, dims=[MIN_BYTES], raw_data=codes.tobytes())
    )
    content, context = model.SerializeToString(), RtContext()
    assert read_model(content).stored
    import_model(content, context)
    assert any(np.array_equal(array, codes.astype(np.float32)) for _, array in context.weights.items())
