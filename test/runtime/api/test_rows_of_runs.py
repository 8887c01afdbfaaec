"""Runs and plans by TensorRT's names: empty tensors, threads, lifetimes, bits (sections 13, 20 to 22)."""

from __future__ import annotations

import gc
import hashlib
import itertools
import json
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layer_networks import Array, CollectingLogger, constant, evaluate, new_network

import mlirt as trt
from mlirt.runtime.plan_file import plan_bytes, read_plan

SUM = trt.ElementWiseOperation.SUM
NONE, TRANSPOSE = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def with_outputs(network: trt.INetworkDefinition, *layers: trt.ILayer) -> trt.INetworkDefinition:
    for number, layer in enumerate(layers):
        layer.get_output(0).name = f"y{number}"
        network.mark_output(layer.get_output(0))
    return network


def plan_of(network: trt.INetworkDefinition, logger: CollectingLogger, **most: tuple[int, ...]) -> bytes:
    """For the CPU; dynamic dimensions are 0 to 4."""
    builder = trt.Builder(logger)
    config = builder.create_builder_config()
    config.target = "cpu"
    if most:
        profile = builder.create_optimization_profile()
        for name, shape in most.items():
            low, usual, high = (tuple(k if length < 0 else length for length in shape) for k in (0, 2, 4))
            profile.set_shape(name, low, usual, high)
        config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None, logger.text()
    return plan


def opened(plan: bytes, logger: CollectingLogger) -> trt.ICudaEngine:
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine is not None, logger.text()
    return engine


def run(context: trt.IExecutionContext, feeds: dict[str, Array]) -> list[Array]:
    engine = context.engine
    for name, array in feeds.items():
        assert context.set_input_shape(name, array.shape)
        assert context.set_tensor_address(name, array)
    found: list[Array] = []
    for name in engine.tensor_names[len(feeds) :]:
        dtype = trt.nptype(engine.get_tensor_dtype(name))
        found.append(np.full(tuple(context.get_tensor_shape(name)), 7, dtype))
        assert context.set_tensor_address(name, found[-1])
    assert context.execute_async_v3(0)
    return found


def layers_of_a_batch(network: trt.INetworkDefinition, x: trt.ITensor) -> list[trt.ILayer]:
    """Layers of n x 3 x 8 x 8 and of n x 3."""
    rows = network.add_reduce(x, trt.ReduceOperation.MAX, 0b1100, False).get_output(0)
    softmax = network.add_softmax(rows)
    softmax.axes = 1 << 1
    resized = network.add_resize(x)
    resized.scales = [1, 1, 2, 2]
    joined = network.add_concatenation([rows, constant(network, numbers(2, 3)), rows])
    joined.axis = 0
    return [
        network.add_convolution_nd(x, 4, (3, 3), numbers(4, 3, 3, 3), numbers(4)),
        network.add_deconvolution_nd(x, 4, (3, 3), numbers(3, 4, 3, 3), numbers(4)),
        network.add_pooling_nd(x, trt.PoolingType.AVERAGE, (2, 2)),
        network.add_fully_connected(x, 5, numbers(5, 192), numbers(5)),
        softmax,
        network.add_matrix_multiply(rows, NONE, constant(network, numbers(3, 4)), NONE),
        network.add_matrix_multiply(rows, TRANSPOSE, rows, NONE),
        network.add_topk(rows, trt.TopKOperation.MAX, 2, 1 << 1),
        network.add_gather(rows, constant(network, np.array([2, 0], np.int32)), 1),
        resized,
        joined,
        network.add_lrn(x, 3, 1, 0.75, 1),
        *(network.add_reduce(rows, kind, 1 << 0, True) for kind in trt.ReduceOperation),
    ]


def test_layers_without_images() -> None:
    """tensorrt-features.md#12.25, 20.1, 20.4 and 20.5: what holds for any batch holds for an empty one."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (-1, 3, 8, 8))
    with_outputs(network, *layers_of_a_batch(network, x))
    context = opened(plan_of(network, logger, x=(-1, 3, 8, 8)), logger).create_execution_context()
    for images in (0, 1, 3):
        feeds = {"x": numbers(images, 3, 8, 8, seed=images)}
        for got, want in zip(run(context, feeds), evaluate(network, feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_broadcasts_of_nothing() -> None:
    """tensorrt-features.md#20.2: [1, y, z] + [x, 1, z] and their concatenations, each length 0 or not."""
    logger = CollectingLogger()
    network = new_network(logger)
    a, b = network.add_input("a", trt.float32, (1, -1, -1)), network.add_input("b", trt.float32, (-1, 1, -1))
    for tensor, axis in ((a, 2), (b, 2)):
        tensor.set_dimension_name(axis, "z")
    total = network.add_elementwise(a, b, SUM)
    joined = network.add_concatenation([total.get_output(0), total.get_output(0)])
    joined.axis = 1
    plan = plan_of(with_outputs(network, total, joined), logger, a=(1, -1, -1), b=(-1, 1, -1))
    context = opened(plan, logger).create_execution_context()
    for x, y, z in itertools.product((0, 2), repeat=3):
        first, second = numbers(1, y, z), numbers(x, 1, z, seed=1)
        total_of, joined_of = run(context, {"a": first, "b": second})
        np.testing.assert_array_equal(total_of, first + second)
        np.testing.assert_array_equal(joined_of, np.concatenate([first + second] * 2, 1))


