"""OnnxParser: ONNX models become networks of layers (tensorrt-features.md#2.9, 11.1 to 11.8, 11.11, 11.12, 11.16)."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from layer_networks import CollectingLogger, evaluate, new_network
from onnx import parser

import mlirt as trt
from mlirt.dialects.context import RtContext
from mlirt.errors import UnmetConditionError, UnsupportedError
from mlirt.frontend.network.module import network_module
from mlirt.frontend.onnx.importer import import_model

CNN = """
<ir_version: 8, opset_import: ["" : 17]>
cnn (float[batch, 1, 8, 8] image, float[4, 1, 3, 3] w, float[4] b) => (float[batch, 64] scores) {
   conv = Conv <strides: ints = [2, 2], pads: ints = [1, 1, 1, 1]> (image, w, b)
   relu = Relu (conv)
   gelu = Gelu (relu)
   scores = Flatten (gelu)
}
"""


def cnn() -> onnx.ModelProto:
    """A convolution with constant weights, two activations."""
    model = parser.parse_model(CNN.replace('"" : 17', '"" : 20'))
    weights = np.arange(36, dtype=np.float32).reshape(4, 1, 3, 3) / 36
    for name, array in (("w", weights), ("b", np.ones(4, np.float32))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    for node, name in zip(model.graph.node, ("conv1", "relu1", "gelu1", "flat"), strict=True):
        node.name = name
    return model


def parsed(model: onnx.ModelProto) -> trt.INetworkDefinition:
    network = new_network()
    assert trt.OnnxParser(network, trt.Logger()).parse(model.SerializeToString())
    return network


def test_network_says_what_the_importer_says() -> None:
    """tensorrt-features.md#11.2, 11.11, 11.12."""
    network = parsed(cnn())
    assert (network.num_inputs, network.num_outputs) == (1, 1)
    assert (network.get_input(0).name, network.get_input(0).shape) == ("image", (-1, 1, 8, 8))
    assert network.get_input(0).get_dimension_name(0) == "batch"
    assert (network.get_output(0).name, network.get_output(0).shape) == ("scores", (-1, 64))
    first, second = RtContext(), RtContext()
    assert str(network_module(network, first)) == str(import_model(cnn(), second))
    assert dict(first.weights.items()).keys() == dict(second.weights.items()).keys()


def test_layers_can_be_read() -> None:
    """tensorrt-features.md#2.8, 2.9."""
    network = parsed(cnn())
    by_name = {layer.name: layer for layer in network}
    conv = by_name["conv1"]
    assert conv.type is trt.LayerType.CONVOLUTION
    conv.__class__ = trt.IConvolutionLayer
    assert isinstance(conv, trt.IConvolutionLayer)
    assert (conv.stride_nd, conv.pre_padding, conv.num_groups) == ((2, 2), (1, 1), 1)
    assert conv.num_inputs == 1, "it holds its weights"
    np.testing.assert_array_equal(conv.kernel, np.arange(36, dtype=np.float32) / 36)  # of one dimension, as TensorRT's
    own = {name for name in dir(conv) if not name.startswith("_") and not hasattr(trt.ILayer, name)}
    assert {"kernel", "stride_nd"} <= own
    assert not own & {"record", "TYPE"}
    np.testing.assert_array_equal(conv.bias, np.ones(4, np.float32))
    assert (conv.num_output_maps, conv.kernel_size_nd) == (4, (3, 3))
    gelu = by_name["gelu1"]
    gelu.__class__ = trt.IActivationLayer
    assert isinstance(gelu, trt.IActivationLayer)
    with pytest.raises(UnsupportedError, match="for which TensorRT has no name"):
        _ = gelu.type


def test_network_can_be_changed() -> None:
    """Layers of the model get other settings, other inputs and company."""
    network = parsed(cnn())
    conv, relu = (next(layer for layer in network if layer.name == name) for name in ("conv1", "relu1"))
    conv.__class__ = trt.IConvolutionLayer
    assert isinstance(conv, trt.IConvolutionLayer)
    conv.stride_nd = (4, 4)
    twice = network.add_elementwise(conv.get_output(0), conv.get_output(0), trt.ElementWiseOperation.SUM)
    relu.set_input(0, twice.get_output(0))
    network.get_input(0).shape = (2, 1, 8, 8)
    assert relu.get_output(0).shape == (2, 4, 2, 2)


