"""TensorRT's own plugins, found in the registry and computed by layers (tensorrt-features.md#19.2)."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
import pytest
from layer_networks import Array, CollectingLogger, new_network
from network_engines import built, cpu_config, parsed
from onnx import helper
from onnx_models import model_of, numbers

import mlirt as trt
from mlirt.dialects.box_suppression import kept_boxes

SPACE = "rows of built-in plugins"
X = numbers(2, 6, 3, 4)


@pytest.fixture(autouse=True)
def registered() -> Generator[None]:
    """The creators, in a namespace and in none, for the time of a test."""
    registry = trt.get_plugin_registry()
    before = list(registry.plugin_creator_list)
    assert trt.init_libnvinfer_plugins(trt.Logger(), SPACE)
    assert trt.init_libnvinfer_plugins(trt.Logger(), "")
    assert trt.init_libnvinfer_plugins(None, "")  # again: nothing is registered twice
    yield
    for creator in list(registry.plugin_creator_list):
        if creator not in before:
            registry.deregister_creator(creator)


def engine_of(name: str, fields: dict[str, Array], arrays: Sequence[Array], version: str = "1") -> trt.ICudaEngine:
    """An engine of a network with one plugin, made as programs do it."""
    creator = trt.get_plugin_registry().get_plugin_creator(name, version, SPACE)
    assert creator is not None
    assert {field.name for field in creator.field_names or ()} >= set(fields)
    given = trt.PluginFieldCollection([trt.PluginField(key, one) for key, one in fields.items()])
    plugin = creator.create_plugin(name, given)
    logger = CollectingLogger()
    network = new_network(logger)
    inputs = [network.add_input(f"x{k}", trt.DataType[_type(one)], one.shape) for k, one in enumerate(arrays)]
    layer = network.add_plugin_v2(inputs, plugin)
    layer.name = "built in"
    for k in range(layer.num_outputs):
        layer.get_output(k).name = f"y{k}"
        network.mark_output(layer.get_output(k))
    return built(network, cpu_config(logger), logger)


def _type(array: Array) -> str:
    return {"float32": "FLOAT", "int32": "INT32"}[array.dtype.name]


def outputs(name: str, fields: dict[str, Array], *arrays: Array, version: str = "1") -> list[Array]:
    engine = engine_of(name, fields, arrays, version)
    assert engine.num_layers > 0
    return list(engine.engine.run({f"x{k}": one for k, one in enumerate(arrays)}).values())


def real(*values: float) -> Array:
    return np.array(values, np.float32)


def whole(value: int) -> Array:
    return np.array([value], np.int32)


def standardized(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def test_functions_of_each_element() -> None:
    """tensorrt-features.md#19.2: Clip_TRT, LReLU_TRT and CustomGeluPluginDynamic."""
    (clipped,) = outputs("Clip_TRT", {"clipMin": real(-0.5), "clipMax": real(0.25)}, X)
    np.testing.assert_array_equal(clipped, X.clip(-0.5, 0.25))
    (leaky,) = outputs("LReLU_TRT", {"negSlope": real(0.25)}, X)
    np.testing.assert_array_equal(leaky, np.where(X > 0, X, X * np.float32(0.25)))
    bias = numbers(4, seed=5)
    (gelu,) = outputs("CustomGeluPluginDynamic", {"type_id": whole(0), "bias": bias}, X)
    z = X + bias
    expected = 0.5 * z * (1 + np.tanh(0.797884560803 * z + 0.035677408136 * z**3))
    np.testing.assert_allclose(gelu, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("version", ["1", "2"])
def test_instance_normalization(version: str) -> None:
    """tensorrt-features.md#19.2: coefficients are fields; a leaky relu follows where it is asked for."""
    scales, bias = numbers(6, seed=1), numbers(6, seed=2)
    fields = {"epsilon": real(1e-3), "scales": scales, "bias": bias, "relu": whole(1), "alpha": real(0.125)}
    (found,) = outputs("InstanceNormalization_TRT", fields, X, version=version)
    y = standardized(X, (2, 3), 1e-3) * scales[:, None, None] + bias[:, None, None]
    np.testing.assert_allclose(found, np.where(y > 0, y, y * 0.125), rtol=1e-4, atol=1e-5)


def test_other_normalizations() -> None:
    """tensorrt-features.md#19.2: GroupNormalizationPlugin and Normalize_TRT."""
    scale, bias = numbers(6, seed=1), numbers(6, seed=2)
    (groups,) = outputs("GroupNormalizationPlugin", {"eps": real(1e-3), "num_groups": whole(3)}, X, scale, bias)
    expected = standardized(X.reshape(2, 3, 2, 3, 4), (2, 3, 4), 1e-3).reshape(X.shape)
    np.testing.assert_allclose(groups, expected * scale[:, None, None] + bias[:, None, None], rtol=1e-4, atol=1e-5)
    fields = {"weights": scale, "acrossSpatial": whole(0), "channelShared": whole(0), "eps": real(1e-3)}
    (unit,) = outputs("Normalize_TRT", fields, X)
    expected = X / np.sqrt((X**2).sum(1, keepdims=True) + 1e-3) * scale[:, None, None]
    np.testing.assert_allclose(unit, expected, rtol=1e-5, atol=1e-6)
    fields |= {"weights": real(3), "acrossSpatial": whole(1), "channelShared": whole(1)}
    (unit,) = outputs("Normalize_TRT", fields, X)
    np.testing.assert_allclose(unit, 3 * X / np.sqrt((X**2).sum((1, 2, 3), keepdims=True) + 1e-3), rtol=1e-5, atol=1e-6)


def detections(boxes: Array, scores: Array, kept: int, threshold: float, overlap: float) -> list[Array]:
    """What EfficientNMS_TRT gives, by loops."""
    batch, _, classes = scores.shape
    found = [np.zeros((batch, 1), np.int32), np.zeros((batch, kept, 4), np.float32)]
    found += [np.zeros((batch, kept), np.float32), np.zeros((batch, kept), np.int32)]
    for image in range(batch):
        rows: list[tuple[float, int, Array]] = []
        for label in range(classes):
            order = np.argsort(-scores[image, :, label], kind="stable")
            ranked = boxes[image, order]
            allowed = scores[image, order, label] >= threshold
            stays = kept_boxes(ranked[None], allowed[None], kept, overlap)[0]
            rows += [(float(scores[image, order[k], label]), label, ranked[k]) for k in np.flatnonzero(stays)]
        rows.sort(key=lambda row: -row[0])
        found[0][image, 0] = min(len(rows), kept)
        for place, (score, label, box) in enumerate(rows[:kept]):
            found[1][image, place], found[2][image, place], found[3][image, place] = box, score, label
    return found


@pytest.mark.parametrize("kept", [5, 40])
@pytest.mark.parametrize("coding", [0, 1])
def test_detections(kept: int, coding: int) -> None:
    """tensorrt-features.md#19.2: EfficientNMS_TRT, with less and with more room than boxes that stay."""
    draw = np.random.default_rng(kept)
    corner, size = draw.uniform(0, 4, (2, 9, 2)), draw.uniform(1, 3, (2, 9, 2))
    boxes = np.concatenate([corner, corner + size], 2).astype(np.float32)
    given = np.concatenate([corner + size / 2, size], 2).astype(np.float32) if coding else boxes
    scores = draw.permutation(54).reshape(2, 9, 3).astype(np.float32) / 54
    fields = {
        "score_threshold": real(0.25), "iou_threshold": real(0.4), "max_output_boxes": whole(kept),
        "background_class": whole(-1), "score_activation": whole(0), "box_coding": whole(coding),
    }  # fmt: skip
    found = outputs("EfficientNMS_TRT", fields, given, scores)
    expected = detections(boxes, scores, kept, 0.25, 0.4)
    assert [one.dtype for one in found] == [one.dtype for one in expected]
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_a_node_of_a_model() -> None:
    """tensorrt-features.md#19.2: a node of the plugin's name, with the fields as attributes, among other nodes."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("LReLU_TRT", ["r"], ["l"], negSlope=0.5),
        helper.make_node("Clip_TRT", ["l"], ["y"], clipMin=0.0, clipMax=0.75),
    ]
    logger = CollectingLogger()
    network = parsed(model_of(nodes, {"x": ("float32", X.shape)}, ["y"]), logger)
    engine = built(network, cpu_config(logger), logger)
    np.testing.assert_array_equal(engine.engine.run({"x": X})["y"], X.clip(0, 0.75))


def test_what_a_plugin_cannot_be() -> None:
    """tensorrt-features.md#19.2: a field that is missing or none of the plugin's, and inputs that it has not."""
    creator = trt.get_plugin_registry().get_plugin_creator("Clip_TRT", "1", SPACE)
    assert creator is not None
    wrong = trt.PluginFieldCollection([trt.PluginField("slope", real(1))])
    with pytest.raises(Exception, match="plugin Clip_TRT has no field 'slope': expected some of clipMin, clipMax"):
        creator.create_plugin("c", wrong)
    with pytest.raises(AssertionError, match="plugin Clip_TRT: the field 'clipMax' is missing"):
        engine_of("Clip_TRT", {"clipMin": real(0)}, [X])
    with pytest.raises(AssertionError, match="plugin LReLU_TRT: expected 1 inputs, got 2"):
        engine_of("LReLU_TRT", {"negSlope": real(0)}, [X, X])
