"""Rows of A3, A28 and A29: settings are kept as they are made, and a build says what it cannot do with them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from layer_networks import Array, CollectingLogger, constant, new_network
from network_engines import built, cpu_config

import mlirt as trt
from mlirt.builder.api.dla_rules import orin_sparsity, why_not_on_dla
from mlirt.dla_formats import pack_for_dla, unpack_from_dla

WARNING = trt.Severity.WARNING


def convolution(network: trt.INetworkDefinition, channels: int = 2) -> trt.IConvolutionLayer:
    """One that is an output, with the name conv1."""
    x = network.add_input("x", trt.float32, (1, channels, 8, 8))
    layer = network.add_convolution_nd(x, 2, (3, 3), np.ones((2, channels, 3, 3), np.float32))
    layer.name = "conv1"
    network.mark_output(layer.get_output(0))
    return layer


def test_the_workspace_is_all_memory() -> None:
    """tensorrt-features.md#3.6: unless it is set."""
    config = cpu_config(CollectingLogger())
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) > 1 << 30
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 5)
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == 5


def products() -> tuple[trt.INetworkDefinition, dict[str, Array]]:
    """A product whose quick tactic packs a factor, of 300 KB, into memory beside the tensors; and its inputs."""
    network = new_network()
    a, b = network.add_input("a", trt.float32, (64, 256)), network.add_input("b", trt.float32, (256, 300))
    layer = network.add_matrix_multiply(a, trt.MatrixOperation.NONE, b, trt.MatrixOperation.NONE)
    layer.name, layer.get_output(0).name = "product", "y"
    network.mark_output(layer.get_output(0))
    draw = np.random.default_rng(4)
    return network, {name: draw.integers(-4, 5, shape).astype(np.float32) for name, shape in _PRODUCT.items()}


_PRODUCT = {"a": (64, 256), "b": (256, 300)}


def test_a_workspace_that_is_too_small() -> None:
    """tensorrt-features.md#3.6: without memory beside its tensors a layer gets another tactic, which the log says, and
    the context needs less memory; where there is no other, the build names the layer and what it needs.
    """
    insufficient = "Some tactics do not have sufficient workspace memory to run."
    tactics: list[str] = []
    sizes: list[int] = []
    for limit in (None, 1 << 22, 0):
        logger = CollectingLogger()
        network, feeds = products()
        config = cpu_config(logger)
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
        if limit is not None:
            config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, limit)
        engine = built(network, config, logger)
        assert (insufficient in logger.text(trt.Severity.INFO)) == (limit == 0)
        text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
        tactics += [layer["TacticName"] for layer in json.loads(text)["Layers"]]
        sizes.append(engine.device_memory_size)
        np.testing.assert_array_equal(engine.engine.run(feeds)["y"], feeds["a"] @ feeds["b"])
    assert tactics[0] == tactics[1] != tactics[2]
    assert sizes[0] == sizes[1] > sizes[2]
    logger = CollectingLogger()
    network, config = new_network(logger), cpu_config(logger)
    convolution(network, 64).padding_nd = (1, 1)
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 0)
    assert trt.Builder(logger).build_serialized_network(network, config) is None
    assert "could not find any implementation for node conv1: the smallest workspace of" in logger.text()


@pytest.mark.parametrize(
    ("pool", "usual"), [("DLA_MANAGED_SRAM", 1 << 20), ("DLA_LOCAL_DRAM", 1 << 30), ("DLA_GLOBAL_DRAM", 1 << 29)]
)
def test_pools_of_a_dla(pool: str, usual: int) -> None:
    """tensorrt-features.md#3.7, 29.8: powers of two from 4 KiB on; another size is refused and changes nothing."""
    logger = CollectingLogger()
    config, kind = cpu_config(logger), trt.MemoryPoolType[pool]
    assert config.get_memory_pool_limit(kind) == usual
    config.set_memory_pool_limit(kind, 4096)
    for size in (2048, 5000, 0):
        config.set_memory_pool_limit(kind, size)
        assert f"MemoryPoolType.{pool}: expected a power of two from 4096 on, got {size}" in logger.text()
    assert config.get_memory_pool_limit(kind) == 4096


