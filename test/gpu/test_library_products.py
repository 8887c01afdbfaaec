"""Products by cuBLASLt on a GPU: right results inside the captured graph, the same bits in every run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from layer_networks import CollectingLogger, new_network
from one_tactic import Onlooker, Only
from onnx import TensorProto, helper, numpy_helper
from repeated_runs import differing_runs

import mlirt
import mlirt as trt
from mlirt.errors import MlirtError
from mlirt.runtime.cublas_lt import open_cublas_lt

pytestmark = pytest.mark.gpu

TOLERANCES = {"fp32": 1e-5, "tf32": 2e-3, "fp16": 2e-3}


def chain(rows: int, sizes: Sequence[int], activation: str | None) -> onnx.ModelProto:
    """Products with a bias and an activation, one after the other."""
    noise, last = np.random.default_rng(0), "x"
    nodes, weights = list[onnx.NodeProto](), list[onnx.TensorProto]()
    for k, (depth, columns) in enumerate(pairwise(sizes)):
        for name, shape, scale in ((f"w{k}", (depth, columns), depth**-0.5), (f"b{k}", (columns,), 1.0)):
            values = (noise.standard_normal(shape) * scale).astype(np.float32)
            weights.append(numpy_helper.from_array(values, name))
        nodes.append(helper.make_node("MatMul", [last, f"w{k}"], [f"p{k}"], name=f"product{k}"))
        nodes.append(helper.make_node("Add", [f"p{k}", f"b{k}"], [f"s{k}"], name=f"bias{k}"))
        last = f"s{k}"
        if activation is not None:
            settings = {"approximate": "tanh"} if activation == "Gelu" else {}
            nodes.append(helper.make_node(activation, [last], [f"a{k}"], name=f"act{k}", **settings))
            last = f"a{k}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, sizes[0]])
    y = helper.make_tensor_value_info(last, TensorProto.FLOAT, [rows, sizes[-1]])
    graph = helper.make_graph(nodes, "chain", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def agree(engine: Any, model: onnx.ModelProto, rows: int, depth: int, tolerance: float) -> None:
    x = np.random.default_rng(1).standard_normal((rows, depth), np.float32)
    (want,) = mlirt.compile(model, "reference").run({"x": x}).values()
    (found,) = engine.run({"x": x}).values()
    np.testing.assert_allclose(found.astype(np.float32), want, atol=tolerance * float(np.abs(want).max()))
    assert differing_runs(engine, {"x": x}, 50) == []


@pytest.mark.parametrize("proposal", ["first", "second"])
@pytest.mark.parametrize("activation", [None, "Relu", "Gelu"])
@pytest.mark.parametrize("precision", TOLERANCES)
def test_a_chain_of_products(precision: str, activation: str | None, proposal: str) -> None:
    model, selector = chain(96, [128, 320, 64], activation), Only(f"cuda_cublas_lt:{proposal}")
    settings: dict[str, Any] = {"algorithm_selector": selector, "tactic_sources": ["CUBLAS_LT"], "heuristic": True}
    engine = mlirt.compile(model, "cuda", precision, **settings)
    # The first product of halves rounds x as it reads it, which the library cannot.
    assert selector.taken.count(selector.name) == (1 if precision == "fp16" else 2)
    agree(engine, model, 96, 128, TOLERANCES[precision])


def test_sizes_without_a_common_divisor() -> None:
    model, selector = chain(37, [131, 77, 3], "Relu"), Only("cuda_cublas_lt:first")
    settings: dict[str, Any] = {"algorithm_selector": selector, "tactic_sources": ["CUBLAS_LT"], "heuristic": True}
    agree(mlirt.compile(model, "cuda", "fp32", **settings), model, 37, 131, 1e-5)


def test_bytes_exactly() -> None:
    noise = np.random.default_rng(0)
    weights = noise.integers(-128, 128, (160, 64), np.int8)
    x = helper.make_tensor_value_info("x", TensorProto.INT8, [48, 160])
    y = helper.make_tensor_value_info("y", TensorProto.INT32, [48, 64])
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"], name="product")
    graph = helper.make_graph([node], "bytes", [x], [y], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    selector = Only("cuda_cublas_lt:first")
    settings: dict[str, Any] = {"algorithm_selector": selector, "tactic_sources": ["CUBLAS_LT"], "heuristic": True}
    engine = mlirt.compile(model, "cuda", **settings)
    assert selector.name in selector.taken
    given = noise.integers(-128, 128, (48, 160), np.int8)
    (found,) = engine.run({"x": given}).values()
    np.testing.assert_array_equal(found, given.astype(np.int32) @ weights.astype(np.int32))


def test_the_library_is_measured_beside_our_kernels() -> None:
    selector, model = Onlooker(), chain(512, [768, 3072, 768], None)
    engine = mlirt.compile(
        model, "cuda", "fp16", algorithm_selector=selector, tactic_sources=["CUBLAS_LT"], min_timing_iterations=3
    )
    assert {"cuda_cublas_lt", "cuda_wgmma"} <= selector.offered or {"cuda_cublas_lt", "cuda_tiles"} <= selector.offered
    agree(engine, model, 512, 768, 2e-3)


def test_what_the_library_does_not_have_is_an_error() -> None:
    from mlirt.runtime.library_calls import LibraryProduct

    what = LibraryProduct("cublas_lt", ("int8", "int8", "float16"), "none", False, 0, 0, (False, True))
    with pytest.raises(MlirtError, match=r"cuBLASLt \d+"):
        open_cublas_lt().prepare(what, [256, 512, 1024, 0], [4, 4, 4, 1, 4, 0, 4, 0, 4, 0])


@pytest.mark.parametrize("sources", [0, 1 << int(trt.TacticSource.CUBLAS_LT)])
def test_by_the_names_of_tensorrt(sources: int) -> None:
    network = new_network()
    x, noise = network.add_input("x", trt.float32, (64, 128)), np.random.default_rng(0)
    weights = noise.standard_normal((128, 96)).astype(np.float32)
    known = network.add_constant((128, 96), weights).get_output(0)
    none = trt.MatrixOperation.NONE
    y = network.add_matrix_multiply(x, none, known, none).get_output(0)
    y.name = "y"
    network.mark_output(y)
    builder = trt.Builder(CollectingLogger())
    config = builder.create_builder_config()
    config.target, config.algorithm_selector = "cuda", Only("cuda_cublas_lt:first")
    config.set_flag(trt.BuilderFlag.ENABLE_TACTIC_HEURISTIC)
    assert config.set_tactic_sources(sources)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    engine = trt.Runtime(CollectingLogger()).deserialize_cuda_engine(plan)
    assert engine is not None
    assert engine.tactic_sources == sources
