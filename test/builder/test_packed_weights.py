"""Networks with weights of few bits, from ONNX to a plan: numbers against onnxruntime, bytes against the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import Array
from onnxruntime_session import cpu_session

import mlirt
from mlirt.dialects.packed_codes import packed

_MS = "com.microsoft"


def _model(nodes: Sequence[Any], x: Sequence[Any], stored: dict[str, Any], element: int = TensorProto.FLOAT) -> Any:
    arrays = [
        value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(value, name)
        for name, value in stored.items()
    ]
    y = helper.make_tensor_value_info("y", element, None)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", element, x)], [y], arrays)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(_MS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _n_bits(
    depth: int,
    count: int,
    block: int,
    bits: int = 4,
    zeros: str = "",
    dtype: str = "float32",
    rows: Sequence[Any] = ("n",),
    **attributes: Any,
) -> Any:
    rng = np.random.default_rng(depth + count + block)
    blocks = -(-depth // block)
    stored: dict[str, Any] = {
        "w": rng.integers(0, 256, (count, blocks, block * bits // 8), dtype=np.uint8),
        "s": rng.uniform(0.01, 0.05, count * blocks).astype(dtype),
    }
    if zeros == "packed":
        stored["z"] = rng.integers(0, 256, count * -(-blocks * bits // 8), dtype=np.uint8)
    elif zeros == "floats":
        stored["z"] = rng.uniform(4, 12, count * blocks).astype(dtype)
    sizes: dict[str, Any] = {"K": depth, "N": count, "bits": bits, "block_size": block}
    node = helper.make_node("MatMulNBits", ["x", *stored], ["y"], name="product", domain=_MS, **(sizes | attributes))
    element = TensorProto.FLOAT16 if dtype == "float16" else TensorProto.FLOAT
    return _model([node], [*rows, depth], stored, element)


def _agrees(model: Any, shapes: Sequence[Sequence[int]], dtype: str = "float32", tolerance: float = 2e-4) -> None:
    engine = mlirt.compile(model, target="cpu")
    session = cpu_session(model, optimized=False)  # which would quantise what is multiplied with integers to 8 bits
    for seed, shape in enumerate(shapes):
        x: Array = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
        (expected,) = session.run(None, {"x": x})
        found = engine.run({"x": x})["y"]
        assert found.dtype == expected.dtype
        largest = float(np.abs(expected.astype(np.float32)).max())
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * largest)


@pytest.mark.parametrize(("block", "zeros"), [(16, ""), (32, "packed"), (64, "floats"), (128, ""), (256, "packed")])
def test_blocks_of_any_size(block: int, zeros: str) -> None:
    """The sum is not a multiple of the block, the columns are odd, and a run has any number of rows."""
    _agrees(_n_bits(290, 67, block, zeros=zeros), [[1, 290], [3, 290], [5, 290], [37, 290]])


@pytest.mark.parametrize("batch", [1, 3, 5])
def test_batches_of_sequences(batch: int) -> None:
    _agrees(_n_bits(96, 33, 32, zeros="packed", rows=(batch, "length")), [[batch, 1, 96], [batch, 9, 96]])


@pytest.mark.parametrize("bits", [2, 8])
def test_two_and_eight_bits(bits: int) -> None:
    _agrees(_n_bits(130, 20, 32, bits=bits, zeros="packed"), [[1, 130], [4, 130], [6, 130]])


def test_half_precision_and_an_accuracy_level() -> None:
    _agrees(_n_bits(128, 24, 32, zeros="packed", dtype="float16"), [[1, 128], [7, 128]], "float16", 4e-3)
    # onnxruntime may quantise activations to 8 bits there; the sum of 64 such products differs by about 1 %.
    _agrees(_n_bits(64, 24, 32, accuracy_level=4), [[1, 64], [7, 64]], tolerance=3e-2)


def _int4(name: str, array: Array, signed: bool) -> onnx.TensorProto:
    rows, columns = array.shape
    codes = (array.astype(np.int16) & 15).astype(np.uint8).reshape(1, -1)
    data = packed(codes, codes.shape[1] + codes.shape[1] % 2, 4).tobytes()
    kind = TensorProto.INT4 if signed else TensorProto.UINT4
    return helper.make_tensor(name, kind, [rows, columns], data, raw=True)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("has_zeros", [True, False])
@pytest.mark.parametrize(("axis", "block"), [(0, 16), (0, 32), (1, 0)])
def test_dequantized_int4_in_front_of_a_product(signed: bool, has_zeros: bool, axis: int, block: int) -> None:
    rng = np.random.default_rng(3)
    depth, columns = 96, 65
    low, high = (-8, 8) if signed else (0, 16)
    scales = (depth // block, columns) if block else (columns,)
    stored: dict[str, Any] = {
        "w": _int4("w", rng.integers(low, high, (depth, columns)), signed),
        "s": rng.uniform(0.01, 0.05, scales).astype(np.float32),
    }
    if has_zeros:
        points = rng.integers(low, high, scales)
        stored["z"] = _int4("z", points.reshape(1, -1), signed)
        del stored["z"].dims[:]
        stored["z"].dims.extend(scales)
    attributes: dict[str, Any] = {"axis": axis, "block_size": block} if block else {"axis": axis}
    nodes = [
        helper.make_node("DequantizeLinear", list(stored), ["d"], name="weights", **attributes),
        helper.make_node("MatMul", ["x", "d"], ["y"], name="product"),
    ]
    model = _model(nodes, ["n", depth], stored)
    _agrees(model, [[1, depth], [3, depth], [20, depth]])


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_dequantized_bytes_in_front_of_gemm(transposed: bool, dtype: str) -> None:
    rng = np.random.default_rng(3)
    low, high = (-128, 128) if dtype == "int8" else (0, 256)
    weights = rng.integers(low, high, (80, 100) if transposed else (100, 80)).astype(dtype)
    stored = {
        "w": weights,
        "s": rng.uniform(0.001, 0.002, 80).astype(np.float32),
        "z": rng.integers(low, high, 80).astype(dtype),
        "b": rng.standard_normal(80).astype(np.float32),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], name="weights", axis=0 if transposed else 1),
        helper.make_node("Gemm", ["x", "d", "b"], ["s1"], name="product", transB=int(transposed)),
        helper.make_node("Relu", ["s1"], ["y"], name="relu"),
    ]
    _agrees(_model(nodes, ["n", 100], stored), [[1, 100], [4, 100], [9, 100]])


@pytest.mark.parametrize(
    ("block", "dtype", "zeros"), [(16, "float16", "packed"), (32, "float32", ""), (128, "float16", "")]
)
def test_a_plan_is_hardly_larger_than_the_model(block: int, dtype: str, zeros: str, tmp_path: Path) -> None:
    model = _n_bits(1024, 1024, block, zeros=zeros, dtype=dtype, rows=(1,))
    path = tmp_path / "packed.plan"
    mlirt.compile(model, target="cpu").save(path)
    assert path.stat().st_size <= 1.1 * len(model.SerializeToString())


@pytest.mark.parametrize("rows", [1, 20])
def test_a_plan_for_a_gpu_has_the_codes_too(rows: int, tmp_path: Path) -> None:
    """One row multiplies by the codes, more by halves that a launch in front makes of them."""
    model = _n_bits(1024, 1024, 32, dtype="float16", rows=(rows,))
    path = tmp_path / "packed.plan"
    mlirt.compile(model, target="cuda", precision="fp16", heuristic=True).save(path)
    assert path.stat().st_size <= 1.1 * len(model.SerializeToString())


@pytest.mark.parametrize(("bits", "width", "block"), [(4, 80, 32), (8, 48, 16), (4, 64, 64)])
def test_rows_of_a_packed_table(bits: int, width: int, block: int) -> None:
    """Only the rows that are read become numbers: the plan has the table packed."""
    rng = np.random.default_rng(1)
    blocks = -(-width // block)
    stored = {
        "data": rng.integers(0, 256, (50, width * bits // 8), dtype=np.uint8),
        "scales": rng.uniform(0.01, 0.05, (50, blocks)).astype(np.float32),
        "zeros": rng.integers(0, 256, (50, -(-blocks * bits // 8)), dtype=np.uint8),
    }
    sizes: dict[str, Any] = {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}
    nodes = [
        helper.make_node("Cast", ["x"], ["rows"], to=TensorProto.INT64),
        helper.make_node("GatherBlockQuantized", ["data", "rows", *list(stored)[1:]], ["y"], domain=_MS, **sizes),
    ]
    model = _model(nodes, ["n", 3], stored)
    engine, session = mlirt.compile(model, target="cpu"), cpu_session(model)
    for length in (1, 4):
        x = rng.integers(0, 50, (length, 3)).astype(np.float32)
        (expected,) = session.run(None, {"x": x})
        np.testing.assert_allclose(engine.run({"x": x})["y"], expected, rtol=1e-6)
