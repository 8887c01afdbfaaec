"""A plan that was made before comes back as it was, and only for the same build; work is counted, not timed."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of

import mlirt
from mlirt.builder.plan_cache import TAKEN, PlanCache
from mlirt.counted_warnings import warn
from mlirt.passes import pipeline
from mlirt.runtime import plan_source
from mlirt.runtime.engine import Engine
from mlirt.runtime.plan_file import Plan, plan_bytes

WEIGHT = np.arange(64, dtype=np.float32).reshape(8, 8) / 64


def network(activation: str = "Relu", weight: np.ndarray = WEIGHT, name: str = "product") -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name=name),
        helper.make_node(activation, ["p"], ["y"], name="activation"),
    ]
    return model_of(nodes, {"x": ("float32", (4, 8))}, ["y"], {"w": weight})


@pytest.fixture(scope="module", autouse=True)
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kernels are compiled once for all tests here; the plans of each are its own."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(autouse=True)
def cache(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLIRT_CACHE", str(kernels))
    monkeypatch.setenv("MLIRT_PLAN_CACHE_MB", "8")
    for path in _plans(kernels):
        path.unlink()
    return kernels


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of passes, as they are run."""
    names: list[str] = []
    run: Callable[..., None] = getattr(pipeline, "_run_one")

    def counted(pass_: object, *rest: object) -> None:
        names.append(str(getattr(pass_, "name")))
        run(pass_, *rest)

    monkeypatch.setattr(pipeline, "_run_one", counted)
    return names


def _plans(folder: Path) -> list[Path]:
    return sorted(folder.glob("plans/*.plan"))


def _bytes(engine: object) -> bytes:
    assert isinstance(engine, Engine)
    plan = engine.plan
    return plan_bytes(plan.manifest_json, plan.sections, plan.weights)


def _built(model: onnx.ModelProto, **arguments: object) -> bytes:
    return _bytes(mlirt.compile(model, target="cpu", **arguments))  # pyright: ignore[reportArgumentType]


def test_the_second_build_runs_no_pass_and_gives_the_same_bytes(passes: list[str]) -> None:
    cold, count = _built(network()), len(passes)
    told: list[str] = []

    def progress(text: str, done: int, total: int) -> None:
        told.append(text)

    warm = _built(network(), progress=progress)
    assert count > 50
    assert len(passes) == count
    assert told == [TAKEN]
    assert warm == cold
    feeds = {"x": np.ones((4, 8), np.float32)}
    one, other = (mlirt.compile(network(), target="cpu").run(feeds)["y"] for _ in range(2))
    assert np.array_equal(one, other)


