"""Programs with the layers that compute element by element."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import math

import numpy as np
import tensorrt as trt
from engine_runs import Build, main, numbers, same

A = trt.ActivationType
U = trt.UnaryOperation
E = trt.ElementWiseOperation
X = np.array([[[[-3, -1.5, -0.4, 0], [0.3, 0.9, 2, 7]]]], np.float32)


def _activation(kind, alpha=None, beta=None):
    b = Build()
    layer = b.network.add_activation(b.network.add_input("x", trt.float32, X.shape), kind)
    assert layer.type == kind and trt.LayerType.ACTIVATION == super(type(layer), layer).type
    if alpha is not None:
        layer.alpha = alpha
        assert abs(layer.alpha - alpha) < 1e-6
    if beta is not None:
        layer.beta = beta
        assert abs(layer.beta - beta) < 1e-6
    return b.run(layer.get_output(0), x=X)


def activations_without_parameters():
    same(_activation(A.RELU), np.maximum(X, 0))
    same(_activation(A.SIGMOID), 1 / (1 + np.exp(-X)))
    same(_activation(A.TANH), np.tanh(X))
    same(_activation(A.SOFTSIGN), X / (1 + np.abs(X)))


def activations_with_alpha():
    same(_activation(A.LEAKY_RELU, 0.2), np.where(X >= 0, X, 0.2 * X))
    same(_activation(A.ELU, 0.7), np.where(X >= 0, X, 0.7 * (np.exp(X) - 1)))
    same(_activation(A.THRESHOLDED_RELU, 0.5), np.where(X > 0.5, X, 0))


def activations_with_alpha_and_beta():
    same(_activation(A.SELU, 1.3, 1.1), 1.1 * np.where(X > 0, X, 1.3 * np.exp(X) - 1.3))
    same(_activation(A.SOFTPLUS, 0.5, 1.5), 0.5 * np.log(np.exp(1.5 * X) + 1))
    same(_activation(A.CLIP, -1, 2), np.clip(X, -1, 2))
    same(_activation(A.HARD_SIGMOID, 0.2, 0.4), np.clip(0.2 * X + 0.4, 0, 1))
    same(_activation(A.SCALED_TANH, 1.7, 0.6), 1.7 * np.tanh(0.6 * X))


def activation_names():
    b = Build()
    x = b.network.add_input("x", trt.float32, X.shape)
    layer = b.network.add_activation(x, A.RELU)
    assert layer.name == "(Unnamed Layer* 0) [Activation]", layer.name
    assert layer.get_output(0).name == "(Unnamed Layer* 0) [Activation]_output", layer.get_output(0).name
    layer.name = "first"
    assert b.network.get_layer(0).name == "first" and b.network[0].name == "first"
    assert (layer.alpha, layer.beta) == (0.0, 0.0), (layer.alpha, layer.beta)
    assert layer.num_inputs == 1 and layer.num_outputs == 1
    assert layer.get_input(0).name == "x"


def unaries_of_floats():
    x = numbers(1, 2, 3, 4)
    unit, big = np.tanh(x) * 0.9, np.abs(x) + 1.1
    erf = np.vectorize(math.erf)
    table = [
        (U.EXP, x, np.exp), (U.LOG, big, np.log), (U.SQRT, big, np.sqrt), (U.RECIP, big, lambda v: 1 / v),
        (U.ABS, x, np.abs), (U.NEG, x, np.negative), (U.SIN, x, np.sin), (U.COS, x, np.cos), (U.TAN, x, np.tan),
        (U.SINH, x, np.sinh), (U.COSH, x, np.cosh), (U.ASIN, unit, np.arcsin), (U.ACOS, unit, np.arccos),
        (U.ATAN, x, np.arctan), (U.ASINH, x, np.arcsinh), (U.ACOSH, big, np.arccosh), (U.ATANH, unit, np.arctanh),
        (U.CEIL, x, np.ceil), (U.FLOOR, x, np.floor), (U.ERF, x, erf), (U.SIGN, x, np.sign), (U.ROUND, x, np.round),
    ]  # fmt: skip
    b = Build()
    outputs, wanted, feeds = [], [], {}
    for i, (kind, given, function) in enumerate(table):
        t = b.network.add_input(f"x{i}", trt.float32, given.shape)
        layer = b.network.add_unary(t, kind)
        assert layer.op == kind
        outputs.append(layer.get_output(0))
        wanted.append(function(given))
        feeds[f"x{i}"] = given.astype(np.float32)
    for found, good in zip(b.run(*outputs, **feeds), wanted):
        same(found, good, 2e-5, 2e-6)


def unary_rounds_halves_to_even():
    b = Build()
    x = np.array([[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]], np.float32)
    t = b.network.add_input("x", trt.float32, x.shape)
    same(b.run(b.network.add_unary(t, U.ROUND).get_output(0), x=x), [[-2, -2, 0, 0, 2, 2]], 0, 0)


def unary_not_of_bool():
    b = Build()
    x = np.array([[True, False]])
    t = b.network.add_input("x", trt.bool, x.shape)
    found = b.run(b.network.add_unary(t, U.NOT).get_output(0), x=x)
    assert found.dtype == np.bool_ and found.tolist() == [[False, True]]


def unary_types_are_refused():
    for kind, dtype in ((U.NOT, trt.float32), (U.EXP, trt.int32), (U.SQRT, trt.bool)):
        b = Build()
        t = b.network.add_input("x", dtype, (1, 2))
        layer = b.network.add_unary(t, kind)
        assert layer is None or b.refused(layer.get_output(0))
        assert b.log.errors()


def elementwise_of_floats():
    x, y = numbers(1, 3, 1, 4), numbers(1, 1, 5, 4, seed=1)
    positive = np.abs(x) + 0.1
    table = [
        (E.SUM, np.add), (E.PROD, np.multiply), (E.MAX, np.maximum), (E.MIN, np.minimum), (E.SUB, np.subtract),
        (E.DIV, np.divide), (E.POW, np.power), (E.FLOOR_DIV, np.floor_divide), (E.EQUAL, np.equal),
        (E.GREATER, np.greater), (E.LESS, np.less),
    ]  # fmt: skip
    b = Build()
    p, q = b.network.add_input("p", trt.float32, x.shape), b.network.add_input("q", trt.float32, y.shape)
    outputs = []
    for kind, _ in table:
        layer = b.network.add_elementwise(p, q, kind)
        assert layer.op == kind and tuple(layer.get_output(0).shape) == (1, 3, 5, 4)
        outputs.append(layer.get_output(0))
    for found, (kind, function) in zip(b.run(*outputs, p=positive, q=y), table):
        wanted = function(positive, y)
        assert found.dtype == wanted.dtype, (kind, found.dtype)
        same(found, wanted, 1e-4, 1e-5)


def elementwise_of_integers():
    x = np.array([[-7, -6, 7, 6, 5]], np.int32)
    y = np.array([[2, 4, -2, 4, 5]], np.int32)
    b = Build()
    p, q = b.network.add_input("p", trt.int32, x.shape), b.network.add_input("q", trt.int32, y.shape)
    kinds = (E.SUM, E.PROD, E.SUB, E.DIV, E.FLOOR_DIV, E.MAX, E.MIN)
    found = b.run(*[b.network.add_elementwise(p, q, k).get_output(0) for k in kinds], p=x, q=y)
    wanted = (x + y, x * y, x - y, np.trunc(x / y).astype(np.int32), x // y, np.maximum(x, y), np.minimum(x, y))
    for one, good in zip(found, wanted):
        assert one.dtype == np.int32
        np.testing.assert_array_equal(one, good)


def elementwise_of_bools():
    x, y = np.array([[True, True, False, False]]), np.array([[True, False, True, False]])
    b = Build()
    p, q = b.network.add_input("p", trt.bool, x.shape), b.network.add_input("q", trt.bool, y.shape)
    found = b.run(*[b.network.add_elementwise(p, q, k).get_output(0) for k in (E.AND, E.OR, E.XOR)], p=x, q=y)
    for one, good in zip(found, (x & y, x | y, x ^ y)):
        assert one.dtype == np.bool_
        np.testing.assert_array_equal(one, good)


def elementwise_refusals():
    cases = [
        (E.POW, trt.int32, trt.int32, "operation POW requires inputs with activation type"),
        (E.AND, trt.float32, trt.float32, "operation AND requires boolean inputs"),
        (E.SUM, trt.float32, trt.int32, "incompatible"),
    ]
    for kind, first, second, words in cases:
        b = Build()
        p, q = b.network.add_input("p", first, (1, 2)), b.network.add_input("q", second, (1, 2))
        layer = b.network.add_elementwise(p, q, kind)
        if layer is not None:
            b.refused(layer.get_output(0))
        assert words in b.log.errors(), b.log.errors()


def scale_uniform_channel_elementwise():
    x = np.abs(numbers(1, 3, 2, 2)) + 0.5
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    one = lambda v: np.array([v], np.float32)  # noqa: E731
    uniform = b.network.add_scale(t, trt.ScaleMode.UNIFORM, one(0.5), one(2), one(3))
    assert uniform.mode == trt.ScaleMode.UNIFORM and uniform.channel_axis == 1
    np.testing.assert_array_equal(np.asarray(uniform.shift), [0.5])
    s, k = numbers(3, seed=1), np.abs(numbers(3, seed=2))
    channel = b.network.add_scale(t, trt.ScaleMode.CHANNEL, s, k)
    assert len(channel.power) == 0 if hasattr(channel.power, "__len__") else channel.power.size == 0
    every = numbers(3, 2, 2, seed=3)
    element = b.network.add_scale(t, trt.ScaleMode.ELEMENTWISE, scale=every)
    axis2 = b.network.add_scale_nd(t, trt.ScaleMode.CHANNEL, s[:2], k[:2], None, 2)
    assert axis2.channel_axis == 2
    found = b.run(*[layer.get_output(0) for layer in (uniform, channel, element, axis2)], x=x)
    c = (slice(None), None, None)
    same(found[0], (x * 2 + 0.5) ** 3, 1e-5)
    same(found[1], x * k[c] + s[c])
    same(found[2], x * every)
    same(found[3], x * k[:2, None] + s[:2, None])


def prelu_broadcasts():
    x, slope = numbers(2, 3, 4), np.abs(numbers(1, 3, 1, seed=1))
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_parametric_relu(t, b.network.add_constant(slope.shape, slope).get_output(0))
    same(b.run(layer.get_output(0), x=x), np.where(x >= 0, x, x * slope))


def select_broadcasts():
    c, x, y = np.array([[True], [False]]), numbers(1, 3), numbers(2, 1, seed=1)
    b = Build()
    ts = [b.network.add_input(n, d, v.shape) for n, d, v in (
        ("c", trt.bool, c), ("x", trt.float32, x), ("y", trt.float32, y))]  # fmt: skip
    layer = b.network.add_select(*ts)
    assert tuple(layer.get_output(0).shape) == (2, 3)
    same(b.run(layer.get_output(0), c=c, x=x, y=y), np.where(c, x, y))


def identity_converts():
    x = np.array([[-1.9, -0.5, 0, 0.5, 2.7]], np.float32)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    outputs = []
    for kind in (trt.float32, trt.int32, trt.bool, trt.float16):
        layer = b.network.add_identity(t)
        layer.set_output_type(0, kind)
        assert layer.output_type_is_set(0) and layer.get_output_type(0) == kind
        assert layer.get_output(0).dtype == kind
        outputs.append(layer.get_output(0))
    b.config.set_flag(trt.BuilderFlag.FP16)
    same_, ints, bools, halves = b.run(*outputs, x=x)
    same(same_, x)
    assert ints.dtype == np.int32 and ints.tolist() == [[-1, 0, 0, 0, 2]]
    assert bools.dtype == np.bool_ and bools.tolist() == [[True, True, False, True, True]]
    assert halves.dtype == np.float16
    np.testing.assert_array_equal(halves, x.astype(np.float16))


def constant_dimensions():
    b = Build()
    scalar = b.network.add_constant((), np.array(3, np.float32))
    assert tuple(scalar.shape) == () and len(scalar.get_output(0).shape) == 0
    layer = b.network.add_constant((2, 3), np.arange(6, dtype=np.float32))
    assert layer.type == trt.LayerType.CONSTANT and tuple(layer.shape) == (2, 3)
    layer.weights = np.arange(6, 12, dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(layer.weights).reshape(-1), np.arange(6, 12))
    sum_ = b.network.add_elementwise(
        layer.get_output(0), b.network.add_constant((1, 1), np.array([3], np.float32)).get_output(0), E.SUM
    )
    same(b.run(sum_.get_output(0)), np.arange(9, 15).reshape(2, 3))


def constant_of_wrong_count():
    b = Build()
    layer = b.network.add_constant((2, 3), np.arange(5, dtype=np.float32))
    if layer is not None:
        b.refused(layer.get_output(0))
    assert b.log.errors()


if __name__ == "__main__":
    main(globals())
