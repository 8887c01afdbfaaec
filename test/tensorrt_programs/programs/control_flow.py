"""Programs with loops, conditionals, recurrent layers and assertions."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import numpy as np
import tensorrt as trt
from engine_runs import Build, infer, main, numbers, same

E = trt.ElementWiseOperation


def _scalar(network, value, dtype):
    return network.add_constant((), np.array(value, dtype)).get_output(0)


def loop_counts():
    x = numbers(1, 3)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    loop = b.network.add_loop()
    loop.name = "doubling"
    limit = loop.add_trip_limit(_scalar(b.network, 4, np.int32), trt.TripLimit.COUNT)
    assert limit.kind == trt.TripLimit.COUNT and limit.loop.name == "doubling"
    state = loop.add_recurrence(t)
    step = b.network.add_elementwise(state.get_output(0), state.get_output(0), E.SUM)
    state.set_input(1, step.get_output(0))
    last = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE)
    every = loop.add_loop_output(step.get_output(0), trt.LoopOutput.CONCATENATE, 0)
    every.set_input(1, _scalar(b.network, 4, np.int32))
    assert last.kind == trt.LoopOutput.LAST_VALUE and every.axis == 0
    found = b.run(last.get_output(0), every.get_output(0), x=x)
    same(found[0], x * 16)
    same(found[1], np.stack([x * 2, x * 4, x * 8, x * 16]))


def loop_iterates_and_reverses():
    x = numbers(4, 3)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    zero = b.network.add_constant((3,), np.zeros(3, np.float32)).get_output(0)
    outputs = []
    for reverse in (False, True):
        loop = b.network.add_loop()
        count = b.network.add_gather(b.network.add_shape(t).get_output(0), _scalar(b.network, 0, np.int32), 0)
        loop.add_trip_limit(count.get_output(0), trt.TripLimit.COUNT)
        iterator = loop.add_iterator(t, 0, reverse)
        assert iterator.axis == 0 and iterator.reverse == reverse
        state = loop.add_recurrence(zero)
        step = b.network.add_elementwise(state.get_output(0), iterator.get_output(0), E.SUM)
        state.set_input(1, step.get_output(0))
        for kind in (trt.LoopOutput.CONCATENATE, trt.LoopOutput.REVERSE):
            out = loop.add_loop_output(step.get_output(0), kind, 0)
            out.set_input(1, count.get_output(0))
            outputs.append(out.get_output(0))
    found = b.run(*outputs, x=x)
    forward, backward = np.cumsum(x, 0), np.cumsum(x[::-1], 0)
    for one, good in zip(found, (forward, forward[::-1], backward, backward[::-1])):
        same(one, good)


def loop_while_below_a_bound():
    b = Build()
    t = b.network.add_input("x", trt.float32, (1,))
    loop = b.network.add_loop()
    state = loop.add_recurrence(t)
    bound = b.network.add_constant((1,), np.array([100], np.float32)).get_output(0)
    less = b.network.add_elementwise(state.get_output(0), bound, E.LESS)
    scalar = b.network.add_shuffle(less.get_output(0))
    scalar.reshape_dims = ()
    loop.add_trip_limit(scalar.get_output(0), trt.TripLimit.WHILE)
    step = b.network.add_elementwise(state.get_output(0), state.get_output(0), E.SUM)
    state.set_input(1, step.get_output(0))
    out = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE)
    engine = b.engine(out.get_output(0))
    assert infer(engine, x=np.array([3], np.float32))[0].tolist() == [192]
    assert infer(engine, x=np.array([100], np.float32))[0].tolist() == [100]


def loop_without_a_limit():
    b = Build()
    t = b.network.add_input("x", trt.float32, (1,))
    loop = b.network.add_loop()
    state = loop.add_recurrence(t)
    state.set_input(1, b.network.add_unary(state.get_output(0), trt.UnaryOperation.NEG).get_output(0))
    assert b.refused(loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))


def loops_nest():
    b = Build()
    t = b.network.add_input("x", trt.float32, (2,))
    outer = b.network.add_loop()
    outer.add_trip_limit(_scalar(b.network, 3, np.int32), trt.TripLimit.COUNT)
    state = outer.add_recurrence(t)
    inner = b.network.add_loop()
    inner.add_trip_limit(_scalar(b.network, 2, np.int32), trt.TripLimit.COUNT)
    deep = inner.add_recurrence(state.get_output(0))
    deep.set_input(1, b.network.add_elementwise(deep.get_output(0), t, E.SUM).get_output(0))
    state.set_input(1, inner.add_loop_output(deep.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    out = outer.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE)
    same(b.run(out.get_output(0), x=np.array([1, -2], np.float32)), [7, -14])


def conditional_by_an_input():
    x = numbers(2, 3)
    b = Build()
    t, c = b.network.add_input("x", trt.float32, x.shape), b.network.add_input("c", trt.bool, ())
    conditional = b.network.add_if_conditional()
    conditional.name = "choice"
    conditional.set_condition(c)
    inside = conditional.add_input(t)
    assert inside.conditional.name == "choice"
    yes = b.network.add_elementwise(inside.get_output(0), inside.get_output(0), E.PROD)
    no = b.network.add_unary(inside.get_output(0), trt.UnaryOperation.NEG)
    out = conditional.add_output(yes.get_output(0), no.get_output(0))
    engine = b.engine(out.get_output(0))
    same(infer(engine, x=x, c=np.array(True))[0], x * x)
    same(infer(engine, x=x, c=np.array(False))[0], -x)


def conditional_refusals():
    b = Build()
    t, c = b.network.add_input("x", trt.float32, (2,)), b.network.add_input("c", trt.bool, (1,))
    conditional = b.network.add_if_conditional()
    conditional.set_condition(c)
    inside = conditional.add_input(t).get_output(0)
    out = conditional.add_output(b.network.add_unary(inside, trt.UnaryOperation.NEG).get_output(0), inside)
    assert b.refused(out.get_output(0))


def _rnn_weights(layer, gates, sizes, seed=0):
    weights = {}
    for number, size in enumerate(sizes):
        for k, gate in enumerate(gates):
            for is_w in (True, False):
                rows = layer.hidden_size
                w = numbers(rows, size if is_w else rows, seed=seed + 10 * number + 2 * k + is_w) * 0.5
                bias = numbers(rows, seed=seed + 50 + 10 * number + 2 * k + is_w) * 0.5
                layer.set_weights_for_gate(number, gate, is_w, w)
                layer.set_bias_for_gate(number, gate, is_w, bias)
                weights[number, gate, is_w] = (w, bias)
    return weights


def _affine(weights, number, gate, x, h):
    (w, wb), (r, rb) = weights[number, gate, True], weights[number, gate, False]
    return x @ w.T + wb + h @ r.T + rb


def rnn_v2_lstm():
    g = trt.RNNGateType
    x = numbers(2, 5, 3)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_rnn_v2(t, 1, 4, 5, trt.RNNOperation.LSTM)
    assert (layer.num_layers, layer.hidden_size, layer.max_seq_length) == (1, 4, 5)
    assert layer.direction == trt.RNNDirection.UNIDIRECTION and layer.input_mode == trt.RNNInputMode.LINEAR
    weights = _rnn_weights(layer, (g.INPUT, g.FORGET, g.CELL, g.OUTPUT), (3,))
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    h, c, every = np.zeros((2, 4)), np.zeros((2, 4)), []
    for i in range(5):
        gates = {k: _affine(weights, 0, k, x[:, i], h) for k in (g.INPUT, g.FORGET, g.CELL, g.OUTPUT)}
        c = sigmoid(gates[g.FORGET]) * c + sigmoid(gates[g.INPUT]) * np.tanh(gates[g.CELL])
        h = sigmoid(gates[g.OUTPUT]) * np.tanh(c)
        every.append(h)
    found = b.run(*[layer.get_output(i) for i in range(3)], x=x)
    same(found[0], np.stack(every, 1), 1e-4, 1e-5)
    same(found[1], h[:, None], 1e-4, 1e-5)
    same(found[2], c[:, None], 1e-4, 1e-5)


def rnn_v2_relu_with_hidden_state_and_two_layers():
    g = trt.RNNGateType.INPUT
    x, start = numbers(1, 3, 4), numbers(1, 2, 5, seed=9)
    b = Build()
    t, h0 = b.network.add_input("x", trt.float32, x.shape), b.network.add_input("h", trt.float32, start.shape)
    layer = b.network.add_rnn_v2(t, 2, 5, 3, trt.RNNOperation.RELU)
    layer.hidden_state = h0
    assert layer.op == trt.RNNOperation.RELU
    weights = _rnn_weights(layer, (g,), (4, 5))
    data = x[0]
    for number in range(2):
        h, rows = start[0, number], []
        for row in data:
            h = np.maximum(_affine(weights, number, g, row, h), 0)
            rows.append(h)
        data = np.stack(rows)
    found = b.run(layer.get_output(0), x=x, h=start)
    same(found, data[None], 1e-4, 1e-5)


def assertion_that_is_false_at_build():
    b = Build()
    t = b.network.add_input("x", trt.float32, (3, 4))
    shape = b.network.add_shape(t).get_output(0)
    wanted = b.network.add_constant((2,), np.array([3, 5], np.int32)).get_output(0)
    equal = b.network.add_elementwise(shape, wanted, E.EQUAL)
    layer = b.network.add_assertion(equal.get_output(0), "the shape is wrong")
    assert layer.message == "the shape is wrong" and layer.type == trt.LayerType.ASSERTION
    text = b.refused(b.network.add_identity(t).get_output(0))
    assert "the shape is wrong" in text and "condition[1] is false" in text, text


def assertion_at_run_time():
    b = Build()
    p, q = b.network.add_input("p", trt.float32, (-1,)), b.network.add_input("q", trt.float32, (-1,))
    equal = b.network.add_elementwise(
        b.network.add_shape(p).get_output(0), b.network.add_shape(q).get_output(0), E.EQUAL
    )
    b.network.add_assertion(equal.get_output(0), "lengths differ")
    profile = b.builder.create_optimization_profile()
    for name in "pq":
        profile.set_shape(name, (1,), (3,), (5,))
    b.config.add_optimization_profile(profile)
    engine = b.engine(b.network.add_elementwise(p, q, E.SUM).get_output(0))
    same(infer(engine, p=np.ones(3, np.float32), q=np.ones(3, np.float32))[0], [2, 2, 2])
    context = engine.create_execution_context()
    context.set_input_shape("p", (3,))
    context.set_input_shape("q", (4,))
    import pycuda.driver as cuda

    held = [cuda.mem_alloc(64) for _ in range(3)]
    for i in range(3):
        context.set_tensor_address(engine.get_tensor_name(i), int(held[i]))
    assert not context.execute_async_v3(cuda.Stream().handle)
    assert "lengths differ" in b.log.errors(), b.log.errors()


if __name__ == "__main__":
    main(globals())
