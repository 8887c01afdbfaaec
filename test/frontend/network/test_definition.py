"""The network itself: inputs, outputs, layers, names (section 2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layer_networks import CollectingLogger, constant, evaluate, new_network
from network_engines import built, cpu_config

import mlirt as trt
from mlirt.builder.compile import compile
from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidInputError, InvalidModelError
from mlirt.frontend.network.module import network_module


def test_the_flag_makes_the_batch_explicit() -> None:
    """tensorrt-features.md#2.1, 2.17."""
    network = new_network()
    assert (network.has_implicit_batch_dimension, network.has_explicit_precision) == (False, False)
    assert trt.Builder(trt.Logger()).create_network().has_implicit_batch_dimension


def test_input_with_a_taken_name_is_none() -> None:
    """tensorrt-features.md#2.2."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (-1, 3))
    assert (x.name, x.shape, x.dtype, x.is_network_input) == ("x", (-1, 3), trt.float32, True)
    assert network.add_input("x", trt.float32, (1,)) is None
    assert network.add_input("", trt.float32, (1,)) is None
    assert "needs a name of its own, got 'x'" in logger.text()


def test_what_is_no_tensor_and_no_type_is_refused_at_once() -> None:
    network = new_network()
    nothing: Any = None
    text: Any = "float"
    with pytest.raises(TypeError, match=r"add_input\(\): dtype: expected a DataType, got 'float'"):
        network.add_input("x", text, (1,))
    for shape in (3, (1, "n"), (1.5,), None):
        wrong: Any = shape
        with pytest.raises(TypeError, match=r"the shape of 'y': expected whole numbers such as"):
            network.add_input("y", trt.float32, wrong)
    with pytest.raises(TypeError, match="IConvolutionLayer: input 0: expected an ITensor, got None"):
        network.add_convolution_nd(nothing, 4, (3, 3), np.ones((4, 3, 3, 3), np.float32))
    with pytest.raises(TypeError, match=r"mark_output\(\): expected an ITensor, got None"):
        network.mark_output(nothing)
    with pytest.raises(TypeError, match="expected a network and a builder configuration, got None"):
        trt.Builder(trt.Logger()).build_serialized_network(network, nothing)
    assert (network.num_layers, network.num_inputs, network.num_outputs) == (0, 0, 0)


def test_outputs_are_marked_and_unmarked() -> None:
    """tensorrt-features.md#2.3, 2.4."""
    network = new_network()
    x = network.add_input("x", trt.float32, (2,))
    y = network.add_identity(x).get_output(0)
    network.mark_output(y)
    assert (network.num_outputs, network.get_output(0), y.is_network_output) == (1, y, True)
    network.unmark_output(y)
    network.unmark_output(x)
    assert network.num_outputs == 0
    with pytest.raises(InvalidModelError, match="Network must have at least one output"):
        network_module(network, RtContext())
    assert not network.mark_output_for_shapes(y)
    shape = network.add_shape(x).get_output(0)
    assert network.mark_output_for_shapes(shape)
    assert shape.is_shape_tensor
    assert network.unmark_output_for_shapes(shape)
    assert not network.unmark_output_for_shapes(shape)
    assert network.num_outputs == 0


def test_layers_are_indexed_and_iterated() -> None:
    """tensorrt-features.md#2.5."""
    network = new_network()
    x = network.add_input("x", trt.float32, (2,))
    relu = network.add_activation(x, trt.ActivationType.RELU)
    network.add_unary(relu.get_output(0), trt.UnaryOperation.EXP)
    assert (len(network), network.num_layers, network.num_inputs) == (2, 2, 1)
    assert network[0] == relu == network.get_layer(0)
    assert [layer.type for layer in network] == [trt.LayerType.ACTIVATION, trt.LayerType.UNARY]
    assert network[-1].get_input(0) is relu.get_output(0)


def test_tensor_that_is_read_is_not_removed() -> None:
    """tensorrt-features.md#2.6."""
    network = new_network()
    x, y = (network.add_input(name, trt.float32, (2,)) for name in "xy")
    network.mark_output(network.add_identity(x).get_output(0))
    network.remove_tensor(y)
    assert network.num_inputs == 1
    with pytest.raises(InvalidInputError, match="is read by"):
        network.remove_tensor(x)