def test_deprecated_settings_warn() -> None:
    """tensorrt-features.md#3.18."""
    logger = CollectingLogger()
    network, config = new_network(logger), cpu_config(logger)
    convolution(network)
    engine = built(network, config, logger)
    with pytest.warns(DeprecationWarning, match="Use avg_timing_iterations instead"):
        config.min_timing_iterations = 2
    with pytest.warns(DeprecationWarning, match="Use the batch dimension of the inputs instead"):
        assert engine.max_batch_size == 1
    with pytest.warns(DeprecationWarning, match="Use the shapes of the inputs instead"):
        assert not engine.has_implicit_batch_dimension


def test_deprecated_parts_of_networks_warn() -> None:
    """tensorrt-features.md#3.18: each names what stands for it."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (1, 3, 4, 4))
    with pytest.warns(DeprecationWarning, match="Use quantize layers instead"):
        assert not network.has_explicit_precision
    with pytest.warns(DeprecationWarning, match="Use add_matrix_multiply instead"):
        network.mark_output(network.add_fully_connected(x, 2, np.ones((2, 48), np.float32)).get_output(0))
    resize = network.add_resize(x)
    with pytest.warns(DeprecationWarning, match="Use coordinate_transformation instead"):
        resize.align_corners = True
    assert resize.coordinate_transformation is trt.ResizeCoordinateTransformation.ALIGN_CORNERS
    with pytest.warns(DeprecationWarning, match="Use coordinate_transformation instead"):
        assert resize.align_corners
    context = built(network, cpu_config(logger), logger).create_execution_context()
    with pytest.warns(DeprecationWarning, match="Use execute_v2 instead"):
        context.execute(1, [0, 0])
    with pytest.warns(DeprecationWarning, match="Use execute_async_v2 instead"):
        context.execute_async(1, [0, 0], 0)


def test_strict_types() -> None:
    """tensorrt-features.md#3.5: preferences, direct inputs and outputs where they can be had, and else a warning."""
    logger = CollectingLogger()
    network, config = new_network(logger), cpu_config(logger, trt.BuilderFlag.STRICT_TYPES)
    convolution(network).precision = trt.float16
    network.get_input(0).dtype = trt.float16
    network.get_input(0).allowed_formats = 1 << int(trt.TensorFormat.HWC8)
    built(network, config, logger)
    assert "conv1: precision HALF is set, but BuilderFlag.FP16 is not" in logger.text(WARNING)
    assert "STRICT_TYPES: built without direct inputs and outputs: " in logger.text(WARNING)
    config.set_flag(trt.BuilderFlag.DIRECT_IO)
    assert trt.Builder(logger).build_serialized_network(network, config) is None


def test_safety_is_kept_and_refused_by_the_build() -> None:
    """tensorrt-features.md#3.4, 3.9, 28.4: nothing here is certified."""
    for capability, text in (("SAFETY", "no engine here is certified"), ("DLA_STANDALONE", "there is no DLA compiler")):
        logger = CollectingLogger()
        network, config = new_network(logger), cpu_config(logger)
        convolution(network)
        config.engine_capability = trt.EngineCapability[capability]
        assert trt.Builder(logger).build_serialized_network(network, config) is None
        assert f"EngineCapability.{capability}: " in logger.text()
        assert text in logger.text()


def test_the_scope_of_safety() -> None:
    """tensorrt-features.md#28.4: layers outside of it are named; a convolution is inside."""
    logger = CollectingLogger()
    network, config = new_network(logger), cpu_config(logger, trt.BuilderFlag.SAFETY_SCOPE)
    convolution(network)
    built(network, config, logger)
    network.add_shape(network.get_input(0)).name = "lengths"
    assert trt.Builder(logger).build_serialized_network(network, config) is None
    assert "lengths: layers of the kind SHAPE are outside of BuilderFlag.SAFETY_SCOPE" in logger.text()


def test_devices_of_layers() -> None:
    """tensorrt-features.md#29.2: set, read, reset, and the default."""
    network, config = new_network(), cpu_config(CollectingLogger())
    layer = convolution(network)
    assert (config.get_device_type(layer), config.is_device_type_set(layer)) == (trt.DeviceType.GPU, False)
    config.set_device_type(network.get_layer(0), trt.DeviceType.GPU)
    config.default_device_type = trt.DeviceType.DLA
    assert (config.get_device_type(layer), config.is_device_type_set(layer)) == (trt.DeviceType.GPU, True)
    config.reset_device_type(layer)
    assert (config.get_device_type(layer), config.is_device_type_set(layer)) == (trt.DeviceType.DLA, False)


