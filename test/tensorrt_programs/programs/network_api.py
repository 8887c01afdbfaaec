"""Programs that ask a network, its tensors, the builder and its configuration for what they hold."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import warnings

import numpy as np
import tensorrt as trt
from engine_runs import EXPLICIT, Build, infer, main, numbers, same


def tensors_of_a_network():
    b = Build()
    assert not b.network.has_implicit_batch_dimension
    x = b.network.add_input("x", trt.float32, (1, 3, 4, 5))
    assert (x.name, x.dtype, tuple(x.shape), x.is_network_input, x.is_network_output) == (
        "x", trt.float32, (1, 3, 4, 5), True, False)  # fmt: skip
    assert x.location == trt.TensorLocation.DEVICE and x.is_execution_tensor and not x.is_shape_tensor
    assert x.allowed_formats == (1 << len(trt.TensorFormat.__members__)) - 1 or x.allowed_formats > 0
    x.allowed_formats = 1 << int(trt.TensorFormat.LINEAR)
    assert x.allowed_formats == 1
    layer = b.network.add_identity(x)
    y = layer.get_output(0)
    assert y.name == "(Unnamed Layer* 0) [Identity]_output" and layer.get_output(1) is None
    y.name = "y"
    b.network.mark_output(y)
    assert y.is_network_output and b.network.num_outputs == 1 and b.network.get_output(0).name == "y"
    b.network.unmark_output(y)
    assert b.network.num_outputs == 0 and b.network.num_inputs == 1 and b.network.num_layers == 1
    assert len(b.network) == 1 and b.network[-1].type == trt.LayerType.IDENTITY
    assert [la.name for la in b.network] == ["(Unnamed Layer* 0) [Identity]"]


def network_without_outputs():
    b = Build()
    b.network.add_input("x", trt.float32, (1,))
    assert "at least one output" in b.refused()


def inputs_of_one_name():
    b = Build()
    assert b.network.add_input("x", trt.float32, (1,)) is not None
    again = b.network.add_input("x", trt.float32, (1,))
    assert again is None and b.log.errors()


def names_of_network_and_engine():
    b = Build()
    b.network.name = "a name"
    x = b.network.add_input("x", trt.float32, (1,))
    engine = b.engine(b.network.add_identity(x).get_output(0))
    assert b.network.name == "a name" and engine.name == "a name"
    context = engine.create_execution_context()
    context.name = "mine"
    assert context.name == "mine" and context.engine is engine


def layers_by_their_classes():
    b = Build()
    x = b.network.add_input("x", trt.float32, (1, 3, 8, 8))
    b.network.add_convolution_nd(x, 4, (3, 3), numbers(4, 3, 3, 3))
    layer = b.network.get_layer(0)
    assert layer.type == trt.LayerType.CONVOLUTION
    layer.__class__ = trt.IConvolutionLayer
    layer.stride_nd = (2, 2)
    assert tuple(layer.get_output(0).shape) == (1, 4, 3, 3) and tuple(layer.stride_nd) == (2, 2)
    assert layer.get_input(0).name == "x" and layer.num_inputs == 1


def layer_precisions():
    b = Build()
    b.config.set_flag(trt.BuilderFlag.FP16)
    b.config.set_flag(trt.BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
    x = b.network.add_input("x", trt.float32, (1, 64))
    layer = b.network.add_activation(x, trt.ActivationType.SIGMOID)
    assert not layer.precision_is_set and not layer.output_type_is_set(0)
    layer.precision = trt.float16
    layer.set_output_type(0, trt.float32)
    assert layer.precision == trt.float16 and layer.precision_is_set and layer.get_output_type(0) == trt.float32
    given = numbers(1, 64)
    found = b.run(layer.get_output(0), x=given)
    exact = 1 / (1 + np.exp(-given.astype(np.float64)))
    assert found.dtype == np.float32 and np.abs(found - exact).max() < 2e-3
    layer.reset_precision()
    layer.reset_output_type(0)
    assert not layer.precision_is_set and not layer.output_type_is_set(0)


def half_inputs_and_outputs():
    b = Build()
    b.config.set_flag(trt.BuilderFlag.FP16)
    x = b.network.add_input("x", trt.float16, (2, 3))
    y = b.network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
    assert y.dtype == trt.float16
    given = numbers(2, 3).astype(np.float16)
    found = b.run(y, x=given)
    assert found.dtype == np.float16
    same(found, given * np.float16(2))


def dims_behave_as_tuples():
    d = trt.Dims((1, 3, 4, 5))
    assert str(d) == "(1, 3, 4, 5)" and len(d) == 4 and d[1] == 3 and d == (1, 3, 4, 5) and tuple(d[1:]) == (3, 4, 5)
    assert trt.Dims.MAX_DIMS == 8
    d[1] = 7
    assert d == trt.Dims([1, 7, 4, 5]) and d.numel() == 140 if hasattr(d, "numel") else True
    hw = trt.DimsHW(2, 3)
    assert (hw.h, hw.w) == (2, 3) and tuple(hw) == (2, 3)
    assert tuple(trt.Dims4(1, 2, 3, 4)) == (1, 2, 3, 4) and tuple(trt.Dims3((1, 2, 3))) == (1, 2, 3)
    assert tuple(trt.Permutation([1, 0])) == (1, 0)
    assert trt.volume((2, 3, 4)) == 24 and trt.volume(()) == 1


def weights_of_arrays():
    a = np.arange(6, dtype=np.float16)
    w = trt.Weights(a)
    assert w.size == 6 and w.nbytes == 12 and w.dtype == trt.float16 and len(w) == 6
    np.testing.assert_array_equal(w.numpy(), a)
    empty = trt.Weights(trt.float32)
    assert empty.size == 0 and empty.dtype == trt.float32 and trt.Weights().size == 0


def types_and_their_aliases():
    assert trt.DataType.FLOAT == trt.float32 and trt.DataType.HALF == trt.float16 and trt.DataType.INT8 == trt.int8
    assert trt.DataType.INT32 == trt.int32 and trt.DataType.BOOL == trt.bool and trt.DataType.UINT8 == trt.uint8
    assert [t.itemsize for t in (trt.float32, trt.float16, trt.int8, trt.int32, trt.bool)] == [4, 2, 1, 4, 1]
    pairs = ((trt.float32, np.float32), (trt.float16, np.float16), (trt.int8, np.int8), (trt.int32, np.int32),
             (trt.bool, np.bool_))  # fmt: skip
    assert all(trt.nptype(t) == n for t, n in pairs)
    assert not hasattr(trt, "int64") and trt.__version__ == "8.5.3"
    assert int(trt.DataType.BOOL) == 4 and trt.DataType(3) == trt.int32 and "INT32" in str(trt.int32)
    assert trt.DataType.INT32 != 3


def flags_of_the_configuration():
    c = Build().config
    assert c.get_flag(trt.BuilderFlag.TF32) and c.flags == 1 << int(trt.BuilderFlag.TF32)
    for flag in trt.BuilderFlag.__members__.values():
        if flag == trt.BuilderFlag.TF32:
            continue
        c.set_flag(flag)
        assert c.get_flag(flag) and c.flags & (1 << int(flag))
        c.clear_flag(flag)
        assert not c.get_flag(flag)
    c.clear_flag(trt.BuilderFlag.TF32)
    assert c.flags == 0


def defaults_of_the_configuration():
    c = Build().config
    c.avg_timing_iterations = 4
    assert c.avg_timing_iterations == 4
    assert c.engine_capability == trt.EngineCapability.STANDARD == trt.EngineCapability.DEFAULT
    assert c.profiling_verbosity == trt.ProfilingVerbosity.LAYER_NAMES_ONLY
    assert c.int8_calibrator is None and c.algorithm_selector is None and c.num_optimization_profiles == 0
    assert c.default_device_type == trt.DeviceType.GPU and c.DLA_core == -1 and c.quantization_flags == 0
    assert c.profile_stream == 0
    for feature in (
        trt.PreviewFeature.FASTER_DYNAMIC_SHAPES_0805,
        trt.PreviewFeature.DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805,
    ):
        assert not c.get_preview_feature(feature)
        c.set_preview_feature(feature, True)
        assert c.get_preview_feature(feature)
    assert c.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) > 0
    c.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 20)
    assert c.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == 1 << 20
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert c.max_workspace_size == 1 << 20
    c.set_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    assert c.get_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION) and c.quantization_flags == 1
    c.reset()
    assert c.quantization_flags == 0 and c.get_flag(trt.BuilderFlag.TF32)


def builder_attributes():
    b = Build()
    assert b.builder.max_threads >= 1 and b.builder.logger is b.log and b.builder.max_DLA_batch_size >= 0
    assert isinstance(b.builder.platform_has_tf32, bool) and isinstance(b.builder.platform_has_fast_fp16, bool)
    assert isinstance(b.builder.platform_has_fast_int8, bool) and b.builder.error_recorder is None
    x = b.network.add_input("x", trt.float32, (1,))
    b.network.mark_output(b.network.add_identity(x).get_output(0))
    assert b.builder.is_network_supported(b.network, b.config)
    b.builder.reset()


def builder_is_good_after_a_refusal():
    b = Build()
    b.refused()
    other = b.builder.create_network(EXPLICIT)
    x = other.add_input("x", trt.float32, (2,))
    other.mark_output(other.add_activation(x, trt.ActivationType.RELU).get_output(0))
    plan = b.builder.build_serialized_network(other, b.config)
    engine = trt.Runtime(b.log).deserialize_cuda_engine(plan)
    same(infer(engine, x=np.array([-1, 2], np.float32))[0], [0, 2])


def old_names_of_bindings():
    import pycuda.driver as cuda

    b = Build()
    x = b.network.add_input("x", trt.float32, (2, 3))
    y = b.network.add_activation(x, trt.ActivationType.RELU).get_output(0)
    y.name = "y"
    engine = b.engine(y)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert engine.num_bindings == 2 and engine.max_batch_size == 1 and not engine.has_implicit_batch_dimension
        assert engine["y"] == 1 and engine[0] == "x" and engine.get_binding_index("x") == 0
        assert engine.binding_is_input(0) and not engine.binding_is_input("y") and list(engine) == ["x", "y"]
        assert tuple(engine.get_binding_shape("y")) == (2, 3) and engine.get_binding_dtype(1) == trt.float32
        assert engine.get_location("x") == trt.TensorLocation.DEVICE and engine.get_binding_name(1) == "y"
        assert engine.get_binding_format(0) == trt.TensorFormat.LINEAR
        assert engine.get_binding_vectorized_dim(0) == -1 and engine.get_binding_bytes_per_component(0) in (4, -1)
        assert "Row major linear FP32 format" in engine.get_binding_format_desc(0)
    assert any(issubclass(one.category, DeprecationWarning) for one in seen)
    value, found = numbers(2, 3), np.empty((2, 3), np.float32)
    given, made = cuda.mem_alloc(24), cuda.mem_alloc(24)
    cuda.memcpy_htod(given, value)
    assert engine.create_execution_context().execute_v2(bindings=[int(given), int(made)])
    cuda.memcpy_dtoh(found, made)
    same(found, np.maximum(value, 0))


def formats_of_inputs_and_outputs():
    import pycuda.driver as cuda

    b = Build()
    b.config.set_flag(trt.BuilderFlag.FP16)
    x = b.network.add_input("x", trt.float16, (1, 3, 2, 2))
    x.allowed_formats = 1 << int(trt.TensorFormat.HWC8)
    y = b.network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
    y.name, y.dtype, y.allowed_formats = "y", trt.float16, 1 << int(trt.TensorFormat.LINEAR)
    engine = b.engine(y)
    assert engine.get_tensor_format("x") == trt.TensorFormat.HWC8
    assert engine.get_tensor_components_per_element("x") == 8 and engine.get_tensor_vectorized_dim("x") == 1
    value = numbers(1, 3, 2, 2).astype(np.float16)
    packed = np.zeros((1, 2, 2, 8), np.float16)
    packed[..., :3] = value.transpose(0, 2, 3, 1)
    given, made, found = cuda.mem_alloc(packed.nbytes), cuda.mem_alloc(24), np.empty((1, 3, 2, 2), np.float16)
    cuda.memcpy_htod(given, packed)
    context = engine.create_execution_context()
    context.set_tensor_address("x", int(given))
    context.set_tensor_address("y", int(made))
    stream = cuda.Stream()
    assert context.execute_async_v3(stream.handle)
    stream.synchronize()
    cuda.memcpy_dtoh(found, made)
    same(found, value * np.float16(2))


def too_many_dimensions_and_elements():
    b = Build()
    try:
        b.network.add_input("x", trt.float32, (1,) * 9)
    except ValueError as error:
        assert "9" in str(error) and "8" in str(error)
    else:
        raise AssertionError("there are at most 8")
    x = b.network.add_input("x", trt.float32, (65536, 65536))
    if x is not None:
        b.refused(b.network.add_identity(x).get_output(0))
    assert b.log.errors()


if __name__ == "__main__":
    main(globals())
