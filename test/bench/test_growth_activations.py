"""Bytes of arenas, for each reason for which they were larger than what is alive: counted, nothing is compiled."""

import sys
from pathlib import Path

import growth
import numpy as np
import onnx
import pytest
from convolutional_networks import ConvolutionalWriter
from graph_writer import GraphWriter, floats
from growth_activation_networks import densenet, unet
from growth_activations import Case, manifest_for, planned
from growth_live_sets import largest_live_set

from mlirt.runtime.shape_binding import ShapeBinder


def _case(model: onnx.ModelProto, *shape: int, is_open: bool = False) -> Case:
    return Case("case", model, {model.graph.input[0].name: np.ones(shape, np.float32)}, is_open)


def _pyramid() -> onnx.ModelProto:
    """Convolutions of images of five sizes, each of which had a slot of its own for its border."""
    write, x = ConvolutionalWriter(0), "x"
    for level in range(5):
        names = (f"conv{level}", f"norm{level}")
        x = write.convolution(x, (16, 16), names, 5, 2 if level else 1, activation="relu")
    return write.model("pyramid", [floats("x", "n", 16, 128, 128)], [floats(x, "n", 16, 8, 8)])


@pytest.mark.parametrize("is_open", [False, True])
def test_borders_take_no_memory_of_their_own(is_open: bool) -> None:
    case = _case(_pyramid(), 4, 16, 128, 128, is_open=is_open)
    manifest = manifest_for(case, "cpu")
    binding = ShapeBinder(manifest, 4).bind([(4, 16, 128, 128)])
    with_borders = sum(binding.sizes[i] for i, one in enumerate(manifest.buffers) if one.halo is not None)
    assert binding.rewritten.any()
    assert binding.arena_bytes <= 1.05 * binding.live_bytes
    assert with_borders > binding.live_bytes


def _convolution() -> onnx.ModelProto:
    write = GraphWriter(0)
    x = write.node("Conv", ["x", write.normal("w", (64, 64, 3, 3), 0.05)], pads=[1] * 4)
    return write.model("convolution", [floats("x", 1, 64, 256, 256)], [floats(x, 1, 64, 256, 256)])


def test_scratch_is_for_what_is_under_way_and_not_for_whole_images() -> None:
    manifest = manifest_for(_case(_convolution(), 1, 64, 256, 256), "cpu")
    assert any("winograd" in kernel.name for kernel in manifest.kernels)
    sizes = [ShapeBinder(manifest, parts).bind([(1, 64, 256, 256)]).arena_bytes for parts in (1, 2, 4, 32)]
    each = sizes[1] - sizes[0]
    assert 0 < each <= 1_300_000
    assert sizes[2] - sizes[1] == pytest.approx(2 * each, abs=512)
    assert sizes[3] - sizes[2] == pytest.approx(28 * each, abs=512)


def test_products_pack_a_panel_for_each_part() -> None:
    write = GraphWriter(0)
    x = write.node("MatMul", ["x", write.node("Transpose", ["x"], perm=[0, 2, 1])])
    y = write.node("Relu", [x])
    model = write.model("gram", [floats("x", 64, 96, 100)], [floats(y, 64, 96, 96)])
    manifest = manifest_for(_case(model, 64, 96, 100), "cpu")
    one, four = (ShapeBinder(manifest, parts).bind([(64, 96, 100)]).arena_bytes for parts in (1, 4))
    assert four - one <= 3 * 100 * 64 * 4 + 512


@pytest.mark.parametrize(("target", "is_open"), [("cpu", False), ("cpu", True), ("cuda", False)])
def test_small_forms_of_the_networks(target: str, is_open: bool) -> None:
    batch = "batch" if is_open else 2
    networks = [(unet(batch, 64, 16, 1), (2, 3, 64, 64)), (densenet(batch, (3, 2)), (2, 3, 224, 224))]
    for model, shape in networks if target == "cpu" else networks[:1]:
        memory = planned(_case(model, *shape, is_open=is_open), target)
        assert memory.arena <= 1.15 * memory.live


def test_the_live_set_of_a_graph() -> None:
    """Two of the values are alive while the sum of them is computed; what follows from constants does not count."""
    write = GraphWriter(0)
    a = write.node("Relu", ["x"])
    b = write.node("Exp", [a])
    constant = write.node("Neg", [write.scalar("one", 1.0)])
    c = write.node("Add", [a, write.node("Mul", [b, constant])])
    model = write.model("graph", [floats("x", 4, 32)], [floats(write.node("Relu", [c], "y"), 4, 32)])
    assert largest_live_set(model, {"x": np.ones((4, 32), np.float32)}) == 3 * 512


def test_a_run_of_the_part(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "small.onnx").write_bytes(_pyramid().SerializeToString())
    command = ["growth.py", "activations", str(tmp_path), "--only", "small", "--targets", "cpu", "--shapes", "static"]
    monkeypatch.setattr(sys, "argv", command)
    growth.main()
    told = capsys.readouterr().out
    assert "small, static" in told
    assert "above 1.15" in told