@pytest.mark.parametrize("name", ["batch", "N"])
def test_layers_follow_the_dimensions_that_inputs_get(name: str) -> None:
    """tensorrt-features.md#2.2: what the model's layers say about its dimension `batch` holds for the length or name it
    has now.
    """
    network = parsed(cnn())
    network.get_input(0).shape = (-1, 1, 8, 8)
    network.get_input(0).set_dimension_name(0, name)
    assert f'-> (tensor<?x64xf32, #trt.dims<["{name}", "64"]>>' in str(network_module(network, RtContext()))
    assert "-> (tensor<2x64xf32>" in str(network_module(network, RtContext(), {"image": [2, 1, 8, 8]}))
    network.get_input(0).shape = (3, 1, 8, 8)
    assert network.get_output(0).shape == (3, 64)


def test_a_length_follows_from_one_that_is_a_formula() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 2] x, float[n, 2] y) => (float[m] z) {'
        " joined = Concat <axis: int = 0> (x, y) \n flat = Flatten <axis: int = 2> (joined) \n"
        " minus_one = Constant <value_ints: ints = [-1]> () \n z = Reshape (flat, minus_one) }"
    )
    network = parsed(model)
    network.get_input(0).shape = (3, 2)
    assert network.get_output(0).shape == (12,)
    assert "%y: tensor<3x2xf32>" in str(network_module(network, RtContext()))


def test_parser_is_a_context_manager() -> None:
    """tensorrt-features.md#2.14: as in TensorRT's older scripts."""
    with pytest.deprecated_call(), trt.OnnxParser(new_network(), trt.Logger()) as reader:
        assert reader.num_errors == 0


def test_results_are_those_of_the_model() -> None:
    pytest.importorskip("onnxruntime")
    from onnx_models import run_onnxruntime

    image = np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 1, 8, 8)
    (expected,) = run_onnxruntime(cnn(), {"image": image})
    (found,) = evaluate(parsed(cnn()), {"image": image})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_branches_are_one_layer() -> None:
    """tensorrt-features.md#11.13."""
    example = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "control_flow.py"))
    network = parsed(parser.parse_model(example["SUM_EVEN"]))
    assert trt.LayerType.PLUGIN_V2 in [layer.type for layer in network]
    items = np.array([2, 3, 4], np.int32)
    assert evaluate(network, {"items": items})[0] == 6


@pytest.mark.parametrize("outside", [False, True])
def test_a_convolution_in_a_branch_reads_its_weights(outside: bool) -> None:
    """tensorrt-features.md#11.13: also where a layer beside the conditional holds the same ones."""
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[1, 1, 4] x, bool chosen) => (float[1, 1, 2] y, float[1, 1, 2] z) <float[1, 1, 3] w = {1, 2, 3}> {
           y = If (chosen) <
             then_branch = then () => (float[1, 1, 2] t) { t = Conv (x, w) },
             else_branch = otherwise () => (float[1, 1, 2] o) { part = Conv (x, w) o = Neg (part) }
           >
           z = Conv (x, w)
        }
    """)
    if not outside:
        del model.graph.node[1], model.graph.output[1]
    network = parsed(model)
    x = np.array([[[1, 0, 2, -1]]], np.float32)
    wanted = np.array([[[7, 1]]], np.float32)
    for chosen in (True, False):
        y, *z = evaluate(network, {"x": x, "chosen": np.array(chosen)})
        np.testing.assert_array_equal(y, wanted if chosen else -wanted)
        assert len(z) == outside
        assert all(np.array_equal(one, wanted) for one in z)
    config = trt.Builder(trt.Logger()).create_builder_config()
    config.target = "cpu"
    assert trt.Builder(trt.Logger()).build_serialized_network(network, config) is not None


@pytest.mark.parametrize("result", ["[1, 1]", ""])
def test_a_branch_that_the_shapes_of_a_profile_contradict(result: str) -> None:
    """tensorrt-features.md#11.13: a run that takes it ends with what is wrong, as with a model of these shapes."""
    kept = int(bool(result))
    model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[1, n] x, bool chosen) => (float{result} y) <int64[2] pair = {{1, 2}}, int64[2] axes = {{0, 1}}> {{
           y = If (chosen) <
             then_branch = then () => (float{result} t) {{ t = ReduceSum <keepdims: int = {kept}> (x, axes) }},
             else_branch = otherwise () => (float{result} o) {{
                part = Reshape (x, pair)
                o = ReduceMax <axes: ints = [0, 1], keepdims: int = {kept}> (part)
             }}
           >
        }}
    """)
    logger = CollectingLogger()
    network, builder = new_network(logger), trt.Builder(logger)
    assert trt.OnnxParser(network, logger).parse(model.SerializeToString())
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    config.target = "cpu"
    profile.set_shape("x", (1, 3), (1, 3), (1, 3))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None, logger.text()
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine is not None
    x = np.array([[1, 2, 4]], np.float32)
    (found,) = engine.engine.run({"x": x, "chosen": np.array(True)}).values()
    assert found.tolist() == ([[7]] if kept else 7)
    with pytest.raises(UnmetConditionError, match="3 elements became 2"):
        engine.engine.run({"x": x, "chosen": np.array(False)})


def test_file(tmp_path: Path) -> None:
    """tensorrt-features.md#11.6."""
    path = tmp_path / "cnn.onnx"
    path.write_bytes(cnn().SerializeToString())
    for name in ("parse_from_file", "parse"):
        network = new_network()
        reader = trt.OnnxParser(network, trt.Logger())
        done = reader.parse_from_file(path) if name == "parse_from_file" else reader.parse(path.read_bytes(), path)
        assert done
        assert network.num_outputs == 1