def test_tensor_attributes() -> None:
    """tensorrt-features.md#2.7."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (-1, 3))
    assert x.allowed_formats == (1 << 12) - 1
    x.allowed_formats = 1 << int(trt.TensorFormat.LINEAR)
    assert (x.allowed_formats, x.location, x.broadcast_across_batch) == (1, trt.TensorLocation.DEVICE, False)
    x.location = trt.TensorLocation.HOST
    assert x.location is trt.TensorLocation.HOST
    assert "x: only shapes lie on the host" in logger.text(trt.Severity.WARNING)
    assert x.dynamic_range is None
    x.dynamic_range = (-1, 2)
    assert x.dynamic_range == (-1.0, 2.0)
    assert not x.set_dynamic_range(3, -3)
    x.reset_dynamic_range()
    assert x.dynamic_range is None
    assert x.get_dimension_name(0) is None
    x.set_dimension_name(0, "batch")
    assert x.get_dimension_name(0) == "batch"
    x.shape = (-1, 4)
    assert network.add_identity(x).get_output(0).shape == (-1, 4)


def test_dimensions_of_one_name_are_one() -> None:
    """tensorrt-features.md#2.7, 12.20."""
    network = new_network()
    x, y = (network.add_input(name, trt.float32, (-1,)) for name in "xy")
    for one in (x, y):
        one.set_dimension_name(0, "n")
    network.mark_output(network.add_elementwise(x, y, trt.ElementWiseOperation.SUM).get_output(0))
    assert 'tensor<?xf32, #trt.dims<["n"]>>' in str(network_module(network, RtContext()))


def test_layer_attributes() -> None:
    """tensorrt-features.md#2.8, 4.7."""
    network = new_network()
    x = network.add_input("x", trt.float32, (2,))
    layer = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM)
    assert layer.name == "(Unnamed Layer* 0) [ElementWise]"
    assert layer.get_output(0).name == "(Unnamed Layer* 0) [ElementWise]_output"
    layer.name = "twice"
    assert (layer.num_inputs, layer.num_outputs, layer.get_input(5)) == (2, 1, None)
    assert not layer.precision_is_set
    layer.precision = trt.float16
    assert (layer.precision_is_set, layer.precision) == (True, trt.float16)
    layer.reset_precision()
    assert not layer.precision_is_set
    layer.set_output_type(0, trt.float16)
    assert (layer.output_type_is_set(0), layer.get_output_type(0)) == (True, trt.float16)
    layer.reset_output_type(0)
    assert (layer.output_type_is_set(0), layer.get_output_type(0)) == (False, trt.float32)
    other = network.add_input("other", trt.float32, (2,))
    layer.set_input(1, other)
    assert layer.get_input(1) is other
    with pytest.raises(IndexError, match="twice: there is no input 2"):
        layer.set_input(2, other)


def test_class_of_a_layer_can_be_assigned() -> None:
    """tensorrt-features.md#2.9: a network gives layers as ILayer."""
    network = new_network()
    x = network.add_input("x", trt.float32, (2,))
    network.add_activation(x, trt.ActivationType.ELU).alpha = 0.5
    layer = network.get_layer(0)
    assert type(layer) is trt.ILayer
    assert layer.type is trt.LayerType.ACTIVATION
    layer.__class__ = trt.IActivationLayer
    assert isinstance(layer, trt.IActivationLayer)
    assert (layer.type, layer.alpha) == (trt.ActivationType.ELU, 0.5)


