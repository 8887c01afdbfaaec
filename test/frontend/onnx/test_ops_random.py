"""Random ops, whose numbers are counted and not compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import imported_text, model_of, numbers, one_node

import mlirt
from mlirt.errors import InvalidInputError, UnsupportedError

Array = np.ndarray[Any, np.dtype[Any]]


def drawn(op: str, *arrays: Array, **attributes: Any) -> Array:
    model, feeds = one_node(op, list(arrays), opset=18, **attributes)
    (y,) = mlirt.compile(model, "reference").run(feeds).values()
    return y


def test_uniform() -> None:
    y = drawn("RandomUniform", shape=[60, 50], low=-2.0, high=6.0)
    assert (y.dtype, y.shape) == (np.float32, (60, 50))
    assert -2 <= y.min() < -1.9
    assert 5.9 < y.max() <= 6
    assert abs(y.mean() - 2) < 0.2


def test_normal_like_another_tensor() -> None:
    y = drawn("RandomNormalLike", numbers(60, 50, dtype="float64"), mean=3.0, scale=0.5)
    assert (y.dtype, y.shape) == (np.float64, (60, 50))
    assert abs(y.mean() - 3) < 0.05
    assert abs(y.std() - 0.5) < 0.05
    assert drawn("RandomNormalLike", numbers(3), dtype=TensorProto.FLOAT16).dtype == np.float16


@pytest.mark.parametrize("dtype", [None, TensorProto.BOOL])
def test_bernoulli(dtype: int | None) -> None:
    chances = np.repeat(np.array([0, 0.25, 1], np.float32), 2000)
    y = drawn("Bernoulli", chances, **({} if dtype is None else {"dtype": dtype}))
    assert y.dtype == (np.float32 if dtype is None else np.bool_)
    never, sometimes, always = y.reshape(3, -1).astype(np.float64).mean(axis=1)
    assert (never, always) == (0, 1)
    assert abs(sometimes - 0.25) < 0.05


@pytest.mark.parametrize("dtype", [TensorProto.INT32, TensorProto.INT64])
def test_multinomial(dtype: int) -> None:
    """Weights are given as logarithms, and need not sum up to 1."""
    weights = np.array([[1, 2, 0, 7], [3, 3, 3, 3]])
    with np.errstate(divide="ignore"):
        y = drawn("Multinomial", np.log(weights).astype(np.float32), sample_size=4000, dtype=dtype)
    assert y.dtype == helper.tensor_dtype_to_np_dtype(dtype)
    for row, wanted in zip(y, weights, strict=True):
        shares = np.bincount(row, minlength=4) / 4000
        np.testing.assert_allclose(shares, wanted / wanted.sum(), atol=0.04)
        assert (shares[wanted == 0] == 0).all()


def noise(**attributes: Any) -> onnx.ModelProto:
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["a"], **attributes),
        helper.make_node("RandomNormalLike", ["x"], ["b"], **attributes),
    ]
    return model_of(nodes, {"x": ("float32", ["n", 8])}, ["a", "b"])


def run_thrice(run: Any) -> list[Mapping[str, Array]]:
    return [run({"x": np.zeros((rows, 8), np.float32)}) for rows in (4, 4, 6)]


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_each_run_has_other_numbers_and_each_context_the_same(target: str) -> None:
    engine: Any = mlirt.compile(noise(), target)
    assert [one.name for one in engine.inputs] == ["x"]
    first, second, third = run_thrice(engine.run)
    assert not np.isclose(first["a"], first["b"]).any()
    assert not np.isclose(first["a"], second["a"]).any()
    assert not np.isclose(second["a"], third["a"][:4]).any()
    other = engine.create_execution_context().run if target == "cpu" else mlirt.compile(noise(), target).run
    for ours, theirs in zip(run_thrice(other), (first, second, third), strict=True):
        np.testing.assert_array_equal(ours["a"], theirs["a"])


def flipped(rows: int | str) -> onnx.ModelProto:
    """Uniform numbers, and what is made of them by comparisons alone."""
    nodes = [
        helper.make_node("RandomUniformLike", ["x"], ["a"], low=-3.0, high=0.7, seed=1.0),
        helper.make_node("Bernoulli", ["chances"], ["b"], seed=2.0),
        helper.make_node("Multinomial", ["x"], ["c"], sample_size=50, seed=3.0),
    ]
    chances = {"chances": np.full((7, 9), 0.3, np.float32)}
    return model_of(nodes, {"x": ("float32", [rows, 8])}, ["a", "b", "c"], chances)


def test_numbers_do_not_depend_on_how_a_context_runs(tmp_path: Path) -> None:
    """The seed and the number of the run decide: not the target, sizes that are known, nor what ran between."""
    x = np.zeros((4, 8), np.float32)
    reference: Any = mlirt.compile(flipped("n"), "reference")
    expected = [reference.run({"x": x}) for _ in range(4)]
    mlirt.compile(flipped("n"), "cpu").save(tmp_path / "any.plan")
    mlirt.compile(flipped(4), "cpu").save(tmp_path / "four.plan")
    for name in ("any", "four"):
        engine = mlirt.load(tmp_path / f"{name}.plan")
        context = engine.create_execution_context()
        with pytest.raises(InvalidInputError):
            context.run({"x": np.zeros((4, 9), np.float32)})
        found = [context.run({"x": x})]
        context.profile({"x": x})
        found.append(context.run_timed({"x": x})[0])
        context.run_resident({"x": x}).execute()
        found.append(dict(zip(expected[2], context.run_positional(x), strict=True)))
        found.append(context.run({"x": x}))
        _assert_equal(found, expected)
    assert len({one["a"].tobytes() for one in expected}) == 4


@pytest.mark.parametrize("threads", ["1", "2"])
def test_numbers_do_not_depend_on_threads_or_the_interface(
    threads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.zeros((4, 8), np.float32)
    reference: Any = mlirt.compile(flipped(4), "reference")
    monkeypatch.setenv("MLIRT_NUM_THREADS", threads)
    mlirt.compile(flipped(4), "cpu").save(tmp_path / "a.plan")
    engine: Any = mlirt.Runtime(mlirt.Logger()).deserialize_cuda_engine((tmp_path / "a.plan").read_bytes())
    context = engine.create_execution_context()
    for _ in range(3):
        want = reference.run({"x": x})
        found = {name: np.empty_like(array) for name, array in want.items()}
        assert context.execute_v2([x.ctypes.data, *(array.ctypes.data for array in found.values())])
        _assert_equal([found], [want])


def _assert_equal(found: Sequence[Mapping[str, Array]], expected: Sequence[Mapping[str, Array]]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        for name, array in theirs.items():
            np.testing.assert_array_equal(ours[name], array, name)


def test_nodes_of_one_seed_have_the_same_numbers() -> None:
    (first, *_) = run_thrice(mlirt.compile(noise(seed=2.5), "reference").run)
    np.testing.assert_array_equal(first["a"], first["b"])


def test_random_numbers_in_a_branch_are_refused() -> None:
    body = helper.make_graph(
        [helper.make_node("RandomUniform", [], ["r"], shape=[2])],
        "body",
        [],
        [helper.make_tensor_value_info("r", TensorProto.FLOAT, [2])],
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    with pytest.raises(UnsupportedError, match="random numbers inside of branches and loops; feed them as an input"):
        imported_text(model_of([node], {"c": ("bool", [])}, ["y"]))
