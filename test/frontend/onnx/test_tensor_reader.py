"""Stored tensors: every type, damaged ones, and files beside the model."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import model_of, numbers, write_model

from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidModelError, UnsupportedError
from mlirt.frontend.onnx.importer import import_model
from mlirt.frontend.onnx.tensor_reader import read_tensor

DTYPES = ["float32", "float64", "float16", "bool", *(f"{s}int{w}" for s in ("", "u") for w in (8, 16, 32, 64))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("raw", [True, False])
def test_every_type(dtype: str, raw: bool) -> None:
    array = np.array([[0, 1, 3], [2, 100, 5]]).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    content = array.tobytes() if raw else array.ravel()
    tensor = helper.make_tensor("w", kind, array.shape, content, raw)
    got = read_tensor(tensor, "it")
    assert got.dtype == array.dtype
    np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize("raw", [True, False])
def test_bfloat16(raw: bool) -> None:
    array = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    content = array.tobytes() if raw else [1.5, -2.0]
    tensor = helper.make_tensor("w", TensorProto.BFLOAT16, [2], content, raw)
    np.testing.assert_array_equal(read_tensor(tensor, "it"), array)


def test_bytes_are_not_copied_to_be_written() -> None:
    assert not read_tensor(numpy_helper.from_array(numbers(3)), "it").flags.writeable


def damaged(**fields: object) -> TensorProto:
    tensor = numpy_helper.from_array(numbers(2, 3), "w")
    for name, value in fields.items():
        if name == "dims":
            assert isinstance(value, list)
            tensor.dims[:] = value
        else:
            setattr(tensor, name, value)
    return tensor


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"raw_data": b"123"}, "holds 3 bytes, which is no whole number of float32"),
        ({"raw_data": b"1234"}, r"holds 1 elements, its shape \[2, 3\] needs 6"),
        ({"dims": [-2, 3]}, "lengths cannot be negative"),
        ({"dims": [1 << 40, 1 << 40]}, "larger than any network needs"),
        ({"data_type": 77}, "has data type 77, which ONNX does not define"),
    ],
)
def test_damaged_tensors(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidModelError, match=message):
        read_tensor(damaged(**fields), "initializer 'w'")


def test_strings_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="element type string"):
        read_tensor(damaged(data_type=TensorProto.STRING), "initializer 'w'")


def stored_beside(folder: Path, location: str, offset: int = 0, length: int | None = None) -> Path:
    """A model whose weights lie in a file, and the file."""
    array = numbers(16, 32)
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ("float32", [1, 16])}, ["y"], {"w": array})
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": location, "offset": str(offset)} | ({} if length is None else {"length": str(length)})
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    (folder / "weights.bin").write_bytes(b"\0" * 64 + array.tobytes())
    path = folder / "model.onnx"
    write_model(model, path)
    return path


def test_external_data_is_read(tmp_path: Path) -> None:
    ctx = RtContext()
    import_model(stored_beside(tmp_path, "weights.bin", 64), ctx)
    ((_, array),) = ctx.weights.items()
    np.testing.assert_array_equal(array, numbers(16, 32))


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "", "missing", ".", "a\0b"])
def test_nothing_outside_of_the_folder_is_read(tmp_path: Path, location: str) -> None:
    (tmp_path / "secret").write_bytes(b"\0" * 4096)
    folder = tmp_path / "model"
    folder.mkdir()
    path = stored_beside(folder, location)
    with pytest.raises(InvalidModelError, match="which is no file inside the model's folder"):
        import_model(path, RtContext())


def test_links_do_not_lead_out(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"\0" * 4096)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(InvalidModelError, match="no file inside the model's folder"):
        import_model(stored_beside(folder, "link"), RtContext())


@pytest.mark.parametrize("offset", [128, -4, 1 << 62])
def test_ranges_outside_of_the_file(tmp_path: Path, offset: int) -> None:
    with pytest.raises(
        InvalidModelError, match=f"needs 2048 bytes at offset {offset} of weights.bin, which holds 2112"
    ):
        import_model(stored_beside(tmp_path, "weights.bin", offset), RtContext())


@pytest.mark.parametrize("length", [12, 2049, 1 << 62])
def test_a_length_that_contradicts_the_shape(tmp_path: Path, length: int) -> None:
    with pytest.raises(InvalidModelError, match=f"external data of {length} bytes, but its shape and type take 2048"):
        import_model(stored_beside(tmp_path, "weights.bin", 0, length), RtContext())


def test_bytes_have_no_folder(tmp_path: Path) -> None:
    content = stored_beside(tmp_path, "weights.bin", 64).read_bytes()
    with pytest.raises(InvalidModelError, match="give the model as a path, not as bytes"):
        import_model(content, RtContext())
