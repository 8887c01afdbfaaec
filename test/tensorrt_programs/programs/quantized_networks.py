"""Programs with quantize and dequantize layers: scales, axes, what passes through them, and what a model brings."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import numpy as np
import onnx
import tensorrt as trt
from engine_runs import Build, infer, main, numbers, same
from onnx import helper, numpy_helper


def _build():
    b = Build()
    b.config.set_flag(trt.BuilderFlag.INT8)
    return b


def _scale(b, values):
    values = np.asarray(values, np.float32)
    return b.network.add_constant(values.shape, values).get_output(0)


def _quantized(b, x, scale, axis=None):
    q = b.network.add_quantize(x, _scale(b, scale))
    if axis is not None:
        q.axis = axis
    d = b.network.add_dequantize(q.get_output(0), _scale(b, scale))
    if axis is not None:
        d.axis = axis
    return d.get_output(0)


def _rounded(x, scale):
    return np.clip(np.rint(x / np.float32(scale)), -128, 127) * np.float32(scale)


def pair_of_one_scale():
    b, x = _build(), numbers(1, 3, 4, 4, seed=1) * 3
    same(b.run(_quantized(b, b.network.add_input("x", trt.float32, x.shape), 0.05), x=x), _rounded(x, 0.05))


def pair_of_a_scale_for_each_channel():
    b, x = _build(), numbers(3, 4, 2, seed=2)
    scales = np.array([0.01, 0.02, 0.5, 1.0], np.float32)
    constant = b.network.add_constant(x.shape, x).get_output(0)
    zero = b.network.add_input("zero", trt.float32, x.shape)
    y = b.network.add_elementwise(_quantized(b, constant, scales, 1), zero, trt.ElementWiseOperation.SUM)
    same(b.run(y.get_output(0), zero=np.zeros_like(x)), _rounded(x, scales[None, :, None]))


def scales_are_positive():
    b = _build()
    assert b.refused(_quantized(b, b.network.add_input("x", trt.float32, (2, 2)), -0.5))
    b = _build()
    assert b.refused(_quantized(b, b.network.add_input("x", trt.float32, (2, 2)), 0.0))


def scales_of_channels_are_for_weights():
    b = _build()
    assert b.refused(_quantized(b, b.network.add_input("x", trt.float32, (1, 2, 2, 2)), [0.1, 0.2], 1))


def scales_as_many_as_channels():
    b = _build()
    assert b.refused(_quantized(b, b.network.add_input("x", trt.float32, (1, 3, 2, 2)), [0.1, 0.2], 1))


def convolution_of_quantized_numbers():
    b, x, w = _build(), numbers(1, 4, 6, 6, seed=3), numbers(8, 4, 3, 3, seed=4)
    sx, sw = 0.03, np.abs(w).reshape(8, -1).max(1) / 127
    image = _quantized(b, b.network.add_input("x", trt.float32, x.shape), sx)
    kernel = _quantized(b, b.network.add_constant(w.shape, w).get_output(0), sw, 0)
    conv = b.network.add_convolution_nd(image, 8, (3, 3), trt.Weights())
    conv.set_input(1, kernel)
    qx, qw = _rounded(x, sx), _rounded(w, sw[:, None, None, None].astype(np.float32))
    y = sum(
        np.einsum("nchw,kc->nkhw", qx[:, :, i : i + 4, j : j + 4], qw[:, :, i, j]) for i in range(3) for j in range(3)
    )
    same(b.run(conv.get_output(0), x=x), y, 1e-4, 1e-4)


def product_of_quantized_numbers():
    b, x, w = _build(), numbers(4, 16, seed=5), numbers(16, 8, seed=6)
    left = _quantized(b, b.network.add_input("x", trt.float32, x.shape), 0.02)
    right = _quantized(b, b.network.add_constant(w.shape, w).get_output(0), 0.025)
    none = trt.MatrixOperation.NONE
    y = b.network.add_matrix_multiply(left, none, right, none)
    same(b.run(y.get_output(0), x=x), _rounded(x, 0.02) @ _rounded(w, 0.025), 1e-4, 1e-4)


def pooling_between_pairs():
    b, x = _build(), numbers(1, 2, 4, 4, seed=7)
    y = b.network.add_pooling_nd(
        _quantized(b, b.network.add_input("x", trt.float32, x.shape), 0.04), trt.PoolingType.MAX, (2, 2)
    )
    y.stride_nd = (2, 2)
    wanted = _rounded(x, 0.04).reshape(1, 2, 2, 2, 2, 2).max((3, 5))
    same(b.run(_quantized(b, y.get_output(0), 0.04), x=x), _rounded(wanted, 0.04))


def transposition_between_pairs():
    b, x = _build(), numbers(2, 3, 4, seed=8)
    y = b.network.add_shuffle(_quantized(b, b.network.add_input("x", trt.float32, x.shape), 0.04))
    y.first_transpose = (2, 0, 1)
    same(b.run(_quantized(b, y.get_output(0), 0.04), x=x), _rounded(x.transpose(2, 0, 1), 0.04))


def sum_of_pairs_with_their_own_scales():
    b, x = _build(), numbers(2, 8, seed=9)
    image = b.network.add_input("x", trt.float32, x.shape)
    y = b.network.add_elementwise(_quantized(b, image, 0.1), _quantized(b, image, 0.01), trt.ElementWiseOperation.SUM)
    same(b.run(y.get_output(0), x=x), _rounded(x, 0.1) + _rounded(x, 0.01))


def quantized_weights_are_small():
    def size(quantized):
        b, w = _build() if quantized else Build(), numbers(128, 512, seed=10)
        x = b.network.add_input("x", trt.float32, (1, 512))
        constant = b.network.add_constant(w.shape, w).get_output(0)
        if quantized:
            x, constant = _quantized(b, x, 0.02), _quantized(b, constant, np.full(128, 0.03), 0)
        operations = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE
        y = b.network.add_matrix_multiply(x, operations[0], constant, operations[1])
        b.network.mark_output(y.get_output(0))
        return b.builder.build_serialized_network(b.network, b.config).nbytes

    assert size(False) - size(True) > 128 * 512 * 2


def _model(zero_point):
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 8))
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (1, 8))
    given = [numpy_helper.from_array(np.float32(0.05), "s"), numpy_helper.from_array(np.int8(zero_point), "z")]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], "quantize"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], "dequantize"),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


def model_with_a_pair():
    b, x = _build(), numbers(1, 8, seed=11) * 4
    parser = trt.OnnxParser(b.network, b.log)
    assert parser.parse(_model(0)), parser.get_error(0)
    kinds = [layer.type for layer in b.network]
    assert trt.LayerType.QUANTIZE in kinds and trt.LayerType.DEQUANTIZE in kinds
    plan = b.builder.build_serialized_network(b.network, b.config)
    engine = trt.Runtime(b.log).deserialize_cuda_engine(plan)
    same(infer(engine, x=x)[0], _rounded(x, 0.05))


def layers_show_their_axes():
    b = _build()
    x = b.network.add_constant((2, 3), numbers(2, 3)).get_output(0)
    q = b.network.add_quantize(x, _scale(b, [0.1, 0.2, 0.3]))
    q.axis = 1
    d = b.network.add_dequantize(q.get_output(0), _scale(b, [0.1, 0.2, 0.3]))
    d.axis = 1
    assert (q.type, d.type) == (trt.LayerType.QUANTIZE, trt.LayerType.DEQUANTIZE)
    assert (q.axis, d.axis, q.num_inputs) == (1, 1, 2)
    assert q.get_output(0).dtype == trt.int8 and d.get_output(0).dtype == trt.float32


if __name__ == "__main__":
    main(dict(globals()))