def test_a_layer_that_no_dla_is_there_for() -> None:
    """tensorrt-features.md#29.4, 31.17: an error that names the layer; with GPU_FALLBACK a warning, and an engine."""
    logger = CollectingLogger()
    network, config = new_network(logger), cpu_config(logger, trt.BuilderFlag.FP16)
    config.set_device_type(convolution(network), trt.DeviceType.DLA)
    assert trt.Builder(logger).build_serialized_network(network, config) is None
    assert "conv1 cannot run on DLA, and BuilderFlag.GPU_FALLBACK is not set: there is no DLA compiler" in logger.text()
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    built(network, config, logger)
    assert "Layer 'conv1' cannot run on DLA, falling back to GPU" in logger.text(WARNING)


def test_what_a_dla_refuses() -> None:
    """tensorrt-features.md#29.5, 29.10: dynamic dimensions, a batch of more than 4096, explicit quantization; a flag is
    needed.
    """
    network, config = new_network(), cpu_config(CollectingLogger(), trt.BuilderFlag.FP16)
    layer = convolution(network)
    assert config.can_run_on_DLA(layer)
    for shape, fits in (((-1, 2, 8, 8), False), ((4096, 2, 8, 8), True), ((4097, 2, 8, 8), False)):
        network.get_input(0).shape = shape
        assert config.can_run_on_DLA(layer) == fits
    network.get_input(0).shape = (1, 2, 8, 8)
    assert not config.can_run_on_DLA(
        network.add_quantize(network.get_input(0), constant(network, np.array(1, np.float32)))
    )
    config.clear_flag(trt.BuilderFlag.FP16)
    assert not config.can_run_on_DLA(layer)


@pytest.mark.parametrize(
    ("setting", "fits", "too_large"),
    [
        ("kernel_size_nd", (32, 32), (33, 1)),
        ("padding_nd", (31, 31), (32, 0)),
        ("stride_nd", (8, 8), (9, 1)),
        ("dilation_nd", (32, 32), (33, 1)),
        ("num_output_maps", 8192, 8193),
    ],
)
def test_rules_for_convolutions(setting: str, fits: object, too_large: object) -> None:
    """tensorrt-features.md#29.3: the guide's table at its ends."""
    network, config = new_network(), cpu_config(CollectingLogger(), trt.BuilderFlag.INT8)
    layer = convolution(network)
    layer.get_output(0)
    for value, expected in ((fits, True), (too_large, False)):
        network.get_input(0).shape = (1, 2, 1100, 1100)
        setattr(layer, setting, value)
        maps, size = layer.num_output_maps, list(layer.kernel_size_nd or ())
        layer.kernel = np.ones((maps, 2, *size), np.float32)
        assert config.can_run_on_DLA(layer) == expected


def test_rules_for_other_layers() -> None:
    """tensorrt-features.md#29.3: one that fits and one that does not, of each kind."""
    network, config = new_network(), cpu_config(CollectingLogger(), trt.BuilderFlag.FP16)
    x = network.add_input("x", trt.float32, (1, 4, 16, 16))

    def pooling(kind: trt.PoolingType, window: int) -> trt.ILayer:
        return network.add_pooling_nd(x, kind, (window, window))

    def clip(alpha: float, beta: float) -> trt.ILayer:
        layer = network.add_activation(x, trt.ActivationType.CLIP)
        layer.alpha, layer.beta = alpha, beta
        return layer

    def concatenation(axis: int) -> trt.ILayer:
        layer = network.add_concatenation([x, x])
        layer.axis = axis
        return layer

    def resize(scales: list[float]) -> trt.ILayer:
        layer = network.add_resize(x)
        layer.scales = scales
        return layer

    def scale(power: float) -> trt.ILayer:
        return network.add_scale(x, trt.ScaleMode.UNIFORM, power=np.array([power], np.float32))

    pairs = [
        (pooling(trt.PoolingType.MAX, 8), pooling(trt.PoolingType.MAX, 9)),
        (pooling(trt.PoolingType.AVERAGE, 2), pooling(trt.PoolingType.MAX_AVERAGE_BLEND, 2)),
        (clip(0, 6), clip(-1, 6)),
        (network.add_activation(x, trt.ActivationType.TANH), network.add_activation(x, trt.ActivationType.ELU)),
        (network.add_lrn(x, 5, 1, 1, 1), network.add_lrn(x, 11, 1, 1, 1)),
        (concatenation(1), concatenation(2)),
        (resize([1, 1, 2, 32]), resize([1, 2, 2, 2])),
        (network.add_unary(x, trt.UnaryOperation.ABS), network.add_unary(x, trt.UnaryOperation.EXP)),
        (
            network.add_elementwise(x, x, trt.ElementWiseOperation.MAX),
            network.add_elementwise(x, x, trt.ElementWiseOperation.POW),
        ),
        (scale(1), scale(2)),
        (
            network.add_slice(x, (0, 0, 0, 0), (1, 4, 8, 8), (1, 1, 1, 1)),
            network.add_non_zero(x),
        ),
        (
            network.add_reduce(x, trt.ReduceOperation.MAX, 0b1110, True),
            network.add_reduce(x, trt.ReduceOperation.SUM, 0b1110, True),
        ),
    ]
    assert [why_not_on_dla(good, config) for good, _ in pairs] == [None] * len(pairs)
    assert [config.can_run_on_DLA(bad) for _, bad in pairs] == [False] * len(pairs)


