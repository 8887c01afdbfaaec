"""rt-report of ONNX models: every node is found, whatever became of it, and the page tells what the build did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from report_page import Page

from mlirt.tools.rt_exec import main as rt_exec
from mlirt.tools.rt_report import main

HOSTILE = "</script><img src=x onerror=alert(1)>"


def _save(path: Path, nodes: list[Any], arrays: dict[str, np.ndarray[Any, Any]], shape: list[Any]) -> str:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "network", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    path.write_bytes(model.SerializeToString())
    return str(path)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two convolutions, one of a hostile name, an identity that leaves no op, and a node without a name."""
    weights = np.random.default_rng(0).standard_normal((8, 8, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], HOSTILE),
        helper.make_node("Identity", ["b"], ["c"], "nothing"),
        helper.make_node("MaxPool", ["c"], ["d"], "half", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["d", "w"], ["e"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["e", "d"], ["y"], "sum"),
    ]
    folder = tmp_path_factory.mktemp("model")
    return _save(folder / "network.onnx", nodes, {"w": weights}, ["n", 8, "h", "h2"])


@pytest.fixture(scope="module")
def page(model: str, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("page") / "page.html"
    flags = ["--target", "cpu", "--runs", "3", "--compare", model]
    assert main([model, *flags, "-o", str(path)]) == 0
    return Page.of(path)


def _layers(data: dict[str, Any], view: int) -> set[str]:
    return {data["texts"][name] for node in data["views"][view]["nodes"] for name in node["n"]}


def test_every_node_of_the_model_can_be_found(page: Page) -> None:
    named = [["first", "Conv"], [HOSTILE, "Relu"], ["nothing", "Identity"], ["half", "MaxPool"], ["Conv_4", "Conv"]]
    assert page.data["model"] == [*named, ["sum", "Add"]]
    kept = {"first", HOSTILE, "half", "Conv_4", "sum"}
    assert all(kept == _layers(page.data, view) for view in range(4))


def test_a_hostile_name_in_every_section(page: Page) -> None:
    assert "img" not in page.seen
    assert not page.handlers
    assert not page.loads
    assert HOSTILE not in page.text
    assert "&lt;/script&gt;&lt;img src=x" in page.text


def test_sections_of_a_build(page: Page) -> None:
    sections = {"network", "tensors", "comparison", "launches", "roofline", "memory", "build", "tactics", "kernels"}
    assert sections <= set(page.names)
    assert {target for target in page.targets if not target.startswith("source-")} <= set(page.names)
    assert "kernel.func @convolution" in page.text
    assert "def convolution" in page.text
    assert "convert-fused-to-kernel" in page.text
    assert "cpu_amx" in page.text, "a tactic that was considered"
    assert "cpu_tiles:" in page.text, "a tile that was considered"
    assert "[1, 8, 64, 64]" in page.text, "shapes that nobody gave are such that the network can be run"


def test_times_are_those_of_the_launches(page: Page) -> None:
    views = page.data["views"]
    assert all(("t" in node) == ("u" in node) for view in views for node in view["nodes"])
    assert all(node["t"] > 0 for node in views[2]["nodes"] if "u" in node)


def test_equal_engines_differ_in_nothing_but_times(page: Page) -> None:
    part = page.text.partition('<section id="comparison"')[2].partition("</section>")[0]
    assert "launches here" in part
    rows = part.count("<tr>") - 1
    assert rows == len({tuple(node["n"]) for node in page.data["views"][2]["nodes"] if "u" in node})


def test_rt_exec_writes_the_same_page(model: str, tmp_path: Path) -> None:
    quick = ["--iterations=2", "--duration=0", "--warmUp=0", "--shapes=x:2x8x6x4"]
    plan, report = tmp_path / "network.plan", tmp_path / "page.html"
    assert rt_exec([f"--onnx={model}", f"--saveEngine={plan}", f"--report={report}", *quick, "--target=cpu"]) == 0
    found = Page.of(report)
    assert "[2, 8, 6, 4]" in found.text
    assert [view["title"].partition(":")[0] for view in found.data["views"]] == ["Before", "Fused", "After"]
    again = tmp_path / "again.html"
    assert rt_exec([f"--loadEngine={plan}", f"--report={again}", *quick]) == 0
    assert [view["title"].partition(":")[0] for view in Page.of(again).data["views"]] == ["After"]


def test_a_missing_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.onnx"), "-o", str(tmp_path / "page.html")]) == 1
    assert "there is no such file" in capsys.readouterr().err


def test_scales_of_a_quantised_network(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).integers(-9, 9, (8, 8, 3, 3)).astype(np.int8)
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "w": weights,
        "ws": np.array(0.25, np.float32),
        "xs": np.array(0.5, np.float32),
        "zero": np.array(0, np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "zero"], ["q"], "to_bytes"),
        helper.make_node("DequantizeLinear", ["q", "xs", "zero"], ["d"], "from_bytes"),
        helper.make_node("DequantizeLinear", ["w", "ws", "zero"], ["f"], "weights"),
        helper.make_node("Conv", ["d", "f"], ["y"], "conv", pads=[1, 1, 1, 1]),
    ]
    model = _save(tmp_path / "bytes.onnx", nodes, arrays, [1, 8, 4, 4])
    assert main([model, "--target", "cpu", "--runs", "0", "-o", str(tmp_path / "page.html")]) == 0
    found = Page.of(tmp_path / "page.html")
    part = found.text.partition('<section id="quantisation"')[2].partition("</section>")[0]
    assert "to_bytes" in part
    assert '<td class="n">0.5</td>' in part
    assert "63.5" in part, "the largest number of 8 bits with this scale"
