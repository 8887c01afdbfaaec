"""Programs that refit engines, walk through models that a parser read, and change them before the build."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import os
import tempfile

import numpy as np
import onnx
import tensorrt as trt
from engine_runs import Build, infer, main, numbers, same
from onnx import helper, numpy_helper

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def _model(nodes, inputs, outputs, given=(), opset=13):
    tensors = [[helper.make_tensor_value_info(*one) for one in some] for some in (inputs, outputs)]
    arrays = [numpy_helper.from_array(array, name) for name, array in given]
    graph = helper.make_graph(nodes, "g", *tensors, arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def _parsed(model, b=None):
    b = b or Build()
    parser = trt.OnnxParser(b.network, b.log)
    assert parser.parse(model), parser.get_error(0).desc()
    return b


def _gemm():
    w, bias = numbers(4, 3, seed=1), numbers(3, seed=2)
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"], "gemm"), helper.make_node("Relu", ["h"], ["y"], "relu")]
    return _model(nodes, [("x", FLOAT, (2, 4))], [("y", FLOAT, (2, 3))], [("w", w), ("b", bias)]), w, bias


def model_runs_as_it_is():
    model, w, bias = _gemm()
    x = numbers(2, 4, seed=3)
    same(infer(_parsed(model).engine(), x=x)[0], np.maximum(x @ w + bias, 0))


def another_output_is_marked():
    model, w, bias = _gemm()
    b, x = _parsed(model), numbers(2, 4, seed=3)
    tensors = {layer.get_output(k).name: layer.get_output(k) for layer in b.network for k in range(layer.num_outputs)}
    b.network.mark_output(tensors["h"])
    y, h = infer(b.engine(), x=x)
    same(h, x @ w + bias)
    same(y, np.maximum(x @ w + bias, 0))


def output_is_unmarked():
    model, w, bias = _gemm()
    b, x = _parsed(model), numbers(2, 4, seed=3)
    before = b.network.get_output(0)
    b.network.unmark_output(before)
    assert b.network.num_outputs == 0
    y = b.network.add_unary(before, trt.UnaryOperation.NEG)
    same(b.run(y.get_output(0), x=x), -np.maximum(x @ w + bias, 0))


def layers_are_added_to_a_model():
    model, w, bias = _gemm()
    b, x = _parsed(model), numbers(2, 4, seed=4)
    y = b.network.add_softmax(b.network.get_output(0))
    y.axes = 1 << 1
    y.get_output(0).name = "p"
    found = b.run(y.get_output(0), x=x)[1]
    e = np.exp(np.maximum(x @ w + bias, 0))
    same(found, e / e.sum(1, keepdims=True))


def weights_of_a_model_are_refitted():
    model, _, bias = _gemm()
    b, x = Build(), numbers(2, 4, seed=5)
    b.config.set_flag(trt.BuilderFlag.REFIT)
    engine = _parsed(model, b).engine()
    refitter, w = trt.Refitter(engine, b.log), numbers(4, 3, seed=6)
    assert set(refitter.get_all_weights()) == {"w", "b"}
    assert refitter.set_named_weights("w", w)
    for name in refitter.get_missing_weights():
        assert refitter.set_named_weights(name, bias)
    assert refitter.refit_cuda_engine()
    same(infer(engine, x=x)[0], np.maximum(x @ w + bias, 0))


def weights_of_another_count_are_refused():
    model, _, _ = _gemm()
    b = Build()
    b.config.set_flag(trt.BuilderFlag.REFIT)
    refitter = trt.Refitter(_parsed(model, b).engine(), b.log)
    assert not refitter.set_named_weights("w", numbers(3, 3))
    assert not refitter.set_named_weights("v", numbers(4, 3))
    assert b.log.errors()


def scale_layer_is_refitted_by_roles():
    b, x = Build(), numbers(1, 2, 3, 3, seed=7)
    b.config.set_flag(trt.BuilderFlag.REFIT)
    shift, scale = np.ones(2, np.float32), np.full(2, 2, np.float32)
    given = b.network.add_input("x", trt.float32, x.shape)
    layer = b.network.add_scale(given, trt.ScaleMode.CHANNEL, shift, scale)
    layer.name = "scale"
    engine = b.engine(layer.get_output(0))
    refitter = trt.Refitter(engine, b.log)
    assert refitter.set_weights("scale", trt.WeightsRole.SCALE, np.array([3, 4], np.float32))
    assert refitter.set_weights("scale", trt.WeightsRole.SHIFT, np.array([5, 6], np.float32))
    for name, role in zip(*refitter.get_missing()):
        assert refitter.set_weights(name, role, np.ones(2, np.float32))
    assert refitter.refit_cuda_engine()
    factors, added = np.array([3, 4]).reshape(1, 2, 1, 1), np.array([5, 6]).reshape(1, 2, 1, 1)
    same(infer(engine, x=x)[0], x * factors + added)


def constant_is_refitted():
    b, x = Build(), numbers(2, 3, seed=8)
    b.config.set_flag(trt.BuilderFlag.REFIT)
    constant = b.network.add_constant((2, 3), np.ones((2, 3), np.float32))
    constant.name = "c"
    given = b.network.add_input("x", trt.float32, (2, 3))
    y = b.network.add_elementwise(given, constant.get_output(0), trt.ElementWiseOperation.PROD)
    engine = b.engine(y.get_output(0))
    refitter, w = trt.Refitter(engine, b.log), numbers(2, 3, seed=9)
    assert refitter.set_weights("c", trt.WeightsRole.CONSTANT, w)
    assert refitter.refit_cuda_engine()
    same(infer(engine, x=x)[0], x * w)


def model_of_many_branches():
    nodes = [
        helper.make_node("Split", ["x", "s"], ["a", "b"], "split", axis=1),
        helper.make_node("Sigmoid", ["a"], ["c"], "gate"),
        helper.make_node("Mul", ["b", "c"], ["d"], "mul"),
        helper.make_node("Concat", ["d", "a"], ["y"], "concat", axis=1),
    ]
    model = _model(nodes, [("x", FLOAT, (2, 6))], [("y", FLOAT, (2, 6))], [("s", np.array([3, 3]))])
    x = numbers(2, 6, seed=10)
    a, b = x[:, :3], x[:, 3:]
    same(infer(_parsed(model).engine(), x=x)[0], np.concatenate([b / (1 + np.exp(-a)), a], 1))


def model_that_reshapes_by_its_shape():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], "shape"),
        helper.make_node("Gather", ["s", "zero"], ["n"], "first"),
        helper.make_node("Unsqueeze", ["n", "axes"], ["m"], "unsqueeze"),
        helper.make_node("Concat", ["m", "rest"], ["t"], "target", axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"], "reshape"),
    ]
    given = [("zero", np.array(0)), ("axes", np.array([0])), ("rest", np.array([-1]))]
    b = _parsed(_model(nodes, [("x", FLOAT, ("n", 3, 4))], [("y", FLOAT, None)], given))
    profile = b.builder.create_optimization_profile()
    profile.set_shape("x", (1, 3, 4), (2, 3, 4), (5, 3, 4))
    b.config.add_optimization_profile(profile)
    engine = b.engine()
    for batch in (1, 5):
        x = numbers(batch, 3, 4, seed=11)
        same(infer(engine, x=x)[0], x.reshape(batch, 12))


def model_in_a_file():
    model, w, bias = _gemm()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(model)
        b = Build()
        parser = trt.OnnxParser(b.network, b.log)
        assert parser.parse_from_file(path)
        assert not trt.OnnxParser(Build().network, b.log).parse_from_file(path + ".none")
    x = numbers(2, 4, seed=12)
    same(infer(b.engine(), x=x)[0], np.maximum(x @ w + bias, 0))


def errors_of_a_parser_are_cleared():
    b = Build()
    parser = trt.OnnxParser(b.network, b.log)
    node = helper.make_node("NoSuchOperator", ["x"], ["y"], "strange")
    assert not parser.parse(_model([node], [("x", FLOAT, (2,))], [("y", FLOAT, (2,))]))
    assert parser.num_errors >= 1 and "NoSuchOperator" in parser.get_error(0).desc()
    assert parser.get_error(0).code() != trt.ErrorCode.SUCCESS
    parser.clear_errors()
    assert parser.num_errors == 0
    assert parser.supports_operator("Conv") and not parser.supports_operator("NoSuchOperator")


def weights_that_are_read_back():
    model, w, _ = _gemm()
    b = _parsed(model)
    found = []
    for k in range(b.network.num_layers):
        layer = b.network.get_layer(k)
        if layer.type == trt.LayerType.CONSTANT:
            layer.__class__ = trt.IConstantLayer
            found.append(np.asarray(layer.weights).reshape(tuple(layer.shape)))
    assert any(one.size == w.size and np.allclose(np.sort(one.ravel()), np.sort(w.ravel())) for one in found)


def integers_of_a_model_are_int32():
    nodes = [helper.make_node("Add", ["x", "c"], ["y"], "add")]
    b = _parsed(_model(nodes, [("x", INT64, (3,))], [("y", INT64, (3,))], [("c", np.array([1, 2, 3]))]))
    assert b.network.get_input(0).dtype == trt.int32
    x = np.array([4, 5, 6], np.int32)
    same(infer(b.engine(), x=x)[0], x + [1, 2, 3])


if __name__ == "__main__":
    main(dict(globals()))
