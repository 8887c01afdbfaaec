"""Programs that parse ONNX models."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import os
import tempfile

import numpy as np
import onnx
import tensorrt as trt
from engine_runs import Build, infer, main, numbers, same
from onnx import TensorProto, helper, numpy_helper


def _model(nodes, inputs, outputs, initializers=(), opset=13):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value(n, t, s) for n, t, s in inputs], [value(n, t, s) for n, t, s in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in initializers],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def _parsed(model):
    b = Build()
    parser = trt.OnnxParser(b.network, b.log)
    assert parser.parse(model.SerializeToString()), [str(parser.get_error(i)) for i in range(parser.num_errors)]
    return b


F = TensorProto.FLOAT


def model_keeps_its_names():
    w = numbers(4, 3, 3, 3)
    model = _model(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="first"),
            helper.make_node("Relu", ["c"], ["y"], name="second"),
        ],
        [("x", F, (1, 3, 6, 6))], [("y", F, (1, 4, 4, 4))], [("w", w)],
    )  # fmt: skip
    b = _parsed(model)
    assert [b.network.get_layer(i).name for i in range(b.network.num_layers)] == ["first", "second"]
    assert b.network.get_layer(0).get_output(0).name == "c" and b.network.get_output(0).name == "y"
    x = numbers(1, 3, 6, 6, seed=1)
    wanted = np.zeros((1, 4, 4, 4))
    for i in range(3):
        for j in range(3):
            wanted += np.einsum("nchw,kc->nkhw", x[:, :, i : i + 4, j : j + 4], w[:, :, i, j])
    same(b.run(x=x), np.maximum(wanted, 0), 1e-4, 1e-5)


def model_with_long_integers():
    model = _model(
        [helper.make_node("Gather", ["table", "i"], ["y"])],
        [("i", TensorProto.INT64, (3,))], [("y", F, (3, 2))], [("table", numbers(5, 2))],
    )  # fmt: skip
    b = _parsed(model)
    assert b.network.get_input(0).dtype == trt.int32
    same(b.run(i=np.array([4, 0, 2], np.int32)), numbers(5, 2)[[4, 0, 2]])


def model_with_dynamic_batch():
    model = _model(
        [helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)], [("x", F, ("batch", 4))], [("y", F, ("batch", 2))],
        [("w", numbers(2, 4))],
    )  # fmt: skip
    b = _parsed(model)
    assert tuple(b.network.get_input(0).shape) == (-1, 4)
    profile = b.builder.create_optimization_profile()
    profile.set_shape("x", (1, 4), (2, 4), (8, 4))
    b.config.add_optimization_profile(profile)
    engine = b.engine()
    for rows in (1, 7):
        x = numbers(rows, 4, seed=rows)
        same(infer(engine, x=x)[0], x @ numbers(2, 4).T, 1e-4, 1e-5)


def model_file_with_data_beside_it():
    w = numbers(64, 64)
    model = _model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, (2, 64))], [("y", F, (2, 64))], [("w", w)]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.onnx")
        onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        b = Build()
        parser = trt.OnnxParser(b.network, b.log)
        assert parser.parse_from_file(path), parser.get_error(0).desc()
        x = numbers(2, 64, seed=1)
        same(b.run(x=x), x @ w, 1e-4, 1e-4)


def model_with_errors():
    b = Build()
    parser = trt.OnnxParser(b.network, b.log)
    assert not parser.parse(b"nonsense") and parser.num_errors > 0
    parser.clear_errors()
    assert parser.num_errors == 0
    model = _model([helper.make_node("Nope", ["x"], ["y"])], [("x", F, (2,))], [("y", F, (2,))])
    assert not parser.parse(model.SerializeToString())
    error = parser.get_error(0)
    assert error.node() == 0 and error.desc() and isinstance(error.code(), trt.ErrorCode) and error.line() >= 0
    assert not parser.supports_operator("Nope") and parser.supports_operator("Conv")


def model_support_by_parts():
    model = _model(
        [
            helper.make_node("Relu", ["x"], ["a"]),
            helper.make_node("Nope", ["a"], ["b"]),
            helper.make_node("Neg", ["b"], ["y"]),
        ],
        [("x", F, (2,))], [("y", F, (2,))],
    )  # fmt: skip
    b = Build()
    good, parts = trt.OnnxParser(b.network, b.log).supports_model(model.SerializeToString())
    assert not good and ([0], True) in [(list(nodes), ok) for nodes, ok in parts], parts


def model_with_if():
    value = helper.make_tensor_value_info
    then = helper.make_graph([helper.make_node("Neg", ["x"], ["t"])], "then", [], [value("t", F, (2,))])
    other = helper.make_graph([helper.make_node("Relu", ["x"], ["e"])], "else", [], [value("e", F, (2,))])
    model = _model(
        [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        [("x", F, (2,)), ("c", TensorProto.BOOL, ())], [("y", F, (2,))],
    )  # fmt: skip
    engine, x = _parsed(model).engine(), np.array([-1, 2], np.float32)
    same(infer(engine, x=x, c=np.array(True))[0], [1, -2])
    same(infer(engine, x=x, c=np.array(False))[0], [0, 2])


def model_refitted_by_its_initializers():
    model = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, (2, 3))], [("y", F, (2, 4))],
                   [("w", numbers(3, 4))])  # fmt: skip
    b = _parsed(model)
    b.config.set_flag(trt.BuilderFlag.REFIT)
    engine = b.engine()
    refitter = trt.Refitter(engine, b.log)
    assert refitter.get_all_weights() == ["w"]
    w, x = numbers(3, 4, seed=3), numbers(2, 3, seed=4)
    assert refitter.set_named_weights("w", w) and refitter.refit_cuda_engine()
    same(infer(engine, x=x)[0], x @ w, 1e-4, 1e-5)


def axes_whose_number_is_an_input():
    """The parser takes them from initializers alone, and says so."""
    model = _model(
        [
            helper.make_node("Relu", ["x"], ["a"]),
            helper.make_node("ReduceSum", ["a", "axes"], ["y"], keepdims=0),
        ],
        [("x", F, (2, 3, 4)), ("axes", TensorProto.INT64, (-1,))], [("y", F, None)],
    )  # fmt: skip
    b = Build()
    parser = trt.OnnxParser(b.network, b.log)
    assert not parser.parse(model.SerializeToString())
    assert parser.get_error(0).node() == 1 and "initializer" in parser.get_error(0).desc()


def convolutions_hold_their_weights():
    w, bias = numbers(4, 3, 3, 3), numbers(4, seed=1)
    model = _model(
        [helper.make_node("Conv", ["x", "w", "b"], ["y"], name="conv", strides=[2, 2], pads=[1, 0, 1, 0])],
        [("x", F, (1, 3, 7, 7))], [("y", F, (1, 4, 4, 3))], [("w", w), ("b", bias)],
    )  # fmt: skip
    b = _parsed(model)
    layer = b.network[0]
    layer.__class__ = trt.IConvolutionLayer
    assert len(b.network) == 1 and layer.num_inputs == 1
    assert tuple(layer.stride_nd) == (2, 2) and tuple(layer.pre_padding) == (1, 0)
    assert layer.num_output_maps == 4 and tuple(layer.kernel_size_nd) == (3, 3) and layer.num_groups == 1
    np.testing.assert_array_equal(np.asarray(layer.kernel).reshape(w.shape), w)
    np.testing.assert_array_equal(np.asarray(layer.bias), bias)
    b.config.set_flag(trt.BuilderFlag.REFIT)
    engine = b.engine()
    refitter = trt.Refitter(engine, b.log)
    assert sorted(refitter.get_all_weights()) == ["b", "w"]
    layers, roles = refitter.get_all()
    assert set(zip(layers, roles)) == {("conv", trt.WeightsRole.KERNEL), ("conv", trt.WeightsRole.BIAS)}
    assert refitter.set_named_weights("w", np.zeros_like(w)) and refitter.set_named_weights("b", bias)
    assert refitter.refit_cuda_engine()
    found = infer(engine, x=numbers(1, 3, 7, 7))[0]
    same(found, np.broadcast_to(bias[:, None, None], (1, 4, 4, 3)))


if __name__ == "__main__":
    main(globals())
