"""Inner tensors as outputs, and beside a network that stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from onnx import ModelProto, helper
from onnx_models import model_of

import mlirt
from mlirt.errors import InvalidInputError, MlirtError
from mlirt.runtime.engine import Engine
from mlirt.tools import rt_exec

RANDOM = np.random.default_rng(5)
W = RANDOM.standard_normal((4, 3), np.float32)
X = RANDOM.standard_normal((2, 4), np.float32)
QUICK = ["--warmUp=1", "--duration=0", "--iterations=2"]
INNER = {"a": X @ W, "b": np.abs(X @ W), "c": np.abs(X @ W), "w": W, "size": np.array([2, 3])}


def network() -> ModelProto:
    """y = exp(|x w|) + 1, with names for what is renamed, constant, or arithmetic of shapes."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node("Abs", ["a"], ["b"], name="abs"),
        helper.make_node("Identity", ["b"], ["c"], name="same"),
        helper.make_node("Shape", ["c"], ["size"], name="shape"),
        helper.make_node("Exp", ["c"], ["d"], name="exp"),
        helper.make_node("Add", ["d", "one"], ["y"], name="add"),
    ]
    constants = {"w": W, "one": np.ones(1, np.float32)}
    return model_of(nodes, {"x": ("float32", ["n", 4])}, ["y"], constants)


def compiled(**options: Any) -> Engine:
    chosen: dict[str, Any] = {"target": "cpu", **options}
    return cast("Engine", mlirt.compile(network(), **chosen))


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_outputs(target: str) -> None:
    engine = compiled(outputs=[*INNER, "y", "x"], target=target)
    assert [one.name for one in engine.outputs] == ["y", *INNER, "x"]
    found = engine.run({"x": X})
    for name, expected in {**INNER, "x": X, "y": np.exp(INNER["b"]) + 1}.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-6, err_msg=name)


def test_outputs_of_ir(tmp_path: Path) -> None:
    from mlirt.dialects.context import RtContext
    from mlirt.dialects.xdsl_compat import module_text
    from mlirt.frontend.onnx.importer import import_model

    (tmp_path / "net.mlir").write_text(module_text(import_model(network(), RtContext())))
    engine = cast("Engine", mlirt.compile(tmp_path / "net.mlir", target="cpu", outputs=["a", "d"]))
    assert [one.name for one in engine.outputs] == ["y", "a", "d"]
    np.testing.assert_allclose(engine.run({"x": X})["a"], INNER["a"], rtol=1e-5, atol=1e-6)
    with pytest.raises(InvalidInputError, match=r"the network has no tensor 'aa' outside of loops.*did you mean 'a'"):
        mlirt.compile(tmp_path / "net.mlir", target="cpu", outputs=["aa"])


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_network_under_test_stays_as_it_is(target: str) -> None:
    """Launches, kernels and weights are byte for byte those of the network without debug tensors."""
    plain, marked = compiled(target=target, heuristic=True), compiled(target=target, heuristic=True, debug=["a", "b"])
    assert marked.debug_tensors == ("a", "b")
    assert plain.debug_tensors == ()
    without = {key: value for key, value in marked.plan.sections.items() if key != "debug.plan"}
    assert {key: bytes(value) for key, value in without.items()} == {
        key: bytes(value) for key, value in plain.plan.sections.items()
    }
    for key, value in plain.plan.manifest_json.items():
        if key != "info":
            assert marked.plan.manifest_json[key] == value, key


def test_debug_tensors_and_listener(tmp_path: Path) -> None:
    engine = compiled(debug=list(INNER), refittable=True)
    found = engine.debug({"x": X})
    for name, expected in INNER.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-6, err_msg=name)
    seen: list[tuple[str, tuple[int, ...]]] = []
    engine.save(tmp_path / "marked.plan")
    loaded = mlirt.load(tmp_path / "marked.plan")
    loaded.set_debug_listener(lambda name, array: seen.append((name, array.shape)))
    y = np.exp(INNER["b"]) + 1
    np.testing.assert_allclose(loaded.run({"x": X})["y"], y, rtol=1e-5)
    np.testing.assert_allclose(loaded.run({"x": X[:1]}, timeout=60)["y"], y[:1], rtol=1e-5)
    assert seen[: len(INNER)] == [(name, array.shape) for name, array in INNER.items()]
    assert seen[len(INNER)] == ("a", (1, 3))
    loaded.set_debug_listener(None)
    loaded.run({"x": X})
    assert len(seen) == 2 * len(INNER)
    refitted = mlirt.refit(engine, {"w": 2 * W})
    assert refitted.debug_tensors == ()  # they would be those of the old weights
    np.testing.assert_allclose(refitted.run({"x": X})["y"], np.exp(2 * INNER["b"]) + 1, rtol=1e-5)


def test_random_numbers_are_those_of_the_run() -> None:
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["noise"], name="noise", seed=3.0),
        helper.make_node("Add", ["x", "noise"], ["y"], name="add"),
    ]
    model = model_of(nodes, {"x": ("float32", [2, 4])}, ["y"])
    engine = cast("Engine", mlirt.compile(model, target="cpu", debug=["noise"]))
    heard: list[Any] = []
    engine.set_debug_listener(lambda name, array: heard.append(array))
    results = [engine.run({"x": X})["y"] for _ in range(3)]
    for result, noise in zip(results, heard, strict=True):
        np.testing.assert_allclose(result, X + noise, rtol=1e-5, atol=1e-6)
    assert not np.array_equal(heard[0], heard[1])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"outputs": ["bb"]}, "the model has no tensor 'bb' outside of loops and branches"),
        ({"debug": ["size_"]}, "no tensor 'size_' outside of loops and branches; did you mean 'size'?"),
        ({"outputs": "a"}, "outputs: expected a list of names, such as ['a']"),
        ({"debug": ["a"], "target": "reference"}, "target reference has no debug tensors: name them as outputs"),
        ({"debug": ["a"], "state": {"x": "y"}}, "debug tensors are for networks without state"),
    ],
)
def test_what_does_not_fit(options: dict[str, Any], why: str) -> None:
    with pytest.raises(MlirtError) as caught:
        compiled(**options)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_engine_without_debug_tensors() -> None:
    with pytest.raises(InvalidInputError, match=r"no debug tensors; name them when it is built: compile\(debug="):
        compiled().set_debug_listener(print)


def test_rt_exec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.onnx").write_bytes(network().SerializeToString())
    plan, array, raw = (str(tmp_path / name) for name in ("net.plan", "a.npy", "b.raw"))
    np.save(tmp_path / "x.npy", X)
    build = [f"--onnx={tmp_path / 'net.onnx'}", "--target=cpu", "--markDebug=a,b", f"--saveEngine={plan}"]
    assert rt_exec.main([*build, "--buildOnly"]) == 0
    run = [f"--loadEngine={plan}", f"--loadInputs=x:{tmp_path / 'x.npy'}", *QUICK]
    assert rt_exec.main([*run, f"--saveDebugTensors=a:{array},b:{raw}"]) == 0
    out = capsys.readouterr().out
    assert f"Debug tensor a: float32[2, 3], min {INNER['a'].min():g}"[:44] in out
    np.testing.assert_allclose(np.load(array), INNER["a"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.fromfile(raw, np.float32).reshape(2, 3), INNER["b"], rtol=1e-5, atol=1e-6)
    assert rt_exec.main([*run, f"--saveDebugTensors=q:{array}"]) == 1
    assert "--saveDebugTensors: 'q' is no debug tensor; they are a, b" in capsys.readouterr().err
