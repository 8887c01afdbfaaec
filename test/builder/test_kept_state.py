"""State that an engine keeps: a recurrent cell run step by step, a cache that grows, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from onnx import ModelProto, helper
from onnx_models import model_of

import mlirt
from mlirt.errors import InvalidInputError
from mlirt.runtime.engine import Engine
from mlirt.tools import rt_exec

RANDOM = np.random.default_rng(3)
W = RANDOM.standard_normal((4, 4), np.float32)
X = RANDOM.standard_normal((6, 2, 4), np.float32)
QUICK = ["--warmUp=1", "--duration=0", "--iterations=2"]


def cell(batch: int | str = "n") -> ModelProto:
    """h1 = tanh(h0 w + x), y = -h1."""
    nodes = [
        helper.make_node("MatMul", ["h0", "w"], ["a"], name="product"),
        helper.make_node("Add", ["a", "x"], ["b"], name="add"),
        helper.make_node("Tanh", ["b"], ["h1"], name="tanh"),
        helper.make_node("Neg", ["h1"], ["y"], name="neg"),
    ]
    inputs = {"h0": ("float32", [batch, 4]), "x": ("float32", [batch, 4])}
    return model_of(nodes, inputs, ["y", "h1"], {"w": W})


def steps(first: Any = 0.0, xs: Any = X) -> list[Any]:
    """What the cell gives, step by step."""
    found: list[Any] = []
    h: Any = np.broadcast_to(np.float32(first), xs[0].shape)
    for x in xs:
        h = np.tanh(h @ W + x)
        found.append(-h)
    return found


def compiled(model: ModelProto, **options: Any) -> Engine:
    chosen: dict[str, Any] = {"target": "cpu", "state": {"h0": "h1"}, **options}
    return cast("Engine", mlirt.compile(model, **chosen))


def check(engine: Engine, expected: list[Any], xs: Any = X, **options: Any) -> None:
    for x, y in zip(xs, expected, strict=True):
        found = engine.run({"x": x}, **options)
        assert list(found) == ["y"]
        np.testing.assert_allclose(found["y"], y, rtol=2e-5, atol=2e-6)


def test_steps_follow_each_other(tmp_path: Path) -> None:
    """Also from a file, after a refit, and through pickle."""
    engine = compiled(cell(), refittable=True)
    assert (list(map(str, engine.inputs)), list(map(str, engine.outputs))) == (
        ["x float32[n, 4]"],
        ["y float32[n, 4]"],
    )
    check(engine, steps())
    engine.reset_state()
    check(engine, steps())
    engine.save(tmp_path / "cell.plan")
    check(mlirt.load(tmp_path / "cell.plan"), steps())
    check(mlirt.refit(engine, {"w": W}), steps())
    check(pickle.loads(pickle.dumps(engine)), steps())
    check(compiled(cell(), refittable=True), steps())  # from the cache of plans


def test_sequences_in_turn_and_in_threads() -> None:
    engine = compiled(cell(), streams=2)
    other = -X[:, :1]
    for x, y, twin in zip(X, steps(), steps(xs=other), strict=True):
        np.testing.assert_allclose(engine.run({"x": x}, sequence="a")["y"], y, rtol=2e-5, atol=2e-6)
        np.testing.assert_allclose(engine.run({"x": -x[:1]}, sequence="b")["y"], twin, rtol=2e-5, atol=2e-6)
    engine.reset_state("a")
    with ThreadPoolExecutor(4) as pool:
        started = [pool.submit(check, engine, steps(), sequence=name) for name in ("a", "c", "d", "e")]
        for one in started:
            one.result()


def test_contexts_are_apart() -> None:
    engine = compiled(cell(2))
    others = [engine.create_execution_context() for _ in range(2)]
    for x, y in zip(X, steps(), strict=True):
        for context in (engine.context, *others):
            np.testing.assert_allclose(context.run({"x": x})["y"], y, rtol=2e-5, atol=2e-6)
    np.testing.assert_array_equal(engine.state["h0"], others[0].state["h0"])


def test_first_value(tmp_path: Path) -> None:
    first = RANDOM.standard_normal((2, 4), np.float32)
    engine = compiled(cell(2), initial_state={"h0": first})
    np.testing.assert_array_equal(engine.state["h0"], first)
    check(engine, steps(first))
    engine.save(tmp_path / "cell.plan")
    loaded = mlirt.load(tmp_path / "cell.plan")
    check(loaded, steps(first))
    loaded.reset_state()
    loaded.state["h0"] = 2 * first
    check(loaded, steps(2 * first))


def test_other_batch_says_what_to_do() -> None:
    engine = compiled(cell())
    check(engine, steps())
    with pytest.raises(InvalidInputError) as caught:
        engine.run({"x": X[0, :1]})
    assert str(caught.value).endswith(
        "the runs before have left the state 'h0' of [2, 4]: reset_state() lets a sequence begin anew"
    )
    engine.reset_state()
    check(engine, steps(xs=X[:, :1]), X[:, :1])


def test_cache_that_grows() -> None:
    """Keys of attention: what comes is added behind what was there."""
    nodes = [
        helper.make_node("Concat", ["past", "x"], ["present"], name="append", axis=1),
        helper.make_node("ReduceMean", ["present"], ["y"], name="mean", axes=[1], keepdims=0),
    ]
    inputs = {"past": ("float32", ["n", "p", 4]), "x": ("float32", ["n", "t", 4])}
    engine = compiled(model_of(nodes, inputs, ["y", "present"]), state={"past": "present"})
    seen = np.empty((2, 0, 4), np.float32)
    for length in (3, 1, 1, 5, 1):
        x = RANDOM.standard_normal((2, length, 4), np.float32)
        seen = np.concatenate([seen, x], 1)
        np.testing.assert_allclose(engine.run({"x": x})["y"], seen.mean(1), rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(engine.state["past"], seen)


def test_output_that_is_the_input() -> None:
    """A state that nothing changes, and one that another output is, too."""
    nodes = [helper.make_node("Add", ["h0", "x"], ["y"], name="add"), helper.make_node("Identity", ["h0"], ["h1"])]
    kinds = {name: ("float32", [2, 4]) for name in ("h0", "x")}
    first = X[0]
    engine = compiled(model_of(nodes, kinds, ["y", "h1"]), initial_state={"h0": first})
    for x in X:
        np.testing.assert_allclose(engine.run({"x": x})["y"], first + x, rtol=1e-6)
    nodes = [helper.make_node("Add", ["h0", "x"], ["h1"], name="add"), helper.make_node("Identity", ["h1"], ["y"])]
    engine = compiled(model_of(nodes, kinds, ["y", "h1"]))
    total = np.cumsum(X, 0, dtype=np.float32)
    for number, x in enumerate(X):
        found = engine.run({"x": x})["y"]
        np.testing.assert_allclose(found, total[number], rtol=1e-5, atol=1e-6)
        found[:] = 1e9  # it is the caller's


def test_tensorrts_api_has_plain_inputs_and_outputs() -> None:
    engine = compiled(cell(2))
    from mlirt.runtime.plan_file import plan_bytes

    plan = plan_bytes(engine.plan.manifest_json, engine.plan.sections, engine.plan.weights)
    found = mlirt.Runtime(mlirt.Logger()).deserialize_cuda_engine(plan)
    assert found is not None
    context = found.create_execution_context()
    arrays = {"h0": X[1], "x": X[0], "y": np.empty_like(X[0]), "h1": np.empty_like(X[0])}
    for name, array in arrays.items():
        context.set_tensor_address(name, array.ctypes.data)
    assert context.execute_async_v3(0)
    np.testing.assert_allclose(arrays["h1"], np.tanh(X[1] @ W + X[0]), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"state": {"q": "h1"}}, "state: the network has no input 'q'; its inputs are 'h0', 'x'"),
        ({"state": {"h0": "q"}}, "state: the network has no output 'q'; it has 'y', 'h1'"),
        ({"state": {"h0": "h1", "x": "h1"}}, "state: an output is the next value of one input, but one is named twice"),
        ({"initial_state": {"x": X[0]}}, "initial_state: 'x' is no state; the states are 'h0'"),
        ({"initial_state": {"h0": X[0]}}, "its shape is dynamic; set engine.state['h0'] instead"),
        ({"target": "reference"}, "target reference keeps no state"),
    ],
)
def test_choices_that_do_not_fit(options: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        compiled(cell(), **options)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (("Cast", {"to": 7}), "float32[n, 4] cannot be what the output 'h1' was, int64[n, 4]"),
        (("Transpose", {"perm": [1, 0]}), "float32[n, 4] cannot be what the output 'h1' was, float32[4, n]"),
        (("Flatten", {"axis": 0}), "float32[n, 4] cannot be what the output 'h1' was, float32[1, 4*n]"),
    ],
)
def test_types_that_do_not_fit(change: tuple[str, dict[str, Any]], kinds: str) -> None:
    nodes = [helper.make_node(change[0], ["h0"], ["h1"], name="change", **change[1])]
    with pytest.raises(InvalidInputError) as caught:
        compiled(model_of(nodes, {"h0": ("float32", ["n", 4])}, ["h1"]))
    assert str(caught.value).startswith(f"state 'h0': {kinds}; give both one type and shape")


def test_first_value_of_another_shape() -> None:
    with pytest.raises(InvalidInputError, match=r"initial_state 'h0': expected float32\(2, 4\), got float64\(2, 4\)"):
        compiled(cell(2), initial_state={"h0": np.zeros((2, 4))})


def test_plan_for_a_gpu_has_it() -> None:
    engine = compiled(cell(2), target="cuda", heuristic=True)
    assert [(str(one), output) for one, output in engine.states] == [("h0 float32[2, 4]", "h1")]


def test_rt_exec(tmp_path: Path, capsys: pytest.CaptureFixture[str], write: Callable[[Path], str]) -> None:
    model, plan = write(tmp_path), str(tmp_path / "cell.plan")
    assert rt_exec.main([f"--onnx={model}", "--target=cpu", "--state=h0:h1", f"--saveEngine={plan}", *QUICK]) == 0
    assert rt_exec.main([f"--loadEngine={plan}", "--dumpOutput", *QUICK]) == 0
    assert "h1" not in capsys.readouterr().out.split("=== Trace")[-1]
    assert rt_exec.main([f"--onnx={model}", "--target=cpu", "--state=h0", *QUICK]) == 1
    assert "'h0': expected INPUT:OUTPUT, such as h0:h1" in capsys.readouterr().err
    assert rt_exec.main([f"--loadEngine={plan}", "--state=h0:h1", *QUICK]) == 1
    assert "--state is for building" in capsys.readouterr().err


@pytest.fixture
def write() -> Callable[[Path], str]:
    def written(folder: Path) -> str:
        path = folder / "cell.onnx"
        path.write_bytes(cell(2).SerializeToString())
        return str(path)

    return written
