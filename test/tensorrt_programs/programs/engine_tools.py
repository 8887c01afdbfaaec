"""Programs with the refitter, timing caches, selectors, inspectors, profilers, recorders, loggers and allocators."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import json

import numpy as np
import pycuda.driver as cuda
import tensorrt as trt
from engine_runs import Build, Log, infer, main, numbers, same

W, X = numbers(4, 3, 3, 3, seed=1), numbers(1, 3, 8, 8)


def _network(refit=False):
    """A convolution `conv`, RELU `relu` and a softmax `soft` over the channels."""
    b = Build()
    if refit:
        b.config.set_flag(trt.BuilderFlag.REFIT)
    x = b.network.add_input("x", trt.float32, X.shape)
    conv = b.network.add_convolution_nd(x, 4, (3, 3), W, np.zeros(4, np.float32))
    relu = b.network.add_activation(conv.get_output(0), trt.ActivationType.RELU)
    soft = b.network.add_softmax(relu.get_output(0))
    conv.name, relu.name, soft.name = "conv", "relu", "soft"
    soft.get_output(0).name = "y"
    b.network.mark_output(soft.get_output(0))
    return b


def _wanted(w, bias):
    y = np.zeros((1, 4, 6, 6))
    for i in range(3):
        for j in range(3):
            y += np.einsum("nchw,kc->nkhw", X[:, :, i : i + 6, j : j + 6], w[:, :, i, j])
    e = np.exp(np.maximum(y + bias[:, None, None], 0))
    return e / e.sum(1, keepdims=True)


def refit_changes_weights():
    b = _network(refit=True)
    engine = b.engine()
    assert engine.refittable
    same(infer(engine, x=X)[0], _wanted(W, np.zeros(4)), 1e-4, 1e-5)
    refitter = trt.Refitter(engine, b.log)
    layers, roles = refitter.get_all()
    assert set(zip(layers, roles)) == {("conv", trt.WeightsRole.KERNEL), ("conv", trt.WeightsRole.BIAS)}
    w, bias = numbers(4, 3, 3, 3, seed=5), numbers(4, seed=6)
    assert not refitter.set_weights("nothing", trt.WeightsRole.KERNEL, w)
    assert not refitter.set_weights("conv", trt.WeightsRole.KERNEL, w[:2].copy())
    assert refitter.set_weights("conv", trt.WeightsRole.KERNEL, w)
    if refitter.get_missing()[0]:
        assert list(refitter.get_missing()[0]) == ["conv"] and refitter.get_missing()[1] == [trt.WeightsRole.BIAS]
    assert refitter.set_weights("conv", trt.WeightsRole.BIAS, bias)
    assert refitter.refit_cuda_engine()
    same(infer(engine, x=X)[0], _wanted(w, bias), 1e-4, 1e-5)


def refit_by_names():
    b = _network(refit=True)
    conv = b.network.get_layer(0)
    conv.__class__ = trt.IConvolutionLayer
    assert b.network.set_weights_name(conv.kernel, "the_kernel")
    engine = b.engine()
    refitter = trt.Refitter(engine, b.log)
    assert "the_kernel" in refitter.get_all_weights()
    w = numbers(4, 3, 3, 3, seed=8)
    assert refitter.set_named_weights("the_kernel", w)
    for name, role in zip(*refitter.get_missing()):
        assert refitter.set_weights(name, role, np.zeros(4, np.float32))
    assert refitter.get_missing_weights() == []
    assert refitter.refit_cuda_engine()
    same(infer(engine, x=X)[0], _wanted(w, np.zeros(4)), 1e-4, 1e-5)


def refit_of_an_engine_that_is_not_refittable():
    b = _network()
    engine = b.engine()
    assert not engine.refittable
    try:
        refitter = trt.Refitter(engine, b.log)
    except (TypeError, ValueError, RuntimeError):
        return
    assert not refitter.set_weights("conv", trt.WeightsRole.KERNEL, W) or not refitter.refit_cuda_engine()
    assert b.log.errors()


def timing_cache_is_reused():
    b = _network()
    cache = b.config.create_timing_cache(b"")
    assert b.config.set_timing_cache(cache, ignore_mismatch=False)
    b.engine()
    blob = b.config.get_timing_cache().serialize()
    assert blob.nbytes > 0 and len(bytes(blob)) == blob.nbytes
    again = _network()
    other = again.config.create_timing_cache(bytes(blob))
    assert again.config.set_timing_cache(other, ignore_mismatch=False)
    again.engine()
    same_bytes = again.config.get_timing_cache().serialize()
    assert same_bytes.nbytes == blob.nbytes
    third = again.config.create_timing_cache(b"")
    assert third.combine(other, ignore_mismatch=False) and third.serialize().nbytes == blob.nbytes
    assert third.reset()


def algorithm_selector_replays():
    chosen = {}

    class Record(trt.IAlgorithmSelector):
        def __init__(self):
            trt.IAlgorithmSelector.__init__(self)

        def select_algorithms(self, context, choices):
            assert context.num_inputs >= 1 and context.num_outputs >= 1 and len(choices) > 0
            assert len(context.get_shape(0)) == 3
            return list(range(len(choices)))

        def report_algorithms(self, contexts, choices):
            for context, choice in zip(contexts, choices):
                info = choice.get_algorithm_io_info(0)
                assert info.dtype == trt.float32 and len(info.strides) > 0, (info.dtype, info.strides)
                variant = choice.algorithm_variant
                chosen[context.name] = (variant.implementation, variant.tactic)

    class Replay(trt.IAlgorithmSelector):
        def __init__(self):
            trt.IAlgorithmSelector.__init__(self)
            self.reported = {}

        def select_algorithms(self, context, choices):
            def key(choice):
                return choice.algorithm_variant.implementation, choice.algorithm_variant.tactic

            return [i for i, choice in enumerate(choices) if key(choice) == chosen[context.name]]

        def report_algorithms(self, contexts, choices):
            for c, a in zip(contexts, choices):
                self.reported[c.name] = (a.algorithm_variant.implementation, a.algorithm_variant.tactic)

    b = _network()
    b.config.algorithm_selector = Record()
    b.engine()
    assert chosen
    again = _network()
    replay = again.config.algorithm_selector = Replay()
    same(infer(again.engine(), x=X)[0], _wanted(W, np.zeros(4)), 1e-4, 1e-5)
    assert replay.reported == chosen


def algorithm_selector_where_results_lie_in_another():
    """Transposed negations become the planes of one tensor, into which they are written where they lie."""

    class All(trt.IAlgorithmSelector):
        def __init__(self):
            trt.IAlgorithmSelector.__init__(self)

        def select_algorithms(self, context, choices):
            return list(range(len(choices)))

        def report_algorithms(self, contexts, choices):
            assert len(contexts) == len(choices) > 0

    b = Build()
    given = {name: numbers(1, 32, 24, seed=i) for i, name in enumerate("xz")}
    planes = []
    for name, value in given.items():
        t = b.network.add_input(name, trt.float32, value.shape)
        shuffle = b.network.add_shuffle(b.network.add_unary(t, trt.UnaryOperation.NEG).get_output(0))
        shuffle.first_transpose, shuffle.reshape_dims = (0, 2, 1), (1, 24, 32, 1)
        planes.append(shuffle.get_output(0))
    joined = b.network.add_concatenation(planes)
    joined.axis = 3
    b.config.algorithm_selector = All()
    wanted = np.stack([-value.transpose(0, 2, 1) for value in given.values()], -1)
    same(b.run(joined.get_output(0), **given), wanted)


def algorithm_selector_that_rejects_all():
    class Nothing(trt.IAlgorithmSelector):
        def __init__(self):
            trt.IAlgorithmSelector.__init__(self)

        def select_algorithms(self, context, choices):
            return []

        def report_algorithms(self, contexts, choices):
            pass

    b = _network()
    b.config.algorithm_selector = Nothing()
    b.config.set_flag(trt.BuilderFlag.REJECT_EMPTY_ALGORITHMS)
    assert b.refused()


def inspector_of_details():
    b = _network()
    b.config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = b.engine()
    assert engine.profiling_verbosity == trt.ProfilingVerbosity.DETAILED
    inspector = engine.create_engine_inspector()
    graph = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
    assert graph["Bindings"] == ["x", "y"] and len(graph["Layers"]) == engine.num_layers
    for i, layer in enumerate(graph["Layers"]):
        assert {"Name", "LayerType", "Inputs", "Outputs", "TacticValue"} <= set(layer), layer
        for tensor in (*layer["Inputs"], *layer["Outputs"]):
            assert {"Name", "Dimensions", "Format/Datatype"} <= set(tensor), tensor
        assert json.loads(inspector.get_layer_information(i, trt.LayerInformationFormat.JSON))["Name"] == layer["Name"]
    first = next(layer for layer in graph["Layers"] if "conv" in layer["Name"])
    assert first["LayerType"].startswith("CaskConvolution") or "Convolution" in first["ParameterType"], first
    assert first["Kernel"] == [3, 3] and first["Groups"] == 1 and first["OutMaps"] == 4, first
    assert first["Weights"]["Count"] == 108 and first["Weights"]["Type"] == "Float", first["Weights"]
    assert "conv" in inspector.get_layer_information(0, trt.LayerInformationFormat.ONELINE)


def inspector_of_names_and_nothing():
    b = _network()
    engine = b.engine()
    graph = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    assert all(isinstance(layer, str) for layer in graph["Layers"]) and any("conv" in la for la in graph["Layers"])
    b = _network()
    b.config.profiling_verbosity = trt.ProfilingVerbosity.NONE
    text = b.engine().create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    assert "conv" not in text


def profiler_reports_each_layer():
    class Times(trt.IProfiler):
        def __init__(self):
            trt.IProfiler.__init__(self)
            self.seen = []

        def report_layer_time(self, layer_name, ms):
            assert ms >= 0
            self.seen.append(layer_name)

    engine = _network().engine()
    context = engine.create_execution_context()
    profiler = context.profiler = Times()
    infer(engine, context, x=X)
    assert len(profiler.seen) == engine.num_layers and any("conv" in n for n in profiler.seen), profiler.seen
    first = list(profiler.seen)
    profiler.seen.clear()
    context.enqueue_emits_profile = False
    infer(engine, context, x=X)
    assert profiler.seen == []
    assert context.report_to_profiler() and profiler.seen == first


class _Recorder(trt.IErrorRecorder):
    def __init__(self):
        trt.IErrorRecorder.__init__(self)
        self.errors = []

    def num_errors(self):
        return len(self.errors)

    def get_error_code(self, i):
        return self.errors[i][0]

    def get_error_desc(self, i):
        return self.errors[i][1]

    def has_overflowed(self):
        return False

    def clear(self):
        self.errors.clear()

    def report_error(self, code, desc):
        self.errors.append((code, desc))


def error_recorder_of_the_runtime():
    log, recorder = Log(), _Recorder()
    runtime = trt.Runtime(log)
    runtime.error_recorder = recorder
    assert runtime.error_recorder is recorder
    assert runtime.deserialize_cuda_engine(b"this is no plan") is None
    assert recorder.num_errors() > 0 and isinstance(recorder.get_error_code(0), trt.ErrorCodeTRT)
    assert recorder.get_error_desc(0)


def error_recorder_of_the_context():
    recorder, own = _Recorder(), _Recorder()
    b = _network()
    engine = b.engine()
    engine.error_recorder = recorder
    context = engine.create_execution_context()
    context.error_recorder = own
    assert not context.execute_async_v3(cuda.Stream().handle)
    assert own.num_errors() > 0 and recorder.num_errors() == 0


def logger_prints_its_severities():
    logger = trt.Logger(trt.Logger.WARNING)
    assert logger.min_severity == trt.Logger.WARNING
    logger.min_severity = trt.Logger.VERBOSE
    assert logger.min_severity == trt.Logger.Severity.VERBOSE
    names = ("INTERNAL_ERROR", "ERROR", "WARNING", "INFO", "VERBOSE")
    assert [int(getattr(trt.Logger, n)) for n in names] == [0, 1, 2, 3, 4]
    b = _network()
    b.engine()
    assert b.log.text(trt.ILogger.INFO) and b.log.text(trt.ILogger.VERBOSE)
    assert "Total Host Persistent Memory" in b.log.text(trt.ILogger.INFO)
    assert "[MemUsageChange]" in b.log.text(trt.ILogger.INFO)


def tactic_sources_mask():
    b = _network()
    every = b.config.get_tactic_sources()
    assert every & (1 << int(trt.TacticSource.EDGE_MASK_CONVOLUTIONS))
    few = every & ~(1 << int(trt.TacticSource.CUDNN))
    assert b.config.set_tactic_sources(few) and b.config.get_tactic_sources() == few
    engine = b.engine()
    assert engine.tactic_sources & ~few == 0
    same(infer(engine, x=X)[0], _wanted(W, np.zeros(4)), 1e-4, 1e-5)


def allocator_of_the_runtime():
    class Allocator(trt.IGpuAllocator):
        def __init__(self):
            trt.IGpuAllocator.__init__(self)
            self.held, self.calls = {}, 0

        def allocate(self, size, alignment, flags):
            self.calls += 1
            memory = cuda.mem_alloc(size)
            self.held[int(memory)] = memory
            return int(memory)

        def deallocate(self, memory):
            return self.held.pop(memory, None) is not None

        def free(self, memory):
            return self.deallocate(memory)

        def reallocate(self, address, alignment, new_size):
            return None

    b = _network()
    plan = b.builder.build_serialized_network(b.network, b.config)
    runtime = trt.Runtime(b.log)
    allocator = runtime.gpu_allocator = Allocator()
    engine = runtime.deserialize_cuda_engine(plan)
    same(infer(engine, x=X)[0], _wanted(W, np.zeros(4)), 1e-4, 1e-5)
    assert allocator.calls > 0


def plans_are_bytes_and_are_checked():
    b = _network()
    plan = b.builder.build_serialized_network(b.network, b.config)
    assert isinstance(plan, trt.IHostMemory) and plan.nbytes == len(bytes(plan)) == len(memoryview(plan))
    with open("/dev/null", "wb") as file:
        file.write(plan)
    runtime = trt.Runtime(b.log)
    engine = runtime.deserialize_cuda_engine(plan)
    again = runtime.deserialize_cuda_engine(bytes(engine.serialize()))
    np.testing.assert_array_equal(infer(engine, x=X)[0], infer(again, x=X)[0])
    data = bytes(plan)
    for bad in (b"", data[:40], data[: len(data) // 2]):
        assert runtime.deserialize_cuda_engine(bad) is None
    try:
        runtime.deserialize_cuda_engine(None)
    except TypeError as error:
        assert "incompatible function arguments" in str(error)
    else:
        raise AssertionError("None is no plan")


def engine_outlives_its_makers():
    import gc

    b = _network()
    engine = b.engine()
    del b
    gc.collect()
    same(infer(engine, x=X)[0], _wanted(W, np.zeros(4)), 1e-4, 1e-5)


def dla_falls_back_or_refuses():
    b = _network()
    assert b.builder.num_DLA_cores == 0
    b.config.default_device_type = trt.DeviceType.DLA
    b.config.set_flag(trt.BuilderFlag.FP16)
    assert "DLA" in b.refused()
    b = _network()
    b.config.default_device_type = trt.DeviceType.DLA
    b.config.set_flag(trt.BuilderFlag.FP16)
    b.config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    layer = b.network.get_layer(0)
    assert b.config.get_device_type(layer) == trt.DeviceType.DLA and not b.config.is_device_type_set(layer)
    b.config.set_device_type(layer, trt.DeviceType.GPU)
    assert b.config.is_device_type_set(layer)
    b.config.reset_device_type(layer)
    assert not b.config.is_device_type_set(layer)
    same(infer(b.engine(), x=X)[0], _wanted(W, np.zeros(4)), 2e-2, 2e-3)
    assert "DLA" in b.log.text(trt.ILogger.WARNING)


def safety_is_refused_with_a_reason():
    b = _network()
    b.config.engine_capability = trt.EngineCapability.SAFETY
    assert b.config.engine_capability == trt.EngineCapability.SAFETY == trt.EngineCapability.SAFE_GPU
    plan = b.builder.build_serialized_network(b.network, b.config)
    assert plan is not None or "afety" in b.log.errors() or "SAFETY" in b.log.errors()


if __name__ == "__main__":
    main(globals())
