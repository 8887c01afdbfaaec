"""The growth bench: networks of the size that was asked for, fits, and a small run of the part about shapes."""

import sys
from collections.abc import Callable
from unittest import mock
from xml.etree import ElementTree

import growth
import growth_requests
import numpy as np
import onnx
import pytest
from growth_counts import calls_of_build, growing
from growth_fit import exponent, numbers
from growth_networks import KINDS, dynamic_images
from plot_growth import curves_of, picture
from request_networks import NETWORKS

from mlirt.dialects import repeated_verification, verification
from mlirt.kernels.lib.tactics import lowering
from mlirt.kernels.lib.tactics import registry as tactics
from mlirt.runtime import shape_binding

check_model: Callable[[onnx.ModelProto], None] = getattr(onnx.checker, "check_model")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nodes", [40, 400])
def test_networks_have_the_nodes_that_were_asked_for(kind: str, nodes: int) -> None:
    model = KINDS[kind](nodes)
    check_model(model)
    assert 0.6 * nodes <= len(model.graph.node) <= 1.4 * nodes


def test_an_exponent_is_the_slope_between_logarithms() -> None:
    assert exponent([1, 10, 100], [3, 300, 30_000]) == pytest.approx(2)
    assert np.isnan(exponent([10], [1]))


def test_lists_of_numbers() -> None:
    assert numbers("1,64") == [1, 64]
    with pytest.raises(ValueError, match="from 1 on"):
        numbers("4,0")


def test_a_small_run_of_the_shapes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    check_model(dynamic_images(10))
    command = ["growth.py", "shapes", "--launches", "4", "--shapes", "1,3", "--rounds", "1", "--alone"]
    monkeypatch.setattr(sys, "argv", command)
    growth.main()
    told = capsys.readouterr().out
    assert "first run of a shape" in told
    assert "3 by turns" in told
    assert "kept: 34 programs" in told


@pytest.mark.parametrize(
    ("kind", "target", "sizes"),
    [
        ("chain", "cpu", (24, 96)),
        ("fan-out", "cpu", (24, 96)),
        ("hourglass", "cpu", (24, 96)),
        ("chain", "cuda", (24, 96)),
        ("fan-out", "cuda", (12, 36)),
        ("hourglass", "cuda", (24, 96)),
    ],
)
def test_no_function_is_called_more_often_than_the_nodes_grow(kind: str, target: str, sizes: tuple[int, int]) -> None:
    """Counts of calls, which are the same on every machine; what is called for all that came before shows as k = 2.

    Exponents of few calls say little, and so do those of functions that only a second equal op needs.
    """
    found = {nodes: calls_of_build(KINDS[kind](nodes), target) for nodes in sizes}
    assert not growing(found, 1.5, few=3000)
    assert exponent(sizes, [sum(calls.values()) for calls in found.values()]) < 1.1


def test_many_buffers_are_not_held_against_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of launches that run side by side are, as far as that is cheap: then each has memory of its own."""
    monkeypatch.setattr(shape_binding, "_SIDE_BY_SIDE_BUFFERS", 50)
    found = {nodes: calls_of_build(KINDS["random"](nodes), "cuda") for nodes in (50, 200)}
    assert found[50]["mlirt/runtime/concurrent_memory.py together"] > 100
    assert "mlirt/runtime/concurrent_memory.py together" not in found[200]


@pytest.mark.parametrize("kind", ["chain", "transformer"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_equal_layers_are_verified_and_lowered_once(kind: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By tactic, and by verifier: four times the layers are no more of either."""
    verified, lowered = [mock.Mock(wraps=one) for one in (verification.verify, tactics.candidates)]
    monkeypatch.setattr(repeated_verification, "verify", verified)
    monkeypatch.setattr(lowering, "candidates", lowered)
    counts: list[tuple[int, int]] = []
    for nodes in (60, 240):
        verified.reset_mock()
        lowered.reset_mock()
        calls_of_build(KINDS[kind](nodes), target)
        counts.append((verified.call_count, lowered.call_count))
    assert counts[0] == counts[1]


def test_curves_are_drawn_with_their_exponents() -> None:
    rows = {str(nodes): {"build": nodes / 100, "save": 1.0} for nodes in (100, 1000)}
    peer = {str(nodes): {"session": nodes / 5000} for nodes in (100, 1000)}
    curves = curves_of({"cold": rows, "onnxruntime": peer, "warm": {}})
    assert [curve.name for curve in curves] == ["cold", "onnxruntime"]
    drawn = picture("chain", curves)
    assert drawn.count("<circle") == 4
    assert "cold, k = 1.00" in drawn
    ElementTree.fromstring(drawn)


def test_a_small_run_of_the_weights(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["growth.py", "weights", "--products", "2", "--size", "96", "--storage", "float16", "--transposed"]
    monkeypatch.setattr(sys, "argv", [*command, "--modes", "build,load"])
    growth.main()
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "2 products, float16 in 0.00 GB:"
    assert [line.split()[:2] for line in told[1:]] == [
        *(["build", phase] for phase in ("build", "save", "run")),
        *(["load", phase] for phase in ("load", "run", "second")),
    ]
    assert all("private" in line and "s of CPU" in line for line in told[1:])


def test_a_small_run_of_the_requests(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for model in (make() for make in NETWORKS.values()):
        check_model(model)
    parts = ["--parts", "floor,busy,callers,engines", "--networks", "add", "--callers", "1,2", "--engines", "1,2"]
    command = ["growth.py", "requests", *parts, "--seconds", "0.01", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", command)
    monkeypatch.setattr(growth_requests, "_FLOOR", ("add",))
    growth.main()
    told = capsys.readouterr().out
    for expected in ("bound", "onnxruntime run", "p99.9", "** 2 callers, ratio to onnxruntime", " 2 engines"):
        assert expected in told
