"""Programs with contexts: what they know of shapes, names, addresses and memory, and what they refuse."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import gc
import threading

import numpy as np
import pycuda.driver as cuda
import tensorrt as trt
from engine_runs import Build, infer, main, numbers, same


def _engine(shape=(-1, 4), profiles=(((1, 4), (2, 4), (8, 4)),)):
    """y = relu(x) + 1."""
    b = Build()
    x = b.network.add_input("x", trt.float32, shape)
    one = b.network.add_constant((1,) * len(shape), np.ones(1, np.float32)).get_output(0)
    relu = b.network.add_activation(x, trt.ActivationType.RELU).get_output(0)
    y = b.network.add_elementwise(relu, one, trt.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    if -1 in shape:
        for shapes in profiles:
            profile = b.builder.create_optimization_profile()
            profile.set_shape("x", *shapes)
            b.config.add_optimization_profile(profile)
    return b, b.engine(y)


def _wanted(x):
    return np.maximum(x, 0) + 1


def shapes_outside_of_a_profile_are_refused():
    b, engine = _engine()
    context = engine.create_execution_context()
    assert not context.set_input_shape("x", (9, 4))
    assert not context.set_input_shape("x", (2, 5))
    assert not context.set_input_shape("x", (2, 4, 1))
    assert not context.set_input_shape("z", (2, 4))
    assert context.set_input_shape("x", (8, 4))
    assert b.log.errors()


def output_shape_follows_the_input():
    _, engine = _engine()
    context = engine.create_execution_context()
    assert tuple(engine.get_tensor_shape("y")) == (-1, 4)
    for batch in (1, 8, 3):
        assert context.set_input_shape("x", (batch, 4))
        assert tuple(context.get_tensor_shape("y")) == (batch, 4)
        assert tuple(context.get_tensor_shape("x")) == (batch, 4)


def missing_shapes_are_told():
    _, engine = _engine()
    context = engine.create_execution_context()
    assert list(context.infer_shapes()) == ["x"]
    assert not context.all_binding_shapes_specified
    assert context.set_input_shape("x", (2, 4))
    assert list(context.infer_shapes()) == []
    assert context.all_binding_shapes_specified


def the_largest_output_is_told():
    _, engine = _engine()
    context = engine.create_execution_context()
    assert context.set_input_shape("x", (2, 4))
    assert context.get_max_output_size("y") >= 2 * 4 * 4


def profiles_are_told():
    _, engine = _engine(profiles=(((1, 4), (2, 4), (2, 4)), ((3, 4), (4, 4), (16, 4))))
    assert engine.num_optimization_profiles == 2
    told = [[tuple(shape) for shape in engine.get_tensor_profile_shape("x", k)] for k in range(2)]
    assert told == [[(1, 4), (2, 4), (2, 4)], [(3, 4), (4, 4), (16, 4)]]


def second_profile_runs_its_shapes():
    _, engine = _engine(profiles=(((1, 4), (2, 4), (2, 4)), ((3, 4), (4, 4), (16, 4))))
    context = engine.create_execution_context()
    assert context.active_optimization_profile == 0
    stream = cuda.Stream()
    assert context.set_optimization_profile_async(1, stream.handle)
    stream.synchronize()
    assert context.active_optimization_profile == 1
    x = numbers(16, 4, seed=1)
    same(infer(engine, context, x=x)[0], _wanted(x))
    assert not context.set_input_shape("x", (2, 4))


def profile_that_there_is_not():
    b, engine = _engine()
    context = engine.create_execution_context()
    assert not context.set_optimization_profile_async(1, cuda.Stream().handle)
    assert b.log.errors()


def names_and_modes_of_tensors():
    _, engine = _engine()
    names = [engine.get_tensor_name(k) for k in range(engine.num_io_tensors)]
    assert names == ["x", "y"]
    modes = [engine.get_tensor_mode(name) for name in names]
    assert modes == [trt.TensorIOMode.INPUT, trt.TensorIOMode.OUTPUT]
    assert engine.get_tensor_mode("z") == trt.TensorIOMode.NONE
    assert engine.get_tensor_dtype("x") == trt.float32
    assert engine.get_tensor_location("x") == trt.TensorLocation.DEVICE
    assert engine.get_tensor_bytes_per_component("x") in (4, -1)


def addresses_are_kept():
    _, engine = _engine((2, 4))
    context = engine.create_execution_context()
    memory = cuda.mem_alloc(32)
    assert context.get_tensor_address("x") == 0
    assert context.set_tensor_address("x", int(memory))
    assert context.get_tensor_address("x") == int(memory)
    assert not context.set_tensor_address("z", int(memory))
    assert not context.execute_async_v3(cuda.Stream().handle), "y has no address"


def contexts_have_names():
    _, engine = _engine((2, 4))
    context = engine.create_execution_context()
    context.name = "first"
    assert context.name == "first" and context.engine is not None
    context.debug_sync = True
    assert context.debug_sync


def bindings_of_two_kinds():
    _, engine = _engine((2, 4))
    assert engine.num_bindings == 2 and len(engine) == 2
    assert engine.get_binding_index("y") == 1 and engine.get_binding_index("z") == -1
    assert engine.binding_is_input("x") and not engine.binding_is_input(1)
    assert tuple(engine.get_binding_shape("y")) == (2, 4) and engine[0] == "x"


def execute_v2_and_async_v2_agree():
    _, engine = _engine((2, 4))
    context, x, found = engine.create_execution_context(), numbers(2, 4, seed=2), np.empty((2, 4), np.float32)
    memory = [cuda.mem_alloc(32), cuda.mem_alloc(32)]
    cuda.memcpy_htod(memory[0], x)
    assert context.execute_v2([int(one) for one in memory])
    cuda.memcpy_dtoh(found, memory[1])
    same(found, _wanted(x))
    cuda.memcpy_htod(memory[0], -x)
    stream = cuda.Stream()
    assert context.execute_async_v2([int(one) for one in memory], stream.handle)
    stream.synchronize()
    cuda.memcpy_dtoh(found, memory[1])
    same(found, _wanted(-x))


def threads_have_contexts_of_their_own():
    _, engine = _engine((16, 4))
    wrong = []

    def work(seed):
        x = numbers(16, 4, seed=seed)
        context = engine.create_execution_context()
        for _ in range(5):
            if not np.array_equal(infer(engine, context, x=x)[0], _wanted(x)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def context_outlives_names_of_its_engine():
    _, engine = _engine((2, 4))
    context, x = engine.create_execution_context(), numbers(2, 4, seed=3)
    del engine
    gc.collect()
    same(infer(context.engine, context, x=x)[0], _wanted(x))


def memory_for_all_profiles():
    _, engine = _engine()
    context = engine.create_execution_context_without_device_memory()
    memory = cuda.mem_alloc(max(engine.device_memory_size, 1))
    context.device_memory = int(memory)
    x = numbers(3, 4, seed=4)
    same(infer(engine, context, x=x)[0], _wanted(x))


def empty_batches():
    _, engine = _engine(profiles=(((0, 4), (2, 4), (8, 4)),))
    assert infer(engine, x=np.empty((0, 4), np.float32))[0].shape == (0, 4)


def runtime_refuses_other_bytes():
    b, engine = _engine((2, 4))
    runtime = trt.Runtime(b.log)
    assert runtime.deserialize_cuda_engine(b"no engine at all" * 8) is None
    assert b.log.errors()
    plan = bytes(engine.serialize())
    assert runtime.deserialize_cuda_engine(plan[: len(plan) // 2]) is None
    x = numbers(2, 4, seed=5)
    same(infer(runtime.deserialize_cuda_engine(plan), x=x)[0], _wanted(x))


if __name__ == "__main__":
    main(dict(globals()))
