"""Refitter: engines with other weights are those that a build with them gives (tensorrt-features.md#14.1 to 14.11,
10.18).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from layer_networks import Array, CollectingLogger, constant, new_network
from network_engines import built as engine_of

import mlirt as trt
from mlirt.errors import InvalidInputError

ROLE = trt.WeightsRole


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@dataclass(frozen=True)
class Given:
    """The weights of the network below."""

    kernel: Array
    bias: Array
    shift: Array
    added: Array


FIRST = Given(numbers(4, 3, 3, 3), numbers(4, seed=1), numbers(4, seed=2), numbers(1, 4, 1, 1, seed=3))
X = numbers(2, 3, 8, 8, seed=4)


def built(
    given: Given, logger: CollectingLogger, *flags: trt.BuilderFlag, amax: float = 0, profiles: int = 1
) -> trt.ICudaEngine:
    """Convolution, scale and addition of a constant, which become one launch; 1 to 4 images."""
    builder, network = trt.Builder(logger), new_network(logger)
    x = network.add_input("x", trt.float32, (-1, 3, 8, 8))
    conv = network.add_convolution_nd(x, 4, (3, 3), given.kernel, given.bias)
    ones = np.ones(4, np.float32)
    norm = network.add_scale(conv.get_output(0), trt.ScaleMode.CHANNEL, given.shift, ones * 2, ones)
    added = constant(network, given.added)
    total = network.add_elementwise(norm.get_output(0), added, trt.ElementWiseOperation.SUM)
    for layer, name in ((conv, "conv"), (norm, "norm"), (network.get_layer(2), "added"), (total, "total")):
        layer.name = name
    total.get_output(0).name = "y"
    network.mark_output(total.get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    config.target = "cpu"
    for flag in flags:
        config.set_flag(flag)
    if amax:
        x.dynamic_range, conv.get_output(0).dynamic_range = (-amax, amax), (-9.0, 9.0)
    profile.set_shape("x", (1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8))
    for _ in range(profiles):
        config.add_optimization_profile(profile)
    return engine_of(network, config, logger)


def run(context: trt.IExecutionContext) -> Array:
    found = np.empty((2, 4, 6, 6), np.float32)
    assert context.execute_v2([X.ctypes.data, found.ctypes.data])
    return found


def context_of(engine: trt.ICudaEngine, profile: int = 0) -> trt.IExecutionContext:
    context = engine.create_execution_context()
    assert context.set_optimization_profile_async(profile, 0)
    assert context.set_input_shape("x", X.shape)
    return context


def test_some_weights_at_a_time() -> None:
    """tensorrt-features.md#14.2, 14.4 to 14.7, 14.11: contexts go on, and what was folded into one may be changed
    apart.
    """
    logger = CollectingLogger()
    engine = built(FIRST, logger, trt.BuilderFlag.REFIT, profiles=2)
    assert engine.refittable
    context, other = context_of(engine, 0), context_of(engine, 1)
    refitter = trt.Refitter(engine, logger)
    layers, roles = refitter.get_all()
    expected = {("conv", ROLE.KERNEL), ("conv", ROLE.BIAS), ("norm", ROLE.SHIFT), ("norm", ROLE.SCALE)}
    assert set(zip(layers, roles, strict=True)) == expected | {("added", ROLE.CONSTANT)}
    now = FIRST
    steps = [
        ("conv", ROLE.KERNEL, "kernel", numbers(4, 3, 3, 3, seed=7)),
        ("norm", ROLE.SHIFT, "shift", numbers(4, seed=8)),
        ("added", ROLE.CONSTANT, "added", numbers(1, 4, 1, 1, seed=9)),
    ]
    for layer, role, name, array in steps:
        assert refitter.set_weights(layer, role, array)
        assert (refitter.get_missing(), refitter.get_missing_weights()) == (([], []), [])
        assert refitter.refit_cuda_engine(), logger.text()
        now = replace(now, **{name: array})
        want = run(context_of(built(now, logger)))
        np.testing.assert_array_equal(run(context), want)
        np.testing.assert_array_equal(run(other), want)
    assert engine.get_tensor_profile_shape("x", 0)[2] == (4, 3, 8, 8)
    again = trt.Runtime(logger).deserialize_cuda_engine(engine.serialize())
    assert again is not None
    np.testing.assert_array_equal(run(context_of(again)), run(context))


def test_what_does_not_fit() -> None:
    """tensorrt-features.md#14.1, 14.2, 14.10: False and a line in the log; an engine without the flag has no refitter.
    """
    logger = CollectingLogger()
    engine = built(FIRST, logger, trt.BuilderFlag.REFIT)
    before = run(context_of(engine))
    refitter = trt.Refitter(engine, logger)
    refused = [
        ("conv", ROLE.BIAS, numbers(3), "conv: BIAS: expected floating-point weights of shape [4], got float32 of [3]"),
        ("conv", ROLE.SHIFT, numbers(4), "conv: SHIFT: the engine has no such weights"),
        ("nobody", ROLE.KERNEL, numbers(4), "nobody: KERNEL: the engine has no such weights"),
        ("conv", ROLE.BIAS, np.ones(4, np.int32), "got int32"),
    ]
    for layer, role, array, why in refused:
        assert not refitter.set_weights(layer, role, array)
        assert why in logger.text()
    assert not refitter.set_named_weights("nobody", numbers(4))
    assert refitter.refit_cuda_engine()
    np.testing.assert_array_equal(run(context_of(engine)), before)
    plain = built(FIRST, logger)
    assert not plain.refittable
    with pytest.raises(InvalidInputError, match=r"built without BuilderFlag\.REFIT"):
        trt.Refitter(plain, logger)


def test_bytes_have_ranges() -> None:
    """tensorrt-features.md#14.8: another range of the input means other steps, and weights are quantised anew."""
    logger = CollectingLogger()
    flags = (trt.BuilderFlag.REFIT, trt.BuilderFlag.INT8)
    engine = built(FIRST, logger, *flags, amax=3)
    refitter = trt.Refitter(engine, logger)
    assert "x" in refitter.get_tensors_with_dynamic_range()
    assert refitter.get_dynamic_range("x") == (-3, 3)
    assert not refitter.set_dynamic_range("nobody", (-1, 1))
    assert refitter.set_dynamic_range("x", (-5, 4))
    assert refitter.set_weights("conv", ROLE.KERNEL, FIRST.kernel * 2)
    assert refitter.refit_cuda_engine(), logger.text()
    want = built(replace(FIRST, kernel=FIRST.kernel * 2), logger, *flags, amax=5)
    np.testing.assert_array_equal(run(context_of(engine)), run(context_of(want)))