def test_errors_are_kept() -> None:
    """tensorrt-features.md#11.2, 11.3."""
    logger = CollectingLogger()
    reader = trt.OnnxParser(new_network(logger), logger)
    assert not reader.parse(b"no model")
    assert reader.num_errors == 1
    error = reader.get_error(0)
    assert "not a readable protobuf" in error.desc()
    assert (error.code(), error.node()) == (trt.ErrorCode.INVALID_GRAPH, -1)
    assert str(error).endswith(error.desc())
    reader.clear_errors()
    assert reader.num_errors == 0
    assert "onnx_parser.py::parse" in logger.text()


def test_arguments_of_other_types() -> None:
    network: Any = new_network()
    with pytest.raises(TypeError, match=r"expected a model's bytes, got 'cnn.onnx'; parse_from_file reads a file"):
        trt.OnnxParser(network, trt.Logger()).parse("cnn.onnx")  # pyright: ignore[reportArgumentType]
    nothing: Any = None
    with pytest.raises(TypeError, match="network: expected an INetworkDefinition, got None"):
        trt.OnnxParser(nothing, trt.Logger())
    with pytest.raises(TypeError, match="logger: expected an ILogger, got None"):
        trt.OnnxParser(network, nothing)


def test_what_is_supported() -> None:
    """tensorrt-features.md#11.4."""
    reader = trt.OnnxParser(new_network(), trt.Logger())
    assert reader.supports_operator("Conv")
    assert not reader.supports_operator("Convolve")
    assert reader.supports_model(cnn().SerializeToString()) == (True, [([0, 1, 2, 3], True)])
    model = cnn()
    model.graph.node[1].op_type = "Convolve"
    assert reader.supports_model(model.SerializeToString()) == (False, [([0], True), ([1], False), ([2, 3], True)])


def test_types_that_tensorrt_has_no_word_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors keep their types on request, as nothing has to be narrowed."""
    monkeypatch.setenv("MLIRT_BEYOND_TENSORRT", "1")
    text = '<ir_version: 8, opset_import: ["" : 17]> g (int64[2] x) => (double[2] y) { y = Cast <to: int = 11> (x) }'
    network = parsed(parser.parse_model(text))
    types = [network.get_input(0).dtype, network.get_output(0).dtype]
    assert types == [trt.DataType.INT64, trt.DataType.DOUBLE]
    assert [trt.nptype(dtype)(3).nbytes for dtype in types] == [dtype.itemsize for dtype in types] == [8, 8]


def test_state_of_the_parser() -> None:
    """tensorrt-features.md#11.16."""
    assert trt.get_nv_onnx_parser_version() == 80503
    trt.shutdown_protobuf_library()


EXPANDED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 1] x, int64[2] shape) => (float[n, m] y) { y = Expand(x, shape) }
"""
COUNTED = """
<ir_version: 8, opset_import: ["" : 17]>
g (int64[4] x) => (int64[1, n] y) { y = NonZero(x) }
"""


ITERATED = """
<ir_version: 8, opset_import: ["" : 17]>
g (int64 count, float x) => (float[n] rows) {
    more = Constant<value = bool {1}>()
    end, rows = Loop(count, more, x) <body = body (int64 k, bool go, float a) => (bool on, float b, float row) {
        on = Identity(go)
        b = Add(a, a)
        row = Identity(b)
    }>
}
"""


@pytest.mark.parametrize(
    ("text", "shapes"),
    [(EXPANDED, ["shape"]), (COUNTED, []), (ITERATED, [])],
    ids=["Expand", "NonZero", "Loop"],
)
def test_inputs_that_are_read_as_shapes(text: str, shapes: list[str]) -> None:
    """tensorrt-features.md#6.1: sizes of a model's layer that are elements of an input; not those that are counted, and
    not the iterations of a loop (7.2: its count may be data).
    """
    network = parsed(parser.parse_model(text))
    inputs = [network.get_input(k) for k in range(network.num_inputs)]
    assert [tensor.name for tensor in inputs if tensor.is_shape_tensor] == shapes
