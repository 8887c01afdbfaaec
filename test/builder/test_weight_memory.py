"""Weights are in memory once: what a build packs is what the plan saves and what kernels read. Bytes are counted."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from counted_copies import counted_copies
from onnx import helper
from onnx_models import model_of, run_onnxruntime

import mlirt
from mlirt.kernels.lib.cpu.register_tiles import half_products
from mlirt.mapped_files import is_mapped
from mlirt.runtime import plan_source
from mlirt.runtime.cpu import CpuDevice
from mlirt.runtime.engine import Engine

save: Callable[..., None] = getattr(onnx, "save")
RNG = np.random.default_rng(0)


def products(storage: str, count: int = 3, size: int = 64) -> onnx.ModelProto:
    """A row times several matrices."""
    matrices = {f"w{k}": (RNG.standard_normal((size, size)) / 8).astype(storage) for k in range(count)}
    nodes = [helper.make_node("MatMul", [f"y{k}", f"w{k}"], [f"y{k + 1}"]) for k in range(count)]
    return model_of(nodes, {"y0": (storage, [1, size])}, [f"y{count}"], matrices)


def beside(model: onnx.ModelProto, folder: Path) -> Path:
    """The model in a file, its weights in another one."""
    path = folder / "model.onnx"
    save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def compiled(model: onnx.ModelProto | Path) -> Engine:
    engine = mlirt.compile(model, target="cpu")
    assert isinstance(engine, Engine)
    return engine


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_each_weight_is_packed_once_and_the_runtime_reads_that(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = counted_copies(monkeypatch)
    engine = compiled(products(storage))
    weights = engine.plan.weights
    assert sum(copies) == sum(array.nbytes for array in weights.values())
    device = engine._device  # pyright: ignore[reportPrivateUsage]
    assert isinstance(device, CpuDevice)
    for number, memory in device.weights.items():
        key = device.manifest.buffers[number].weight
        assert key is not None
        assert memory.ctypes.data == weights[key].ctypes.data


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_table_that_is_read_as_it_is_is_copied_out_of_the_file_once(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine does not need the model's file, which may be written to after the build."""
    table = RNG.standard_normal((500, 64)).astype(np.float32)
    node = helper.make_node("Gather", ["table", "places"], ["rows"])
    path = beside(model_of([node], {"places": ("int64", ["n"])}, ["rows"], {"table": table}), tmp_path)
    copies = counted_copies(monkeypatch)
    engine = mlirt.compile(path, target=target)
    assert isinstance(engine, Engine)
    (array,) = (array for array in engine.plan.weights.values() if array.nbytes == table.nbytes)
    assert sum(copies) == sum(array.nbytes for array in engine.plan.weights.values())
    assert not is_mapped(array)
    (tmp_path / "weights.bin").write_bytes(b"")
    np.testing.assert_array_equal(array.reshape(table.shape), table)


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_weights_in_another_file_give_the_same_plan(storage: str, tmp_path: Path) -> None:
    model = products(storage)
    (tmp_path / "model").mkdir()
    engines = [compiled(model), compiled(beside(onnx.ModelProto.FromString(model.SerializeToString()), tmp_path))]
    for number, engine in enumerate(engines):
        engine.plan.save(tmp_path / f"{number}.plan")
        feeds = {"y0": np.ones((1, 64), storage)}
        (want,) = run_onnxruntime(model, feeds)
        np.testing.assert_allclose(engine.run(feeds)["y3"], want, rtol=1e-2, atol=1e-3)
    assert {key: array.tobytes() for key, array in engines[0].plan.weights.items()} == {
        key: array.tobytes() for key, array in engines[1].plan.weights.items()
    }