def test_weights_with_names() -> None:
    """tensorrt-features.md#2.19 and 14.3."""
    logger = CollectingLogger()
    builder, network = trt.Builder(logger), new_network(logger)
    kernel, offset = trt.Weights(numbers(5, 3)), trt.Weights(numbers(1, 5, 1, 1))
    x = network.add_input("x", trt.float32, (1, 3, 1, 1))
    dense = network.add_fully_connected(x, 5, kernel, np.zeros(0, np.float32)).get_output(0)
    moved = network.add_constant((1, 5, 1, 1), offset).get_output(0)
    total = network.add_elementwise(dense, moved, trt.ElementWiseOperation.SUM).get_output(0)
    network.mark_output(total)
    assert network.set_weights_name(kernel, "dense/kernel_1")
    assert network.set_weights_name(offset, "offset")
    config = builder.create_builder_config()
    config.target = "cpu"
    config.set_flag(trt.BuilderFlag.REFIT)
    engine = trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config) or b"")
    assert engine is not None, logger.text()
    refitter = trt.Refitter(engine, logger)
    assert set(refitter.get_all_weights()) == {"dense/kernel_1", "offset"}
    assert refitter.set_named_weights("dense/kernel_1", np.ones((5, 3), np.float32))
    assert refitter.refit_cuda_engine()
    given, found = np.ones((1, 3, 1, 1), np.float32), np.empty((1, 5, 1, 1), np.float32)
    assert engine.create_execution_context().execute_v2([given.ctypes.data, found.ctypes.data])
    np.testing.assert_allclose(found, 3 + offset.numpy(), rtol=1e-6)


def quantized_network(logger: CollectingLogger) -> trt.ICudaEngine:
    """x in bytes of a step of 0.5, and back."""
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (4,))
    scale = network.add_constant((), np.array(0.5, np.float32))
    scale.name = "step"
    codes = network.add_quantize(x, scale.get_output(0)).get_output(0)
    network.mark_output(network.add_dequantize(codes, scale.get_output(0)).get_output(0))
    config = trt.Builder(logger).create_builder_config()
    config.target = "cpu"
    config.set_flag(trt.BuilderFlag.INT8)
    config.set_flag(trt.BuilderFlag.REFIT)
    return engine_of(network, config, logger)


