"""Programs with optimization profiles, shape tensors, several contexts, and memory of the caller."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import warnings

import numpy as np
import pycuda.driver as cuda
import tensorrt as trt
from engine_runs import Build, infer, main, numbers, same

E = trt.ElementWiseOperation


def _dynamic(*ranges):
    """y = 2 x of [-1, 3], with a profile for each range of its first extent."""
    b = Build()
    x = b.network.add_input("x", trt.float32, (-1, 3))
    y = b.network.add_elementwise(x, x, E.SUM).get_output(0)
    y.name = "y"
    b.network.mark_output(y)
    for low, best, high in ranges:
        profile = b.builder.create_optimization_profile()
        profile.set_shape("x", (low, 3), (best, 3), (high, 3))
        assert profile and [tuple(s) for s in profile.get_shape("x")] == [(low, 3), (best, 3), (high, 3)]
        assert b.config.add_optimization_profile(profile) == b.config.num_optimization_profiles - 1
    return b


def profile_is_required():
    text = _dynamic().refused()
    assert "no optimization profile has been defined" in text, text


def profile_with_wrong_order():
    b = Build()
    b.network.add_input("x", trt.float32, (-1, 3))
    profile = b.builder.create_optimization_profile()
    try:
        profile.set_shape("x", (4, 3), (2, 3), (8, 3))
    except (ValueError, RuntimeError):
        return
    raise AssertionError("the order is wrong")


def profile_runs_its_range():
    b = _dynamic((1, 4, 8))
    engine = b.engine()
    assert tuple(engine.get_tensor_shape("x")) == (-1, 3) and tuple(engine.get_tensor_shape("y")) == (-1, 3)
    assert [tuple(s) for s in engine.get_tensor_profile_shape("x", 0)] == [(1, 3), (4, 3), (8, 3)]
    for rows in (1, 5, 8):
        x = numbers(rows, 3)
        same(infer(engine, x=x)[0], 2 * x)
    context = engine.create_execution_context()
    assert not context.all_binding_shapes_specified
    assert tuple(context.get_tensor_shape("y")) == (-1, 3)
    assert not context.set_input_shape("x", (9, 3)) and b.log.errors()
    assert not context.set_input_shape("x", (2, 4))
    assert context.set_input_shape("x", (2, 3)) and tuple(context.get_tensor_shape("y")) == (2, 3)
    assert context.all_binding_shapes_specified and context.infer_shapes() == []


def profile_bindings_of_two():
    engine = _dynamic((1, 2, 4), (8, 16, 32)).engine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert engine.num_optimization_profiles == 2 and engine.num_bindings == 4
        assert [engine.get_binding_name(i) for i in range(4)] == ["x", "y", "x [profile 1]", "y [profile 1]"]
        assert [tuple(s) for s in engine.get_profile_shape(1, 2)] == [(8, 3), (16, 3), (32, 3)]
        assert engine.get_binding_index("x [profile 1]") == 2 and engine.binding_is_input(2)
        context, stream = engine.create_execution_context(), cuda.Stream()
        assert context.active_optimization_profile == 0
        assert context.set_optimization_profile_async(1, stream.handle)
        assert context.active_optimization_profile == 1
        assert context.set_binding_shape(2, (9, 3))
        x, y = numbers(9, 3), np.empty((9, 3), np.float32)
        given, made = cuda.mem_alloc(x.nbytes), cuda.mem_alloc(x.nbytes)
        cuda.memcpy_htod(given, x)
        assert context.execute_async_v2([0, 0, int(given), int(made)], stream.handle)
        stream.synchronize()
        cuda.memcpy_dtoh(y, made)
        same(y, 2 * x)


def context_of_a_used_profile():
    b = _dynamic((1, 2, 4))
    engine = b.engine()
    first = engine.create_execution_context()
    second = engine.create_execution_context()
    if second is not None:
        assert second.active_optimization_profile == -1 or b.log.text()
    assert first.active_optimization_profile == 0


def shape_input_of_values():
    b = Build()
    x = b.network.add_input("x", trt.float32, (2, 6))
    s = b.network.add_input("s", trt.int32, (2,))
    layer = b.network.add_shuffle(x)
    layer.set_input(1, s)
    assert s.is_shape_tensor and not s.is_execution_tensor
    y = layer.get_output(0)
    y.name = "y"
    assert tuple(y.shape) == (-1, -1)
    profile = b.builder.create_optimization_profile()
    profile.set_shape_input("s", (1, 1), (3, 4), (12, 12))
    assert [list(v) for v in profile.get_shape_input("s")] == [[1, 1], [3, 4], [12, 12]]
    b.config.add_optimization_profile(profile)
    engine = b.engine(y)
    assert engine.get_tensor_location("s") == trt.TensorLocation.HOST and engine.is_shape_inference_io("s")
    given = numbers(2, 6)
    same(infer(engine, x=given, s=np.array([4, 3], np.int32))[0], given.reshape(4, 3))
    same(infer(engine, x=given, s=np.array([12, 1], np.int32))[0], given.reshape(12, 1))


def shape_input_without_values():
    b = Build()
    x, s = b.network.add_input("x", trt.float32, (2, 6)), b.network.add_input("s", trt.int32, (2,))
    layer = b.network.add_shuffle(x)
    layer.set_input(1, s)
    b.config.add_optimization_profile(b.builder.create_optimization_profile())
    text = b.refused(layer.get_output(0))
    assert "s: optimization profile is missing values for shape input" in text, text


def shape_output_on_the_host():
    b = Build()
    x = b.network.add_input("x", trt.float32, (-1, 3))
    shape = b.network.add_shape(x).get_output(0)
    shape.name = "s"
    assert b.network.mark_output_for_shapes(shape)
    profile = b.builder.create_optimization_profile()
    profile.set_shape("x", (1, 3), (2, 3), (4, 3))
    b.config.add_optimization_profile(profile)
    engine = b.engine()
    assert engine.get_tensor_location("s") == trt.TensorLocation.HOST
    found = infer(engine, x=numbers(4, 3))[0]
    assert found.tolist() == [4, 3] and found.dtype == np.int32


def slice_by_the_shape_of_another():
    b = Build()
    x, y = b.network.add_input("x", trt.float32, (-1, 5)), b.network.add_input("y", trt.float32, (-1, 2))
    layer = b.network.add_slice(x, (0, 0), (0, 0), (1, 1))
    layer.set_input(2, b.network.add_shape(y).get_output(0))
    profile = b.builder.create_optimization_profile()
    profile.set_shape("x", (1, 5), (4, 5), (8, 5))
    profile.set_shape("y", (1, 2), (2, 2), (8, 2))
    b.config.add_optimization_profile(profile)
    engine = b.engine(layer.get_output(0))
    given = numbers(6, 5)
    same(infer(engine, x=given, y=numbers(3, 2))[0], given[:3, :2])


def slice_by_a_choice_of_values():
    """The size along an axis is 1 where the axis is chosen, else the length: conditions become numbers."""
    b = Build()
    x, chosen = b.network.add_input("x", trt.float32, (2, 3, 4)), b.network.add_input("chosen", trt.int32, (1,))
    parts = []
    for axis in range(3):
        number = b.network.add_constant((1,), np.array([axis], np.int32)).get_output(0)
        cast = b.network.add_identity(b.network.add_elementwise(chosen, number, E.EQUAL).get_output(0))
        cast.set_output_type(0, trt.int32)
        parts.append(cast.get_output(0))
    mask = b.network.add_concatenation(parts).get_output(0)
    zero = b.network.add_constant((1,), np.array([0], np.int32)).get_output(0)
    one = b.network.add_constant((1,), np.array([1], np.int32)).get_output(0)
    is_chosen = b.network.add_elementwise(mask, zero, E.GREATER).get_output(0)
    size = b.network.add_select(is_chosen, one, b.network.add_shape(x).get_output(0)).get_output(0)
    layer = b.network.add_slice(x, (0, 0, 0), (0, 0, 0), (1, 1, 1))
    layer.set_input(2, size)
    assert chosen.is_shape_tensor
    profile = b.builder.create_optimization_profile()
    profile.set_shape_input("chosen", (0,), (1,), (2,))
    b.config.add_optimization_profile(profile)
    engine = b.engine(layer.get_output(0))
    given = numbers(2, 3, 4)
    same(infer(engine, x=given, chosen=np.array([1], np.int32))[0], given[:, :1])
    same(infer(engine, x=given, chosen=np.array([2], np.int32))[0], given[:, :, :1])


def named_dimensions():
    b = Build()
    p, q = b.network.add_input("p", trt.float32, (-1,)), b.network.add_input("q", trt.float32, (-1,))
    assert p.get_dimension_name(0) in (None, "")
    p.set_dimension_name(0, "m")
    q.set_dimension_name(0, "m")
    assert p.get_dimension_name(0) == "m"
    profile = b.builder.create_optimization_profile()
    for name in "pq":
        profile.set_shape(name, (1,), (3,), (5,))
    b.config.add_optimization_profile(profile)
    engine = b.engine(b.network.add_elementwise(p, q, E.SUM).get_output(0))
    same(infer(engine, p=np.ones(4, np.float32), q=np.ones(4, np.float32))[0], [2] * 4)
    context = engine.create_execution_context()
    context.set_input_shape("p", (3,))
    context.set_input_shape("q", (4,))
    missing = context.infer_shapes()
    held = cuda.mem_alloc(64)
    for i in range(3):
        context.set_tensor_address(engine.get_tensor_name(i), int(held))
    assert missing or not context.execute_async_v3(cuda.Stream().handle)
    assert "m" in b.log.errors()


def addresses_are_required():
    b = _dynamic((1, 2, 4))
    context = b.engine().create_execution_context()
    context.set_input_shape("x", (2, 3))
    assert not context.execute_async_v3(cuda.Stream().handle)
    assert "x" in b.log.errors() and "address" in b.log.errors().lower(), b.log.errors()


def two_contexts_share_an_engine():
    engine = _dynamic((1, 2, 4), (1, 2, 4)).engine()
    first, second, stream = engine.create_execution_context(), engine.create_execution_context(), cuda.Stream()
    assert second.set_optimization_profile_async(1, stream.handle)
    x, z = numbers(2, 3), numbers(4, 3, seed=1)
    same(infer(engine, first, x=x)[0], 2 * x)
    same(infer(engine, second, x=z)[0], 2 * z)
    same(infer(engine, first, x=x)[0], 2 * x)


def memory_of_the_caller():
    b = Build()
    x = b.network.add_input("x", trt.float32, (8, 16))
    s = b.network.add_softmax(b.network.add_matrix_multiply(
        x, trt.MatrixOperation.TRANSPOSE, x, trt.MatrixOperation.NONE).get_output(0))  # fmt: skip
    engine = b.engine(b.network.add_matrix_multiply(
        x, trt.MatrixOperation.NONE, s.get_output(0), trt.MatrixOperation.NONE).get_output(0))  # fmt: skip
    context = engine.create_execution_context_without_device_memory()
    memory = cuda.mem_alloc(max(engine.device_memory_size, 1))
    context.device_memory = int(memory)
    given = numbers(8, 16)
    product = given.T.astype(np.float64) @ given
    e = np.exp(product - product.max(0))
    same(infer(engine, context, x=given)[0], given @ (e / e.sum(0)), 1e-4, 1e-5)


def output_allocators_keep_memory():
    engine = _dynamic((1, 2, 8)).engine()
    context, stream, log = engine.create_execution_context(), cuda.Stream(), []

    class Growing(trt.IOutputAllocator):
        def __init__(self):
            trt.IOutputAllocator.__init__(self)
            self.memory, self.size, self.shape = None, 0, None

        def reallocate_output(self, name, memory, size, alignment):
            log.append((name, size, alignment))
            if size > self.size:
                self.memory, self.size = cuda.mem_alloc(size), size
            return int(self.memory)

        def notify_shape(self, name, shape):
            self.shape = tuple(shape)

    allocator = Growing()
    assert context.set_output_allocator("y", allocator) and context.get_output_allocator("y") is allocator
    given = cuda.mem_alloc(96)
    for rows in (2, 8, 4):
        x, y = numbers(rows, 3, seed=rows), np.empty((rows, 3), np.float32)
        context.set_input_shape("x", x.shape)
        cuda.memcpy_htod(given, x)
        context.set_tensor_address("x", int(given))
        assert context.execute_async_v3(stream.handle)
        stream.synchronize()
        cuda.memcpy_dtoh(y, allocator.memory)
        assert allocator.shape == (rows, 3)
        same(y, 2 * x)
    assert [name for name, _, _ in log] == ["y"] * len(log) and all(size >= 24 for _, size, _ in log)


def empty_batch_runs():
    assert infer(_dynamic((0, 2, 4)).engine(), x=np.zeros((0, 3), np.float32))[0].shape == (0, 3)


def events_when_inputs_were_read():
    from cuda import cudart

    context = _dynamic((1, 2, 4)).engine().create_execution_context()
    error, event = cudart.cudaEventCreate()
    assert error == cudart.cudaError_t.cudaSuccess
    assert context.set_input_consumed_event(int(event))
    assert context.get_input_consumed_event() == int(event)
    given, made = cuda.mem_alloc(24), cuda.mem_alloc(24)
    context.set_input_shape("x", (2, 3))
    context.set_tensor_address("x", int(given))
    context.set_tensor_address("y", int(made))
    assert context.execute_async_v3(cuda.Stream().handle)
    assert cudart.cudaEventSynchronize(event)[0] == cudart.cudaError_t.cudaSuccess


def old_names_of_an_implicit_batch():
    b = Build(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert b.network.has_implicit_batch_dimension
        b.builder.max_batch_size = 4
        x = b.network.add_input("x", trt.float32, (3,))
        b.network.mark_output(b.network.add_elementwise(x, x, E.SUM).get_output(0))
        engine = b.builder.build_engine(b.network, b.config)
        assert engine is not None, b.log.errors()
        assert engine.max_batch_size == 4 and tuple(engine.get_binding_shape(0)) == (3,)
        given, made = cuda.mem_alloc(48), cuda.mem_alloc(48)
        value, found = numbers(3, 3), np.empty((3, 3), np.float32)
        cuda.memcpy_htod(given, value)
        assert engine.create_execution_context().execute(batch_size=3, bindings=[int(given), int(made)])
        cuda.memcpy_dtoh(found, made)
        same(found, 2 * value)


if __name__ == "__main__":
    main(globals())
