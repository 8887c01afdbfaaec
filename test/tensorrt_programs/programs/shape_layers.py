"""Programs with the layers that move, choose and arrange elements."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import numpy as np
import tensorrt as trt
from engine_runs import Build, main, numbers, same


def concatenation_defaults():
    x, y = numbers(2, 3, 4, 5), numbers(2, 6, 4, 5, seed=1)
    b = Build()
    p, q = b.network.add_input("p", trt.float32, x.shape), b.network.add_input("q", trt.float32, y.shape)
    layer = b.network.add_concatenation([p, q])
    assert layer.axis == 1 and layer.name == "(Unnamed Layer* 0) [Concatenation]"
    same(b.run(layer.get_output(0), p=x, q=y), np.concatenate([x, y], 1))


def concatenation_axis_and_empty_part():
    x, y = numbers(2, 3), np.zeros((2, 0), np.float32)
    b = Build()
    p, q = b.network.add_input("p", trt.float32, x.shape), b.network.add_input("q", trt.float32, y.shape)
    layer = b.network.add_concatenation([p, q, p])
    layer.axis = 1
    same(b.run(layer.get_output(0), p=x, q=y), np.concatenate([x, y, x], 1))


def concatenation_of_mixed_types():
    b = Build()
    p, q = b.network.add_input("p", trt.float32, (1, 2)), b.network.add_input("q", trt.int32, (1, 2))
    layer = b.network.add_concatenation([p, q])
    if layer is not None:
        b.refused(layer.get_output(0))
    assert b.log.errors()


def shuffle_transposes_and_reshapes():
    x = numbers(2, 3, 4)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_shuffle(t)
    assert layer.zero_is_placeholder is True and layer.name == "(Unnamed Layer* 0) [Shuffle]"
    layer.first_transpose = (1, 0, 2)
    layer.reshape_dims = (0, -1, 2)
    layer.second_transpose = (2, 1, 0)
    assert tuple(layer.first_transpose) == (1, 0, 2) and tuple(layer.second_transpose) == (2, 1, 0)
    assert tuple(layer.reshape_dims) == (0, -1, 2)
    wanted = x.transpose(1, 0, 2).reshape(3, 4, 2).transpose(2, 1, 0)
    assert tuple(layer.get_output(0).shape) == wanted.shape
    same(b.run(layer.get_output(0), x=x), wanted)


def shuffle_zero_is_a_dimension():
    b = Build()
    t = b.network.add_input("x", trt.float32, (3, 0))
    layer = b.network.add_shuffle(t)
    layer.reshape_dims, layer.zero_is_placeholder = (0, 0), False
    kept = b.network.add_shuffle(t)
    kept.reshape_dims = (0, 0)
    assert tuple(layer.get_output(0).shape) == (0, 0) and tuple(kept.get_output(0).shape) == (3, 0)
    found = b.run(layer.get_output(0), kept.get_output(0), x=np.zeros((3, 0), np.float32))
    assert [f.shape for f in found] == [(0, 0), (3, 0)]


def shuffle_of_another_volume():
    b = Build()
    layer = b.network.add_shuffle(b.network.add_input("x", trt.float32, (2, 3)))
    layer.reshape_dims = (4, 2)
    b.refused(layer.get_output(0))
    assert "[Shuffle]" in b.log.errors() and "(4, 2)" in b.log.errors().replace("[4, 2]", "(4, 2)"), b.log.errors()


def slice_strides_and_setters():
    x = numbers(3, 8, 5)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_slice(t, (0, 1, 4), (3, 3, 5), (1, 2, -1))
    assert (tuple(layer.start), tuple(layer.shape), tuple(layer.stride)) == ((0, 1, 4), (3, 3, 5), (1, 2, -1))
    assert layer.mode == trt.SliceMode.STRICT_BOUNDS or layer.mode == trt.SliceMode.DEFAULT
    still = b.network.add_slice(t, (1, 2, 3), (2, 4, 2), (0, 0, 1))
    found = b.run(layer.get_output(0), still.get_output(0), x=x)
    same(found[0], x[:, 1:7:2, ::-1])
    same(found[1], np.broadcast_to(x[1:2, 2:3, 3:5], (2, 4, 2)))


def slice_modes():
    x = numbers(2, 5)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    outputs = []
    for mode in (trt.SliceMode.WRAP, trt.SliceMode.CLAMP, trt.SliceMode.REFLECT, trt.SliceMode.FILL):
        layer = b.network.add_slice(t, (0, -2), (2, 9), (1, 1))
        layer.mode = mode
        if mode == trt.SliceMode.FILL:
            layer.set_input(4, b.network.add_constant((), np.array(-7, np.float32)).get_output(0))
        outputs.append(layer.get_output(0))
    found = b.run(*outputs, x=x)
    for one, mode in zip(found, ("wrap", "edge", "reflect")):
        same(one, np.pad(x, [(0, 0), (2, 2)], mode=mode))
    same(found[3], np.pad(x, [(0, 0), (2, 2)], constant_values=-7))


def slice_out_of_bounds():
    b = Build()
    layer = b.network.add_slice(b.network.add_input("x", trt.float32, (2, 5)), (0, 3), (2, 3), (1, 1))
    if layer is not None:
        b.refused(layer.get_output(0))
    assert "out of bounds slice" in b.log.errors(), b.log.errors()


def gather_modes():
    x = numbers(3, 4, 5)
    i = np.array([[2, 0], [1, 1]], np.int32)
    nd = np.array([[0, 3], [2, 1]], np.int32)
    element = np.random.default_rng(0).integers(0, 4, (3, 4, 5)).astype(np.int32)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    ts = {n: b.network.add_input(n, trt.int32, v.shape) for n, v in (("i", i), ("nd", nd), ("e", element))}
    plain = b.network.add_gather(t, ts["i"], 1)
    assert plain.axis == 1 and plain.num_elementwise_dims == 0 and plain.mode == trt.GatherMode.DEFAULT
    by_nd = b.network.add_gather_v2(t, ts["nd"], trt.GatherMode.ND)
    by_element = b.network.add_gather_v2(t, ts["e"], trt.GatherMode.ELEMENT)
    by_element.axis = 1
    found = b.run(*[layer.get_output(0) for layer in (plain, by_nd, by_element)], x=x, i=i, nd=nd, e=element)
    same(found[0], np.take(x, i, 1))
    same(found[1], x[nd[:, 0], nd[:, 1]])
    same(found[2], np.take_along_axis(x, element, 1))


def gather_elementwise_dims():
    x, i = numbers(2, 4, 3), np.array([[3, 0, 1], [2, 2, 0]], np.int32)
    b = Build()
    t, ti = b.network.add_input("x", trt.float32, x.shape), b.network.add_input("i", trt.int32, i.shape)
    layer = b.network.add_gather(t, ti, 1)
    layer.num_elementwise_dims = 1
    same(b.run(layer.get_output(0), x=x, i=i), np.stack([x[k][i[k]] for k in range(2)]))


def gather_of_a_bad_index_is_zero():
    x, i = numbers(4, 2) + 5, np.array([1, 9], np.int32)
    b = Build()
    t, ti = b.network.add_input("x", trt.float32, x.shape), b.network.add_input("i", trt.int32, i.shape)
    same(b.run(b.network.add_gather(t, ti, 0).get_output(0), x=x, i=i), np.stack([x[1], np.zeros(2)]))


def scatter_modes():
    x = numbers(4, 3)
    i, u = np.array([[2, 0, 1]], np.int32), numbers(1, 3, seed=1)
    ni, nu = np.array([[3], [1]], np.int32), numbers(2, 3, seed=2)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    ts = [b.network.add_input(n, d, v.shape) for n, d, v in (
        ("i", trt.int32, i), ("u", trt.float32, u), ("ni", trt.int32, ni), ("nu", trt.float32, nu))]  # fmt: skip
    element = b.network.add_scatter(t, ts[0], ts[1], trt.ScatterMode.ELEMENT)
    assert element.axis == 0 and element.mode == trt.ScatterMode.ELEMENT
    nd = b.network.add_scatter(t, ts[2], ts[3], trt.ScatterMode.ND)
    found = b.run(element.get_output(0), nd.get_output(0), x=x, i=i, u=u, ni=ni, nu=nu)
    wanted = x.copy()
    np.put_along_axis(wanted, i, u, 0)
    same(found[0], wanted)
    wanted = x.copy()
    wanted[[3, 1]] = nu
    same(found[1], wanted)


def one_hot():
    i = np.array([[0, 2], [1, -1]], np.int32)
    b = Build()
    t = b.network.add_input("i", trt.int32, i.shape)
    values = b.network.add_constant((2,), np.array([-1, 5], np.float32)).get_output(0)
    depth = b.network.add_constant((), np.array(3, np.int32)).get_output(0)
    last = b.network.add_one_hot(t, values, depth, -1)
    first = b.network.add_one_hot(t, values, depth, 0)
    assert last.axis == -1 or last.axis == 2
    found = b.run(last.get_output(0), first.get_output(0), i=i)
    wanted = np.where(np.eye(3)[i % 3] > 0, 5, -1)
    same(found[0], wanted)
    same(found[1], wanted.transpose(2, 0, 1))


def shape_of_a_tensor():
    b = Build()
    t = b.network.add_input("x", trt.float32, (2, 3, 4))
    layer = b.network.add_shape(t)
    assert tuple(layer.get_output(0).shape) == (3,) and layer.get_output(0).dtype == trt.int32
    cast = b.network.add_identity(layer.get_output(0))
    found = b.run(cast.get_output(0), x=numbers(2, 3, 4))
    assert found.dtype == np.int32 and found.tolist() == [2, 3, 4]


def fill_linspace():
    b = Build()
    layer = b.network.add_fill((5,), trt.FillOperation.LINSPACE)
    layer.alpha = 10
    layer.beta = 0.5
    assert layer.alpha == 10 and layer.beta == 0.5
    assert layer.operation == trt.FillOperation.LINSPACE and tuple(layer.shape) == (5,)
    nd = b.network.add_fill((1,), trt.FillOperation.LINSPACE)
    nd.set_input(0, b.network.add_constant((2,), np.array([2, 3], np.int32)).get_output(0))
    nd.set_input(1, b.network.add_constant((), np.array(1000, np.float32)).get_output(0))
    nd.set_input(2, b.network.add_constant((2,), np.array([100, 1], np.float32)).get_output(0))
    found = b.run(layer.get_output(0), nd.get_output(0))
    same(found[0], 10 + 0.5 * np.arange(5))
    same(found[1], 1000 + 100 * np.arange(2)[:, None] + np.arange(3))


def fill_random_is_a_state_of_the_context():
    from engine_runs import infer

    b = Build()
    uniform = b.network.add_fill((4000,), trt.FillOperation.RANDOM_UNIFORM)
    uniform.alpha = -2
    uniform.beta = 6
    normal = b.network.add_fill((4000,), trt.FillOperation.RANDOM_NORMAL)
    normal.alpha = 3
    normal.beta = 0.5
    engine = b.engine(uniform.get_output(0), normal.get_output(0))
    context, other = engine.create_execution_context(), engine.create_execution_context()
    first, second, again = infer(engine, context), infer(engine, context), infer(engine, other)
    u, n = first
    assert u.min() >= -2 and u.max() <= 6 and abs(u.mean() - 2) < 0.2
    assert abs(n.mean() - 3) < 0.05 and abs(n.std() - 0.5) < 0.05
    assert not np.array_equal(u, second[0]) and not np.array_equal(n, second[1])
    np.testing.assert_array_equal(u, again[0])


def non_zero_counts():
    import pycuda.driver as cuda

    x = np.array([[0, 1, 0], [2, 0, 3]], np.float32)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_non_zero(t)
    output = layer.get_output(0)
    assert tuple(output.shape) == (2, -1) and output.dtype == trt.int32
    output.name = "at"
    engine = b.engine(output)

    class Allocator(trt.IOutputAllocator):
        def __init__(self):
            trt.IOutputAllocator.__init__(self)
            self.memory, self.shape = None, None

        def reallocate_output(self, tensor_name, memory, size, alignment):
            assert tensor_name == "at" and size <= 2 * 6 * 4
            self.memory = cuda.mem_alloc(max(size, 1))
            return int(self.memory)

        def notify_shape(self, tensor_name, shape):
            self.shape = tuple(shape)

    context, given = engine.create_execution_context(), cuda.mem_alloc(x.nbytes)
    cuda.memcpy_htod(given, x)
    allocator = Allocator()
    context.set_tensor_address("x", int(given))
    assert context.set_output_allocator("at", allocator)
    stream = cuda.Stream()
    assert context.execute_async_v3(stream.handle)
    stream.synchronize()
    assert allocator.shape == (2, 3), allocator.shape
    found = np.empty(allocator.shape, np.int32)
    cuda.memcpy_dtoh(found, allocator.memory)
    np.testing.assert_array_equal(found, np.stack(np.nonzero(x)))


def nms_chooses_boxes():
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, 2.05, 1, 3.05]]], np.float32)
    scores = np.array([[[0.9], [0.75], [0.6], [0.95]]], np.float32)
    b = Build()
    tb, ts = b.network.add_input("b", trt.float32, boxes.shape), b.network.add_input("s", trt.float32, scores.shape)
    most = b.network.add_constant((), np.array(3, np.int32)).get_output(0)
    layer = b.network.add_nms(tb, ts, most)
    layer.set_input(3, b.network.add_constant((), np.array(0.5, np.float32)).get_output(0))
    layer.set_input(4, b.network.add_constant((), np.array(0.1, np.float32)).get_output(0))
    layer.bounding_box_format = trt.BoundingBoxFormat.CORNER_PAIRS
    layer.topk_box_limit = 100
    assert layer.topk_box_limit == 100
    assert tuple(layer.get_output(0).shape) == (-1, 3) and tuple(layer.get_output(1).shape) == ()
    import pycuda.driver as cuda

    layer.get_output(0).name, layer.get_output(1).name = "chosen", "count"
    engine = b.engine(layer.get_output(0), layer.get_output(1))
    context = engine.create_execution_context()
    held = {}
    for name, array in (("b", boxes), ("s", scores), ("count", np.zeros((), np.int32))):
        held[name] = cuda.mem_alloc(array.nbytes)
        cuda.memcpy_htod(held[name], array)
        context.set_tensor_address(name, int(held[name]))
    held["chosen"] = cuda.mem_alloc(max(context.get_max_output_size("chosen"), 36))
    context.set_tensor_address("chosen", int(held["chosen"]))
    stream = cuda.Stream()
    assert context.execute_async_v3(stream.handle)
    stream.synchronize()
    count = np.zeros((), np.int32)
    cuda.memcpy_dtoh(count, held["count"])
    assert count == 2, count
    chosen = np.empty((2, 3), np.int32)
    cuda.memcpy_dtoh(chosen, held["chosen"])
    assert chosen.tolist() == [[0, 0, 3], [0, 0, 0]]


def empty_tensors_broadcast():
    b = Build()
    p, q = b.network.add_input("p", trt.float32, (1, 0, 3)), b.network.add_input("q", trt.float32, (2, 1, 3))
    layer = b.network.add_elementwise(p, q, trt.ElementWiseOperation.SUM)
    assert b.run(layer.get_output(0), p=np.zeros((1, 0, 3), np.float32), q=numbers(2, 1, 3)).shape == (2, 0, 3)


if __name__ == "__main__":
    main(globals())