def test_widened_weights_of_a_build_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the packing reads is made of the halves again; no float32 array but the packed one is left."""
    from mlirt.dialects.context import RtContext

    stores = list[RtContext]()
    made = RtContext.__init__

    def remembered(own: RtContext) -> None:
        made(own)
        stores.append(own)

    monkeypatch.setattr(RtContext, "__init__", remembered)
    engine = compiled(products("float16"))
    arrays = stores[0].weights._arrays.values()  # pyright: ignore[reportPrivateUsage]
    kept = [array for array in arrays if isinstance(array, np.ndarray)]
    wide = sum(array.nbytes for array in kept if array.dtype == np.float32)
    assert wide == sum(array.nbytes for array in engine.plan.weights.values())


def halved(rows: int | str, count: int = 2, size: int = 160) -> onnx.ModelProto:
    """Products with matrices of float32 of which the even ones have the numbers of halves."""
    matrices = {f"w{k}": (RNG.standard_normal((size, size)) / 8).astype(np.float32) for k in range(count)}
    matrices |= {name: array.astype(np.float16).astype(np.float32) for name, array in list(matrices.items())[::2]}
    nodes = [helper.make_node("MatMul", [f"y{k}", f"w{k}"], [f"y{k + 1}"]) for k in range(count)]
    return model_of(nodes, {"y0": ("float32", [rows, size])}, [f"y{count}"], matrices)


def stored_types(engine: Engine) -> list[str]:
    return sorted(array.dtype.name for array in engine.plan.weights.values() if array.size >= 160**2)


@pytest.mark.parametrize(("rows", "stays"), [(1, True), (7, True), (32, True), (33, False), ("n", False)])
def test_products_of_few_rows_read_halves_as_they_are(
    rows: int | str, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal products but for the numbers of their weights are not lowered alike, and the results are the same."""
    model = halved(rows)
    engine = compiled(model)
    assert stored_types(engine) == (["float16", "float32"] if stays else ["float32", "float32"])
    assert not engine.plan.manifest.sealed
    monkeypatch.setattr(half_products, "_ROWS_FOR_HALVES", 0)
    wide = compiled(model)
    assert stored_types(wide) == ["float32", "float32"]
    feeds = {"y0": RNG.standard_normal((rows if isinstance(rows, int) else 5, 160)).astype(np.float32)}
    np.testing.assert_array_equal(engine.run(feeds)["y2"], wide.run(feeds)["y2"])
    np.testing.assert_allclose(engine.run(feeds)["y2"], run_onnxruntime(model, feeds)[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("rows", [40, "n"])
def test_large_matrices_are_read_as_halves_by_any_rows(rows: int | str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_products, "_BYTES_FOR_HALVES", 160 * 160 * 4)
    assert stored_types(compiled(halved(rows))) == ["float16", "float32"]


def test_halves_are_mapped_by_a_loaded_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_source, "MAX_READ_BYTES", 0)
    engine = compiled(halved(1, count=1))
    engine.save(tmp_path / "a.plan")
    loaded = mlirt.load(tmp_path / "a.plan")
    (array,) = loaded.plan.weights.values()
    assert array.dtype == np.float16
    base: Any = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.obj if isinstance(base, memoryview) else base.base
    assert isinstance(base, mmap.mmap)
    feeds = {"y0": np.ones((1, 160), np.float32)}
    np.testing.assert_array_equal(loaded.run(feeds)["y1"], engine.run(feeds)["y1"])


@pytest.mark.parametrize("storage", ["float16", "float32"])
@pytest.mark.parametrize("axis", [0, 1])
def test_tables_are_read_as_halves(storage: str, axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each element that is gathered is widened, whether the model has halves or their numbers in float32."""
    table = RNG.standard_normal((300, 100)).astype(np.float16).astype(storage)
    nodes = [helper.make_node("Gather", ["table", "places"], ["rows"], axis=axis)]
    model = model_of(nodes, {"places": ("int64", ["n"])}, ["rows"], {"table": table})
    copies = counted_copies(monkeypatch)
    engine = compiled(model)
    (stored,) = (array for array in engine.plan.weights.values() if array.size == table.size)
    assert stored.dtype == np.float16
    whole = sum(array.nbytes for array in engine.plan.weights.values())
    # Halves of the model are read where they lie if that is aligned.
    assert sum(copies) == whole or (storage == "float16" and not copies)
    assert not engine.plan.manifest.sealed
    for places in (np.array([3, 0, 99, -1]), np.arange(17)):
        found = engine.run({"places": places})["rows"]
        assert found.dtype == table.dtype
        np.testing.assert_array_equal(found, table.take(places, axis))