def test_every_layer_is_checked() -> None:
    """tensorrt-features.md#2.12, 2.13: a layer that reaches no output too; the message names it."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (2, 3))
    network.mark_output(network.add_identity(x).get_output(0))
    dead = network.add_elementwise(x, constant(network, np.ones((2, 4), np.float32)), trt.ElementWiseOperation.SUM)
    dead.name = "nobody reads this"
    assert str(dead.get_output(0).shape) == "(0)"
    assert "nobody reads this" in logger.text()
    with pytest.raises(InvalidModelError, match="nobody reads this"):
        network_module(network, RtContext())


def test_layers_may_be_put_in_between_later() -> None:
    network = new_network()
    x = network.add_input("x", trt.float32, (2,))
    last = network.add_unary(x, trt.UnaryOperation.NEG)
    twice = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM)
    assert last.get_output(0).shape == (2,)
    last.set_input(0, twice.get_output(0))
    network.mark_output(last.get_output(0))
    (found,) = evaluate(network, {"x": np.array([1, 2], np.float32)})
    np.testing.assert_array_equal(found, [-2, -4])


def test_layer_that_reads_itself_is_refused() -> None:
    network = new_network()
    x = network.add_input("x", trt.float32, (2,))
    first = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM)
    second = network.add_unary(first.get_output(0), trt.UnaryOperation.EXP)
    first.set_input(1, second.get_output(0))
    network.mark_output(second.get_output(0))
    with pytest.raises(InvalidModelError, match="depends on its own output"):
        network_module(network, RtContext())


def test_deprecated_forms_warn() -> None:
    """tensorrt-features.md#2.16, 2.20, 3.18."""
    network = new_network()
    x = network.add_input("x", trt.float32, (1, 1, 4, 4))
    kernel = np.ones((1, 1, 3, 3), np.float32)
    with pytest.warns(DeprecationWarning, match="Use add_convolution_nd instead"):
        layer = network.add_convolution(x, 1, (3, 3), kernel)
    with pytest.warns(DeprecationWarning, match="Use stride_nd instead"):
        layer.stride = (2, 2)
    assert layer.stride_nd == (2, 2)
    with pytest.warns(DeprecationWarning, match="Use add_pooling_nd instead"):
        network.add_pooling(x, trt.PoolingType.MAX, (2, 2))
    with pytest.warns(DeprecationWarning, match="Use add_padding_nd instead"):
        network.add_padding(x, (1, 1), (1, 1))
    with pytest.warns(DeprecationWarning, match="Use del instead"), network:
        pass


def test_names_of_weights() -> None:
    """tensorrt-features.md#2.19."""
    network = new_network()
    x = network.add_input("x", trt.float32, (1, 1, 32, 32))
    kernel = trt.Weights(np.arange(32 * 32, dtype=np.float32))
    assert network.set_weights_name(kernel, "filter")
    assert not network.set_weights_name(kernel, "filter")
    layer = network.add_convolution_nd(x, 1, (32, 32), kernel)
    layer.name = "conv"
    network.mark_output(layer.get_output(0))
    assert '#trt.weights<"conv.filter"' in str(network_module(network, RtContext()))


def test_a_serialized_network_is_built_elsewhere(tmp_path: Path) -> None:
    """tensorrt-features.md#2.18: IR text with all weights, also large ones, from which an engine gives the same."""
    logger = CollectingLogger()
    assert new_network(logger).serialize() is None
    assert "Network must have at least one output" in logger.text()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (1, 64))
    weights = np.random.default_rng(3).standard_normal((64, 80)).astype(np.float32)
    factor = network.add_constant(weights.shape, weights).get_output(0)
    none = trt.MatrixOperation.NONE
    layer = network.add_matrix_multiply(x, none, factor, none)
    layer.name, layer.get_output(0).name = "product", "y"
    network.mark_output(layer.get_output(0))
    blob = network.serialize()
    assert blob is not None
    assert blob.nbytes > weights.nbytes
    assert b'"product"' in bytes(blob)
    (tmp_path / "network.mlir").write_bytes(blob)
    given = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 64)
    found = compile(tmp_path / "network.mlir", target="cpu").run({"x": given})["y"]
    np.testing.assert_allclose(found, given @ weights, rtol=1e-4, atol=1e-5)
    own = built(network, cpu_config(logger), logger).engine.run({"x": given})["y"]
    np.testing.assert_array_equal(found, own)


def test_largest_tensor() -> None:
    """tensorrt-features.md#1.47."""
    network = new_network()
    x = network.add_input("x", trt.float32, (1 << 16, 1))
    y = network.add_input("y", trt.float32, (1, 1 << 16))
    layer = network.add_elementwise(x, y, trt.ElementWiseOperation.SUM)
    network.mark_output(layer.get_output(0))
    with pytest.raises(InvalidModelError, match="a tensor of 4294967296 elements"):
        network_module(network, RtContext())
