"""Programs with products, reductions, sorts and softmax."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import warnings

import numpy as np
import tensorrt as trt
from engine_runs import Build, main, numbers, same

M = trt.MatrixOperation
R = trt.ReduceOperation


def fully_connected():
    x, w, bias = numbers(2, 3, 2, 4), numbers(5, 24, seed=1), numbers(5, seed=2)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = b.network.add_fully_connected(t, 5, w, bias)
    assert layer.num_output_channels == 5 and layer.name == "(Unnamed Layer* 0) [Fully Connected]"
    assert layer.type == trt.LayerType.FULLY_CONNECTED
    same(b.run(layer.get_output(0), x=x), (x.reshape(2, 24) @ w.T + bias).reshape(2, 5, 1, 1), 1e-4, 1e-5)


def matrix_multiply_operations():
    x, y = numbers(2, 3, 4), numbers(1, 4, 5, seed=1)
    b = Build()
    p, q = b.network.add_input("p", trt.float32, x.shape), b.network.add_input("q", trt.float32, y.shape)
    plain = b.network.add_matrix_multiply(p, M.NONE, q, M.NONE)
    assert plain.op0 == M.NONE and plain.op1 == M.NONE and plain.name == "(Unnamed Layer* 0) [Matrix Multiply]"
    gram = b.network.add_matrix_multiply(p, M.TRANSPOSE, p, M.NONE)
    v = b.network.add_input("v", trt.float32, (2, 4))
    vector = b.network.add_matrix_multiply(p, M.NONE, v, M.VECTOR)
    assert tuple(vector.get_output(0).shape) == (2, 3)
    given = numbers(2, 4, seed=3)
    found = b.run(*[layer.get_output(0) for layer in (plain, gram, vector)], p=x, q=y, v=given)
    same(found[0], x @ y, 1e-4, 1e-5)
    same(found[1], x.transpose(0, 2, 1) @ x, 1e-4, 1e-5)
    same(found[2], np.einsum("bij,bj->bi", x, given), 1e-4, 1e-5)


def matrix_multiply_of_nothing():
    b = Build()
    p, q = b.network.add_input("p", trt.float32, (3, 0)), b.network.add_input("q", trt.float32, (0, 2))
    layer = b.network.add_matrix_multiply(p, M.NONE, q, M.NONE)
    same(b.run(layer.get_output(0), p=np.zeros((3, 0), np.float32), q=np.zeros((0, 2), np.float32)), np.zeros((3, 2)))


def matrix_multiply_of_other_ranks():
    b = Build()
    p, q = b.network.add_input("p", trt.float32, (1, 3, 4)), b.network.add_input("q", trt.float32, (4, 2))
    layer = b.network.add_matrix_multiply(p, M.NONE, q, M.NONE)
    if layer is not None:
        b.refused(layer.get_output(0))
    assert b.log.errors()


def einsum_equations():
    x, y = numbers(2, 3, 4), numbers(2, 4, 5, seed=1)
    b = Build()
    p, q = b.network.add_input("p", trt.float32, x.shape), b.network.add_input("q", trt.float32, y.shape)
    equations = ["bij,bjk->bik", "bij, bjk -> ki", "bij,bjk"]
    layers = [b.network.add_einsum([p, q], e) for e in equations]
    assert layers[0].equation == equations[0] and layers[0].name == "(Unnamed Layer* 0) [Einsum]"
    single = b.network.add_einsum([p], "bij->ji")
    found = b.run(*[layer.get_output(0) for layer in (*layers, single)], p=x, q=y)
    for one, equation in zip(found, equations):
        same(one, np.einsum(equation.replace(" ", ""), x, y), 1e-4, 1e-5)
    same(found[3], x.sum(0).T, 1e-4, 1e-5)


def einsum_refusals():
    cases = [
        ("...j,jk->...k", [(2, 3), (3, 4)], "ellipsis is not permitted in Einsum equation"),
        ("ii->i", [(3, 3)], "Diagonal operations are not permitted in Einsum equation"),
        ("ab,bc,cd->ad", [(2, 2)] * 3, "more than two inputs"),
        ("abc,cd->abd", [(2, 3), (3, 4)], "number of subscripts for input operand 0"),
    ]
    for equation, shapes, words in cases:
        b = Build()
        ts = [b.network.add_input(f"x{i}", trt.float32, s) for i, s in enumerate(shapes)]
        layer = b.network.add_einsum(ts, equation)
        if layer is not None:
            b.refused(layer.get_output(0))
        assert words in b.log.errors(), (equation, b.log.errors())


def reduce_operations():
    x = numbers(2, 3, 4)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    table = {R.SUM: np.sum, R.PROD: np.prod, R.MAX: np.max, R.MIN: np.min, R.AVG: np.mean}
    outputs = []
    for kind in table:
        layer = b.network.add_reduce(t, kind, (1 << 1) | (1 << 2), True)
        assert layer.axes == 6 and layer.keep_dims is True and layer.op == kind
        outputs.append(layer.get_output(0))
    layer = b.network.add_reduce(t, R.SUM, 1 << 0, True)
    layer.axes, layer.keep_dims = 1 << 2, False
    found = b.run(*outputs, layer.get_output(0), x=x)
    for one, function in zip(found, table.values()):
        same(one, function(x.astype(np.float64), (1, 2), keepdims=True), 1e-4, 1e-5)
    same(found[-1], x.sum(2), 1e-4, 1e-5)


def reduce_of_integers():
    x = np.array([[3, 4, -9], [1, 2, 7]], np.int32)
    b = Build()
    t = b.network.add_input("x", trt.int32, x.shape)
    found = b.run(*[b.network.add_reduce(t, k, 2, False).get_output(0) for k in (R.SUM, R.MAX, R.PROD)], x=x)
    assert [f.dtype for f in found] == [np.int32] * 3
    assert [f.tolist() for f in found] == [[-2, 10], [4, 7], [-108, 14]]


def reduce_of_an_empty_set():
    b = Build()
    t = b.network.add_input("x", trt.float32, (2, 0))
    i = b.network.add_input("i", trt.int32, (2, 0))
    kinds = (R.SUM, R.PROD, R.MAX, R.MIN)
    outputs = [b.network.add_reduce(source, k, 2, False).get_output(0) for source in (t, i) for k in kinds]
    found = b.run(*outputs, x=np.zeros((2, 0), np.float32), i=np.zeros((2, 0), np.int32))
    assert [f.tolist()[0] for f in found[:4]] == [0, 1, -np.inf, np.inf]
    assert [f.tolist()[0] for f in found[4:]] == [0, 1, -(2**31), 2**31 - 1]


def top_k_sorts():
    x = np.array([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3]], np.float32)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    most = b.network.add_topk(t, trt.TopKOperation.MAX, 4, 2)
    least = b.network.add_topk(t, trt.TopKOperation.MIN, 3, 2)
    assert most.k == 4 and most.axes == 2 and most.op == trt.TopKOperation.MAX and most.num_outputs == 2
    assert most.get_output(1).dtype == trt.int32 and most.name == "(Unnamed Layer* 0) [TopK]"
    found = b.run(*[layer.get_output(i) for layer in (most, least) for i in (0, 1)], x=x)
    assert [f.tolist() for f in found] == [[[9, 6, 5, 5]], [[5, 7, 4, 8]], [[1, 1, 2]], [[1, 3, 6]]]


def top_k_refusals():
    for k, axes, words in (
        (0, 2, "k"),
        (3841, 2, "k"),
        (11, 2, "K not consistent with dimensions"),
        (2, 3, "exactly one"),
    ):
        b = Build()
        t = b.network.add_input("x", trt.float32, (1, 10))
        layer = b.network.add_topk(t, trt.TopKOperation.MAX, k, axes)
        if layer is not None:
            b.refused(layer.get_output(0))
        assert words in b.log.errors(), (k, b.log.errors())


def softmax_axes():
    x = numbers(2, 3, 4, 5)
    b = Build()
    t = b.network.add_input("x", trt.float32, x.shape)
    plain = b.network.add_softmax(t)
    assert plain.axes == 1 << 1 and plain.name == "(Unnamed Layer* 0) [SoftMax]", (plain.axes, plain.name)
    last = b.network.add_softmax(t)
    last.axes = 1 << 3

    def wanted(axis):
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    found = b.run(plain.get_output(0), last.get_output(0), x=x)
    same(found[0], wanted(1))
    same(found[1], wanted(3))
    b = Build()
    two = b.network.add_softmax(b.network.add_input("x", trt.float32, x.shape))
    two.axes = 6
    b.refused(two.get_output(0))
    assert "isSingleBit" in b.log.errors() or "single" in b.log.errors(), b.log.errors()


def softmax_default_axis_of_two_dimensions():
    b = Build()
    assert b.network.add_softmax(b.network.add_input("x", trt.float32, (2, 3))).axes == 1
    assert b.network.add_softmax(b.network.add_input("y", trt.float32, (2, 3, 4))).axes == 1
    assert b.network.add_softmax(b.network.add_input("z", trt.float32, (2, 3, 4, 5, 6))).axes == 4


def ragged_softmax():
    x, bounds = numbers(1, 3, 4), np.array([[[2], [0], [4]]], np.int32)
    b = Build()
    t, n = b.network.add_input("x", trt.float32, x.shape), b.network.add_input("n", trt.int32, bounds.shape)
    layer = b.network.add_ragged_softmax(t, n)
    assert layer.name == "(Unnamed Layer* 0) [Ragged SoftMax]"
    wanted = np.zeros((1, 3, 4))
    for row, count in enumerate((2, 0, 4)):
        e = np.exp(x[0, row, :count].astype(np.float64))
        wanted[0, row, :count] = e / e.sum() if count else e
    same(b.run(layer.get_output(0), x=x, n=bounds), wanted)


if __name__ == "__main__":
    main(globals())