def test_without_the_cache_every_pass_runs_again_and_gives_the_same_bytes(
    passes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = [_built(network()) for _ in range(2)][-1]
    count = len(passes)
    monkeypatch.setenv("MLIRT_PLAN_CACHE_MB", "0")
    assert _built(network()) == warm
    assert len(passes) == 2 * count


def test_off_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", "off")
    assert not PlanCache().is_open


@pytest.mark.parametrize(
    ("other", "arguments"),
    [
        (network("Tanh"), {}),
        (network(weight=WEIGHT + 1), {}),
        (network(name="other"), {}),
        (network(), {"input_shapes": {"x": [5, 8]}}),
        (network(), {"refittable": True}),
        (network(), {"precision": "fp16"}),
        (network(), {"constants": {"x": np.ones((4, 8), np.float32)}}),
    ],
    ids=["an attribute", "weights", "a layer's name", "a shape", "refittable", "precision", "a constant"],
)
def test_another_build_runs_the_passes(
    other: onnx.ModelProto, arguments: dict[str, object], passes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _built(network())
    count = len(passes)
    found = _built(other, **arguments)
    assert len(passes) > count
    monkeypatch.setenv("MLIRT_PLAN_CACHE_MB", "0")
    assert _built(other, **arguments) == found


def test_other_weights_of_the_same_shape_compile_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    _built(network())

    def refused(sources: object, *_: object) -> None:
        raise AssertionError(f"compiled again: {sources}")

    monkeypatch.setattr("mlirt.builder.numba_cpu._compile", refused)
    _built(network(weight=WEIGHT + 1))
    _built(network(name="other"))


@pytest.mark.parametrize("variable", ["MLIRT_VECTOR_BITS", "MLIRT_NUM_THREADS"])
def test_another_machine_runs_the_passes(variable: str, passes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "3" if variable == "MLIRT_NUM_THREADS" else "256")
    _built(network())
    count = len(passes)
    monkeypatch.setenv(variable, "1" if variable == "MLIRT_NUM_THREADS" else "128")
    _built(network())
    assert len(passes) == 2 * count


def test_another_compiler_runs_the_passes(passes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    _built(network())
    count = len(passes)
    monkeypatch.setattr("mlirt.builder.build_keys.own_sources", lambda: "changed")
    _built(network())
    assert len(passes) == 2 * count


def test_another_file_with_the_same_network_is_found_by_its_ir(passes: list[str], cache: Path) -> None:
    """It is imported, and no pass runs; after that its own bytes stand for the plan, too."""
    cold, count = _built(network()), len(passes)
    documented = network()
    documented.doc_string = "says nothing about the network"
    assert _built(documented) == cold
    assert len(passes) == count
    assert len(_plans(cache)) == 1


@pytest.mark.parametrize(("kept", "added"), [(0, 0), (-1, 0), (-70, 70)], ids=["empty", "short", "other bytes"])
def test_a_damaged_plan_is_built_again(kept: int, added: int, passes: list[str], cache: Path) -> None:
    cold, count = _built(network()), len(passes)
    (path,) = _plans(cache)
    path.write_bytes(path.read_bytes()[:kept] + b"x" * added)
    assert _built(network()) == cold
    assert len(passes) == 2 * count
    assert path.read_bytes() == cold


def test_the_plan_of_another_key_is_none(passes: list[str], cache: Path) -> None:
    first = _built(network())
    second = _built(network("Tanh"))
    one, two = _plans(cache)
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    count = len(passes)
    assert (_built(network()), _built(network("Tanh"))) == (first, second)
    assert len(passes) > count


def test_a_folder_that_all_may_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    with pytest.warns(UserWarning, match="may be written by all users"):
        assert not PlanCache().is_open


def test_a_build_that_warned_warns_again(monkeypatch: pytest.MonkeyPatch, passes: list[str]) -> None:
    run: Callable[..., None] = getattr(pipeline, "_run_one")

    def warning(pass_: object, *rest: object) -> None:
        if getattr(pass_, "name") == "insert-scales":
            warn("a scale is small")
        run(pass_, *rest)

    monkeypatch.setattr(pipeline, "_run_one", warning)
    for _ in range(2):
        with pytest.warns(UserWarning, match="a scale is small"):
            _built(network())


def test_the_folder_is_bounded_and_the_least_recently_used_go(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_PLAN_CACHE_MB", "1")
    plans = [_plan_of(number) for number in range(7)]  # of 0.2 MB each
    store = PlanCache()
    for number, plan in enumerate(plans[:4]):
        store.put([f"{number}"], plan)
        os.utime(_newest(cache), (number + 1, number + 1))
    assert store.get("0") is not None  # which makes 1 the one that was not used for the longest time
    for number in (4, 5):
        store.put([f"{number}"], plans[number])
        assert sum(path.stat().st_size for path in _plans(cache)) <= 1 << 20
    assert [store.get(f"{number}") is not None for number in range(6)] == [True, False, False, True, True, True]


def test_one_that_takes_more_than_a_quarter_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_PLAN_CACHE_MB", "1")
    plan, before = _plan_of(1, 300_000), _plans(cache)
    PlanCache().put(["large"], plan)
    assert _plans(cache) == before
    assert PlanCache().get("large") is None


def _newest(cache: Path) -> Path:
    return max(_plans(cache), key=lambda path: path.stat().st_mtime_ns)


def _plan_of(number: int, size: int = 200_000) -> Plan:
    """A plan that has a section of so many bytes, beside what it needs."""
    engine = mlirt.compile(network(), target="cpu")
    assert isinstance(engine, Engine)
    sections = {**engine.plan.sections, "ballast": np.random.default_rng(number).bytes(size)}
    return Plan(engine.plan.manifest, engine.plan.manifest_json, sections, engine.plan.weights)


def test_an_engine_from_the_cache_is_pickled_with_its_bytes(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file there may be removed by any build, and nobody may depend on it."""
    monkeypatch.setattr(plan_source, "MAX_READ_BYTES", 0)
    model = network()
    mlirt.compile(model, target="cpu")
    (path,) = _plans(cache)
    assert len(pickle.dumps(mlirt.compile(model, target="cpu"))) > path.stat().st_size // 2
