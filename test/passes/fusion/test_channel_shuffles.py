"""A unit of ShuffleNet for the CPU: its shuffle is one launch at most, and results are equal to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlirt

RNG = np.random.default_rng(11)


def _unit(path: Path, inputs: int, channels: int, groups: int) -> Path:
    """A grouped 1 x 1 convolution, a shuffle of its channels, and a depthwise convolution."""
    shapes = {"k": (channels, inputs // groups, 1, 1), "d": (channels, 1, 3, 3)}
    weights = {name: RNG.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
    split = np.array([0, groups, channels // groups, 7, 9], np.int64)
    joined = np.array([0, channels, 7, 9], np.int64)
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], group=groups),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Reshape", ["r", "split"], ["s"]),
        helper.make_node("Transpose", ["s"], ["t"], perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["t", "joined"], ["j"]),
        helper.make_node("Conv", ["j", "d"], ["y"], group=channels, pads=[1, 1, 1, 1]),
    ]
    arrays = {**weights, "split": split, "joined": joined}
    graph = helper.make_graph(
        nodes,
        "unit",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", inputs, 7, 9])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", channels, 7, 9])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("sizes", "gathers"),
    [((136, 136, 4), 1), ((24, 56, 4), 0), ((48, 48, 1), None)],
    ids=["gathered", "folded into the convolution", "nothing to shuffle"],
)
def test_a_shuffle_is_at_most_one_launch(tmp_path: Path, sizes: tuple[int, int, int], gathers: int | None) -> None:
    model = _unit(tmp_path / "unit.onnx", *sizes)
    feeds = {"x": RNG.standard_normal((2, sizes[0], 7, 9), dtype=np.float32)}
    engine = mlirt.compile(model, target="cpu")
    plain = mlirt.compile(
        model,
        target="cpu",
        pipeline=mlirt.Pipeline().without("fuse-channel-shuffles").without("fold-gather-into-convolution"),
    )
    families = [layer["family"] for layer in engine.layers]
    assert families.count("gather_channels") == (gathers or 0)
    assert families.count("convolution") == 1
    assert "pointwise" not in families
    if gathers is not None:
        assert len(families) < len(plain.layers)
    np.testing.assert_array_equal(engine.run(feeds)["y"], plain.run(feeds)["y"])