@pytest.fixture(scope="module")
def plain() -> tuple[bytes, CollectingLogger]:
    """A matrix product and its tanh."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (4, 64))
    product = network.add_matrix_multiply(x, NONE, constant(network, numbers(64, 64)), NONE).get_output(0)
    return plan_of(with_outputs(network, network.add_activation(product, trt.ActivationType.TANH)), logger), logger


def test_threads(plain: tuple[bytes, CollectingLogger]) -> None:
    """tensorrt-features.md#13.8, 13.10, 17.13 and 22.1: opening, contexts and runs from several threads give the same
    bits.
    """
    plan, logger = plain
    runtime, x, found = trt.Runtime(logger), numbers(4, 64, seed=5), list[bytes]()
    shared = opened(plan, logger)

    def work() -> None:
        for _ in range(4):
            own = runtime.deserialize_cuda_engine(plan)
            assert own is not None
            for engine in (own, shared):
                found.extend(one.tobytes() for one in run(engine.create_execution_context(), {"x": x}))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 32
    assert len(set(found)) == 1


def test_contexts_outlive_what_made_them(plain: tuple[bytes, CollectingLogger]) -> None:
    """tensorrt-features.md#2.14 and 13.26."""
    runtime = trt.Runtime(plain[1])
    engine = runtime.deserialize_cuda_engine(plain[0])
    assert engine is not None
    context = engine.create_execution_context()
    del runtime, engine
    gc.collect()
    assert np.isfinite(run(context, {"x": numbers(4, 64)})[0]).all()


def test_the_same_build_gives_the_same_bytes() -> None:
    """tensorrt-features.md#22.2 and 22.3."""

    def digest() -> str:
        logger = CollectingLogger()
        network = new_network(logger)
        x = network.add_input("x", trt.float32, (1, 3, 8, 8))
        layer = network.add_convolution_nd(x, 4, (3, 3), numbers(4, 3, 3, 3), numbers(4))
        return hashlib.sha256(plan_of(with_outputs(network, layer), logger)).hexdigest()

    assert digest() == digest()


def test_round_trip(plain: tuple[bytes, CollectingLogger]) -> None:
    """tensorrt-features.md#21.1."""
    engine, x = opened(*plain), numbers(4, 64)
    again = opened(engine.serialize(), plain[1])
    for got, want in zip(*(run(one.create_execution_context(), {"x": x}) for one in (again, engine)), strict=True):
        np.testing.assert_array_equal(got, want)


def _of_another_machine(manifest: dict[str, Any]) -> None:
    manifest["target"]["features"].append("warp-drive")


def _of_another_architecture(manifest: dict[str, Any]) -> None:
    manifest["target"]["triple"] = "riscv64-unknown-linux-gnu"


@pytest.mark.parametrize(
    ("change", "why"), [(_of_another_machine, "warp-drive"), (_of_another_architecture, "riscv64")]
)
def test_plans_of_other_machines(
    plain: tuple[bytes, CollectingLogger], change: Callable[[dict[str, Any]], None], why: str
) -> None:
    """tensorrt-features.md#21.3 and 31.8 to 31.10: None, and a line that says what the plan was made for."""
    plan = read_plan(plain[0])
    manifest = json.loads(json.dumps(plan.manifest_json))
    change(manifest)
    logger = CollectingLogger()
    other = plan_bytes(manifest, plan.sections, plan.weights)
    assert trt.Runtime(logger).deserialize_cuda_engine(other) is None
    assert why in logger.text()


def test_damaged_plans(plain: tuple[bytes, CollectingLogger]) -> None:
    """tensorrt-features.md#21.2 and 21.6: another version, a part that is missing, a bit that is not what it was."""
    logger = CollectingLogger()
    newer, cut, flipped = bytearray(plain[0]), plain[0][: len(plain[0]) // 2], bytearray(plain[0])
    newer[8] += 40
    flipped[-1] ^= 1
    for plan, why in ((bytes(newer), "version"), (cut, "bytes"), (bytes(flipped), "digest")):
        assert trt.Runtime(logger).deserialize_cuda_engine(plan) is None
        assert why in logger.messages[-1][1]


def test_addresses(plain: tuple[bytes, CollectingLogger]) -> None:
    """tensorrt-features.md#13.5: null and missing addresses name their tensor."""
    logger = CollectingLogger()
    context = opened(plain[0], logger).create_execution_context()
    x = numbers(4, 64)
    assert not context.execute_v2([0, 0])
    assert "the address of 'x' is not set" in logger.text()
    assert not context.execute_v2([x.ctypes.data, 0])
    assert "the address of 'y0' is not set" in logger.text()