@pytest.mark.parametrize("scale", [0.0, -0.3, np.nan, np.inf])
def test_scales_stay_positive_14_9(scale: float) -> None:
    """What no byte can stand for is refused, and the engine stays as it was; another scale is taken."""
    logger = CollectingLogger()
    engine = quantized_network(logger)
    refitter, given = trt.Refitter(engine, logger), np.array([1, 1.3, -7, 200], np.float32)
    before = engine.engine.run({"x": given})
    assert not refitter.set_weights("step", ROLE.CONSTANT, np.array([scale], np.float32))
    assert "step: CONSTANT: expected scales greater than 0 for layer (Unnamed Layer*" in logger.text()
    assert f"got {scale:g}; the engine keeps those that it has" in logger.text()
    assert refitter.refit_cuda_engine()
    (now,), (first,) = engine.engine.run({"x": given}).values(), before.values()
    np.testing.assert_array_equal(now, first)
    assert refitter.set_weights("step", ROLE.CONSTANT, np.array([0.25], np.float32))
    assert refitter.refit_cuda_engine()
    (found,) = engine.engine.run({"x": given}).values()
    np.testing.assert_array_equal(found, [1, 1.25, -7, 31.75])


def moved_bytes(logger: CollectingLogger) -> trt.ICudaEngine:
    """Bytes of a step of 0.5, as numbers transposed, and bytes again; each layer has a scale of its own."""
    network = new_network(logger)
    tensor: trt.ITensor = network.add_input("x", trt.float32, (2, 2))
    for name in ("first", "second", "third", "fourth"):
        scale = network.add_constant((), np.array(0.5, np.float32))
        scale.name = name
        add = network.add_quantize if name in ("first", "third") else network.add_dequantize
        tensor = add(tensor, scale.get_output(0)).get_output(0)
        if name == "second":
            transposed = network.add_shuffle(tensor)
            transposed.first_transpose = (1, 0)
            tensor = transposed.get_output(0)
    network.mark_output(tensor)
    config = trt.Builder(logger).create_builder_config()
    config.target = "cpu"
    config.set_flag(trt.BuilderFlag.INT8)
    config.set_flag(trt.BuilderFlag.REFIT)
    return engine_of(network, config, logger)


def test_scales_that_were_compared_stay_equal_10_18(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them alone is refused and the engine stays as it was; all of them are taken, and so is one on request."""
    logger, given = CollectingLogger(), np.array([[1, 1.3], [-7, 200]], np.float32)
    engine = moved_bytes(logger)
    refitter = trt.Refitter(engine, logger)

    def outputs() -> list[list[float]]:
        return next(iter(engine.engine.run({"x": given}).values())).tolist()

    before = outputs()
    assert before == [[1, -7], [1.5, 63.5]]
    assert refitter.set_weights("third", ROLE.CONSTANT, np.array([0.25], np.float32))
    assert not refitter.refit_cuda_engine()
    assert "were equal when the engine was built" in logger.text()
    assert "expected equal ones, got 0.5 and 0.25; set both" in logger.text()
    assert outputs() == before
    for name in ("first", "second", "fourth"):
        assert refitter.set_weights(name, ROLE.CONSTANT, np.array([0.25], np.float32))
    assert refitter.refit_cuda_engine()
    assert outputs() == [[1, -7], [1.25, 31.75]]
    monkeypatch.setenv("MLIRT_BEYOND_TENSORRT", "1")
    wide = trt.Refitter(engine, logger)
    assert wide.set_weights("fourth", ROLE.CONSTANT, np.array([0.5], np.float32))
    assert wide.refit_cuda_engine()
    assert outputs() == [[2, -14], [2.5, 63.5]]


def test_ranges_stay_finite_14_8() -> None:
    logger = CollectingLogger()
    engine = built(FIRST, logger, trt.BuilderFlag.REFIT, trt.BuilderFlag.INT8, amax=3)
    refitter = trt.Refitter(engine, logger)
    for limits in ((-np.inf, np.inf), (np.nan, np.nan), (0.0, 0.0), (1.0, -1.0)):
        assert not refitter.set_dynamic_range("x", limits)
    assert refitter.get_dynamic_range("x") == (-3, 3)