def test_sparsity_of_orin() -> None:
    """tensorrt-features.md#29.9: INT8, more than 64 channels, at most 256 Ki weights."""
    assert orin_sparsity(128, 128 * 64, 1) is None
    assert orin_sparsity(64, 128 * 64, 1) == "it needs more than 64 input channels"
    assert orin_sparsity(128, 128 * 64, 2) == "structured sparsity is for INT8"
    assert orin_sparsity(128, (256 << 10) + 1, 1) == "it has 262145 weights, more than 262144"


@pytest.mark.parametrize(
    ("shape", "dtype", "format", "stored"),
    [
        ((2, 5, 3, 7), "float16", "DLA_LINEAR", (2, 5, 3, 32)),
        ((1, 2, 3, 65), "int8", "DLA_LINEAR", (1, 2, 3, 128)),
        ((2, 3, 4, 5), "float16", "DLA_HWC4", (2, 4, 8, 4)),
        ((1, 4, 2, 9), "int8", "DLA_HWC4", (1, 2, 16, 4)),
        ((1, 1, 2, 9), "int8", "DLA_HWC4", (1, 2, 32, 1)),
    ],
)
def test_formats_of_a_dla(shape: tuple[int, ...], dtype: str, format: str, stored: tuple[int, ...]) -> None:
    """tensorrt-features.md#29.7: each element where TensorRT's header puts it, zeros beside them, and back again."""
    x = np.random.default_rng(0).integers(1, 100, shape).astype(dtype)
    packed = pack_for_dla(x, format)
    assert packed.shape == stored
    for n, c, h, w in np.ndindex(*shape):
        assert packed[(n, c, h, w) if format == "DLA_LINEAR" else (n, h, w, c)] == x[n, c, h, w]
    assert np.count_nonzero(packed) == x.size
    np.testing.assert_array_equal(unpack_from_dla(packed, format, shape), x)


def test_what_formats_of_a_dla_cannot_hold() -> None:
    """tensorrt-features.md#29.7."""
    x = np.ones((1, 5, 2, 2), np.float16)
    with pytest.raises(ValueError, match="DLA_HWC4 is for 1, 3 or 4 channels, not for 5"):
        pack_for_dla(x, "DLA_HWC4")
    with pytest.raises(ValueError, match="DLA_LINEAR is for float16 and int8, not for float32"):
        pack_for_dla(x.astype(np.float32), "DLA_LINEAR")


def test_there_are_no_loadables() -> None:
    """tensorrt-features.md#29.6: a build for them alone says why not; so does a runtime that is asked for a core."""
    logger = CollectingLogger()
    network = new_network(logger)
    convolution(network, 8)
    config = cpu_config(logger, trt.BuilderFlag.FP16)
    config.engine_capability = trt.EngineCapability.DLA_STANDALONE
    config.default_device_type = trt.DeviceType.DLA
    assert trt.Builder(logger).build_serialized_network(network, config) is None
    assert "EngineCapability.DLA_STANDALONE: there is no DLA compiler in this implementation" in logger.text()
    runtime = trt.Runtime(logger)
    runtime.DLA_core = 0
    assert (runtime.DLA_core, runtime.num_DLA_cores) == (-1, 0)
    assert "there is no DLA" in logger.text().splitlines()[-1]
    assert trt.EngineCapability.SAFE_DLA == trt.EngineCapability.DLA_STANDALONE
