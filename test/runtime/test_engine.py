"""The engine on the CPU: right results for every shape and thread count, and clear refusals."""

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime import plan_file, plan_source
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.joined_arrays import JoinedArrays
from mlirt.runtime.plan_file import plan_bytes, write_plan

Maker = Callable[[], Any]


def engine_of(parts: Any) -> Engine:
    return load(plan_bytes(parts.manifest, parts.sections, parts.weights))


def expected(x: np.ndarray) -> np.ndarray:
    return np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(x.shape)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def test_results_for_several_shapes(tiny: Maker) -> None:
    engine = engine_of(tiny())
    for n in (1, 7, 0, 1000, 7, 1, 33, 2, 5, 7):
        x = random(n, 4)
        got = engine.run({"x": x})
        np.testing.assert_allclose(got["y"], expected(x), rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(got["z"], np.arange(8, dtype=np.float32) + 0.5)


def test_outputs_are_fresh_arrays(tiny: Maker) -> None:
    engine = engine_of(tiny())
    first = engine.run({"x": random(8, 4)})
    kept = {name: array.copy() for name, array in first.items()}
    engine.run({"x": -random(8, 4)})
    for name, array in first.items():
        np.testing.assert_array_equal(array, kept[name])


def test_outputs_go_where_the_caller_wants_them(tiny: Maker) -> None:
    engine = engine_of(tiny())
    x = random(8, 4)
    wide = np.zeros((8, 8), np.float32)
    y = wide[:, ::2]
    found = engine.run({"x": x}, {"y": y})
    assert found["y"] is y
    assert list(found) == ["y", "z"]
    np.testing.assert_allclose(y, expected(x), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(wide[:, 1::2], 0)
    again = engine.create_execution_context().run({"x": x}, {"y": np.empty((8, 4), np.float32)})
    np.testing.assert_array_equal(again["y"], y)


def test_arrays_for_outputs_that_do_not_fit(tiny: Maker) -> None:
    engine = engine_of(tiny())
    locked = np.zeros((8, 4), np.float32)
    locked.flags.writeable = False
    wrong: list[tuple[Any, str]] = [
        ({"w": locked}, "the engine has no output 'w'; its outputs are 'y', 'z'"),
        ({"y": np.zeros((8, 4))}, r"output 'y': expected an array of float32 and shape \(8, 4\), got float64"),
        ({"y": np.zeros((4, 8), np.float32)}, r"output 'y': expected .* got float32 and \(4, 8\)"),
        ({"y": [0.0]}, "output 'y': expected a NumPy array, got list"),
        ({"y": locked}, "output 'y': the array is read-only"),
    ]
    for outputs, message in wrong:
        with pytest.raises(InvalidInputError, match=message):
            engine.run({"x": random(8, 4)}, outputs)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_many_runs_with_every_thread_count(tiny: Maker, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_NUM_THREADS", threads)
    engine = engine_of(tiny())
    x = random(50, 4)
    want = engine.run({"x": x})["y"]
    for _ in range(300):
        np.testing.assert_array_equal(engine.run({"x": x})["y"], want)


def test_misaligned_and_strided_inputs_are_copied(tiny: Maker) -> None:
    engine = engine_of(tiny())
    wide = random(9, 8)
    x = wide[1:, ::2]
    np.testing.assert_allclose(engine.run({"x": x})["y"], expected(np.ascontiguousarray(x)), rtol=1e-6, atol=1e-6)
    raw = np.zeros(5 * 16 + 4, np.uint8)[4:].view(np.float32).reshape(5, 4)
    np.testing.assert_allclose(engine.run({"x": raw})["y"], expected(raw), rtol=1e-6, atol=1e-6)


def test_arrays_that_are_joined_are_one_input(tiny: Maker) -> None:
    engine: Any = engine_of(tiny())
    x = random(6, 4)
    right = engine.run({"x": x})
    for parts in ([x[:1], x[1:1], x[1:4], x[4:]], [x[:, ::-1][:, ::-1]]):
        found = engine.run({"x": JoinedArrays(parts)})
        assert all((found[name] == array).all() for name, array in right.items())
    with pytest.raises(InvalidInputError, match="input 'x': expected data type float32, got float64"):
        engine.run({"x": JoinedArrays([x.astype(np.float64)])})


def test_contexts_run_in_parallel(tiny: Maker) -> None:
    engine = engine_of(tiny())
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        context = engine.create_execution_context()
        x = np.random.default_rng(seed).standard_normal((seed + 3, 4), np.float32)
        try:
            for _ in range(100):
                np.testing.assert_allclose(context.run({"x": x})["y"], expected(x), rtol=1e-6, atol=1e-6)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_save_and_load_again(tiny: Maker, tmp_path: Path) -> None:
    engine = engine_of(tiny())
    engine.save(tmp_path / "a.plan")
    again = load(tmp_path / "a.plan")
    again.save(tmp_path / "b.plan")
    assert (tmp_path / "a.plan").read_bytes() == (tmp_path / "b.plan").read_bytes()
    x = random(3, 4)
    np.testing.assert_array_equal(again.run({"x": x})["y"], engine.run({"x": x})["y"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.plan", "b.plan"]


def test_saving_over_the_mapped_file(tiny: Maker, tmp_path: Path) -> None:
    parts = tiny()
    write_plan(tmp_path / "a.plan", parts.manifest, parts.sections, parts.weights)
    engine = load(tmp_path / "a.plan")
    engine.save(tmp_path / "a.plan")
    assert engine.run({"x": random(2, 4)})["z"][0] == 0.5


def test_descriptions(tiny: Maker) -> None:
    engine = engine_of(tiny())
    assert [(t.name, t.dtype, t.shape) for t in engine.inputs] == [("x", "float32", ("n", 4))]
    assert [(t.name, t.shape) for t in engine.outputs] == [("y", ("n", 4)), ("z", (8,))]
    assert engine.layers == ({"name": "double", "family": "pointwise"},)
    assert engine.name == "tiny"
    assert repr(engine) == "<Engine 'tiny' for cpu: x float32[n, 4] -> y float32[n, 4], z float32[8]>"


def test_profile_names_every_launch(tiny: Maker) -> None:
    profile = engine_of(tiny()).profile({"x": random(4, 4)})
    assert [layer for layer, _ in profile] == ["double", "turn", "weigh"]
    assert all(ms >= 0 for _, ms in profile)


def test_timed_runs(tiny: Maker) -> None:
    context = engine_of(tiny()).create_execution_context()
    outputs, times = context.run_timed({"x": random(4, 4)})
    assert set(outputs) == {"y", "z"}
    assert times.start_h2d <= times.end_h2d <= times.start_compute <= times.end_compute <= times.end_d2h
    resident = context.run_resident({"x": random(4, 4)}).execute()
    assert resident.start_h2d == resident.end_h2d
    assert resident.end_compute >= resident.start_compute


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "input 'x' is missing"),
        ({"x": np.zeros((2, 4), np.float32), "q": np.zeros(1)}, "no input 'q'; its inputs are 'x'"),
        ({"x": np.zeros((2, 4))}, "input 'x': expected data type float32, got float64"),
        ({"x": np.zeros((2, 4), ">f4")}, "input 'x': expected data type float32"),
        ({"x": np.zeros(4, np.float32)}, r"input 'x': expected shape \(n, 4\), got \(4,\): expected 2 dimensions"),
        ({"x": np.zeros((2, 5), np.float32)}, "dimension 1 must be 4, not 5; reshape the array"),
        (None, "expected the inputs by name, such as {'x': array}, got NoneType"),
        (np.zeros((2, 4), np.float32), "expected the inputs by name, such as {'x': array}, got ndarray"),
        ({"x": None}, "input 'x': expected an array of float32, got NoneType"),
        ({"x": "cat.jpg"}, "input 'x': expected an array of float32, got str"),
        ({"x": [[1, 2, 3, 4]]}, "input 'x': expected data type float32, got int64"),
    ],
)
def test_wrong_inputs(tiny: Maker, feeds: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        engine_of(tiny()).run(feeds)


def test_positional(tiny: Maker) -> None:
    engine = engine_of(tiny())
    x = random(2, 4)
    y, z = engine.run_positional(x)
    np.testing.assert_array_equal(y, engine.run({"x": x})["y"])
    assert z.shape == (8,)
    with pytest.raises(InvalidInputError, match="expected 1 inputs"):
        engine.run_positional(x, x)


def test_profiles_bound_the_shapes(tiny: Maker) -> None:
    parts = tiny()
    parts.manifest["profiles"] = [{"x": {"min": [2, 4], "opt": [4, 4], "max": [8, 4]}}]
    engine = engine_of(parts)
    engine.run({"x": random(8, 4)})
    with pytest.raises(InvalidInputError, match="no optimization profile covers"):
        engine.run({"x": random(9, 4)})


def test_shapes_that_the_network_cannot_compute_with(tiny: Maker) -> None:
    parts = tiny()
    parts.manifest["launches"][0]["args"][2] = {"int": ["//", 8, ["-", "n", 3]]}
    with pytest.raises(PlanError, match=r"no meaning for the shapes x=\(3, 4\): .*; give others"):
        engine_of(parts).run({"x": random(3, 4)})


def test_the_layer_that_has_no_elements_left_is_named(tiny: Maker) -> None:
    parts = tiny()
    parts.manifest["launches"][0]["args"][2] = {"int": ["//", 8, ["-", "n", 3]]}
    shapes = {"whole": ["n", 4], "pool": [["-", "n", 3], 4], "behind": [["-", "n", 4], 4]}
    parts.manifest["layers"] = [{"name": name, "outputs": [{"shape": shape}]} for name, shape in shapes.items()]
    with pytest.raises(PlanError, match=r"x=\(3, 4\), as layer pool has no elements left: .*; give others"):
        engine_of(parts).run({"x": random(3, 4)})


def test_missing_processor_features_are_named(tiny: Maker) -> None:
    parts = tiny()
    parts.manifest["target"]["features"] = ["sse2", "warp-drive"]
    with pytest.raises(PlanError, match=r"lacks: .*warp-drive; rebuild"):
        engine_of(parts)


def test_another_processor_is_refused(tiny: Maker) -> None:
    parts = tiny()
    parts.manifest["target"]["triple"] = "riscv64-unknown-linux-gnu"
    with pytest.raises(PlanError, match="built for riscv64"):
        engine_of(parts)


def test_an_output_may_be_an_input_a_weight_or_twice_the_same(tiny: Maker) -> None:
    parts = tiny()
    outputs = parts.manifest["outputs"]
    outputs.append({"name": "x2", "dtype": "float32", "shape": ["n", 4], "buffer": 0})
    outputs.append({"name": "w2", "dtype": "float32", "shape": [2, 4], "buffer": 3})
    outputs.append({"name": "y2", "dtype": "float32", "shape": [["*", "n", 4]], "buffer": 2})
    x = random(5, 4)
    got = engine_of(parts).run({"x": x})
    np.testing.assert_array_equal(got["x2"], x)
    np.testing.assert_array_equal(got["w2"], np.arange(8, dtype=np.float32).reshape(2, 4))
    np.testing.assert_array_equal(got["y2"], got["y"].reshape(-1))
    assert not np.shares_memory(got["y2"], got["y"])


def test_views(tiny: Maker) -> None:
    parts = tiny()
    buffers = parts.manifest["buffers"]
    buffers.append({"kind": "arena", "bytes": 16, "view_of": 4, "view_offset": 16})
    buffers.append({"kind": "arena", "bytes": 8, "view_of": 5, "view_offset": 8})
    parts.manifest["outputs"].append({"name": "tail", "dtype": "float32", "shape": [2], "buffer": 6})
    np.testing.assert_array_equal(engine_of(parts).run({"x": random(1, 4)})["tail"], [6.5, 7.5])


@pytest.mark.parametrize("fill", [0, 7])
def test_halos_are_filled_again_after_another_shape(tiny: Maker, fill: int) -> None:
    """`scale` writes only the first cells of a halo buffer; the rest must stay as it is whatever ran before."""
    parts = tiny()
    manifest = parts.manifest
    size = ["+", ["*", ["*", "n", 4], 4], 64]
    manifest["buffers"].append({"kind": "arena", "bytes": size, "first": 0, "last": 3, "halo": "h", "fill": fill})
    manifest["launches"][0]["args"][1] = {"buffer": 5}
    manifest["launches"][1]["args"][0] = {"buffer": 5}
    manifest["outputs"].append({"name": "all", "dtype": "float32", "shape": [["+", ["*", "n", 4], 16]], "buffer": 5})
    engine = engine_of(parts)
    for n in (2, 50, 2, 20, 50, 2):
        got = engine.run({"x": random(n, 4)})["all"]
        assert got[: 4 * n].any()
        assert (got[4 * n :].view(np.uint8) == fill).all()


def test_no_launches(tiny: Maker) -> None:
    parts = tiny()
    manifest = parts.manifest
    manifest["launches"], manifest["kernels"], manifest["main"] = [], [], None
    manifest["outputs"] = [{"name": "same", "dtype": "float32", "shape": ["n", 4], "buffer": 0}]
    manifest["buffers"] = manifest["buffers"][:1]
    x = random(2, 4)
    np.testing.assert_array_equal(engine_of(parts).run({"x": x})["same"], x)


def test_flags_serial_and_no_barrier(tiny: Maker) -> None:
    parts = tiny()
    parts.manifest["launches"][0]["serial"] = True
    parts.manifest["launches"][1]["no_barrier"] = True
    engine = engine_of(parts)
    x = random(64, 4)
    for _ in range(200):
        np.testing.assert_allclose(engine.run({"x": x})["y"], expected(x), rtol=1e-6, atol=1e-6)


def test_the_runtime_needs_no_compiler(tiny: Maker, tmp_path: Path) -> None:
    parts = tiny()
    write_plan(tmp_path / "a.plan", parts.manifest, parts.sections, parts.weights)
    script = (
        "import sys, numpy as np, mlirt\n"
        f"e = mlirt.load({str(tmp_path / 'a.plan')!r})\n"
        "assert e.run({'x': np.ones((3, 4), np.float32)})['y'].shape == (3, 4)\n"
        "bad = {'xdsl', 'onnx', 'numba', 'mlirt.dialects', 'mlirt.builder'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_engines_come_and_go_while_the_workers_stay(tiny: Maker) -> None:
    """The workers must not be in the code of an engine that is freed right after a run."""
    parts = tiny()
    data = plan_bytes(parts.manifest, parts.sections, parts.weights)
    x = {"x": random(3, 4)}
    for _ in range(30):
        engine = load(data)
        engine.run(x)
        del engine


def test_an_engine_is_handed_to_another_process(tiny: Maker, tmp_path: Path) -> None:
    (tmp_path / "engine").write_bytes(pickle.dumps(engine_of(tiny())))
    script = (
        "import pickle, numpy as np\n"
        f"e = pickle.load(open({str(tmp_path / 'engine')!r}, 'rb'))\n"
        "assert e.run({'x': np.ones((3, 4), np.float32)})['y'].shape == (3, 4)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def large_plans(tiny: Maker, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan file that counts as large, so that it is mapped."""
    monkeypatch.setattr(plan_source, "MAX_READ_BYTES", 0)
    parts, path = tiny(), folder / "large.plan"
    write_plan(path, parts.manifest, parts.sections, parts.weights)
    return path


def test_an_engine_of_a_large_file_is_pickled_as_its_name(
    tiny: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = large_plans(tiny, tmp_path, monkeypatch)
    loaded, built = load(path), engine_of(tiny())
    assert len(pickle.dumps(built)) > path.stat().st_size
    built.save(tmp_path / "saved.plan")
    for engine in (loaded, built):
        content = pickle.dumps(engine)
        assert len(content) < 1000
        x = random(3, 4)
        np.testing.assert_array_equal(pickle.loads(content).run({"x": x})["y"], engine.run({"x": x})["y"])


def test_an_engine_whose_file_has_changed_is_pickled_as_bytes(
    tiny: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = large_plans(tiny, tmp_path, monkeypatch)
    engine = load(path)
    by_name = pickle.dumps(engine)
    path.unlink()
    assert pickle.loads(pickle.dumps(engine)).run({"x": random(3, 4)})["y"].shape == (3, 4)
    with pytest.raises(PlanError, match=r"large\.plan, which is not as it was"):
        pickle.loads(by_name)


def test_engines_of_one_large_file_share_its_memory(
    tiny: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = large_plans(tiny, tmp_path, monkeypatch)
    one, other = load(path), load(path)
    for key, array in one.plan.weights.items():
        assert array.ctypes.data == other.plan.weights[key].ctypes.data


def test_weights_are_checked_later_on_request(tiny: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = large_plans(tiny, tmp_path, monkeypatch)
    load(path, check_weights=False).check_weights()
    content = bytearray(path.read_bytes())
    content[content.rindex(np.arange(8, dtype=np.float32).tobytes())] ^= 1
    path.unlink()
    path.write_bytes(content)
    with pytest.raises(PlanError, match="'weights' does not match"):
        load(path)
    engine = load(path, check_weights=False)
    with pytest.raises(PlanError, match="'weights' does not match"):
        engine.check_weights()
    engine_of(tiny()).check_weights()


def test_no_digest_of_weights_is_computed_until_somebody_asks(
    tiny: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = large_plans(tiny, tmp_path, monkeypatch)
    digests = mock.Mock(wraps=getattr(plan_file, "_check_digest"))
    monkeypatch.setattr(plan_file, "_check_digest", digests)
    engine = load(path, check_weights=False)
    assert "weights" not in [call.args[0] for call in digests.call_args_list]
    engine.check_weights()
    assert [call.args[0] for call in digests.call_args_list].count("weights") == 1


def test_a_forked_child_runs_too(tiny: Maker, tmp_path: Path) -> None:
    parts = tiny()
    write_plan(tmp_path / "a.plan", parts.manifest, parts.sections, parts.weights)
    script = (
        "import os, numpy as np, mlirt\n"
        f"e = mlirt.load({str(tmp_path / 'a.plan')!r})\n"
        "x = {'x': np.ones((3, 4), np.float32)}\n"
        "want = e.run(x)['y']\n"
        "child = os.fork()\n"
        "assert (e.run(x)['y'] == want).all()\n"
        "if child:\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=60)
