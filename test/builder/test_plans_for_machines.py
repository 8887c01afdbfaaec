"""One plan for several machines: the best is chosen at loading, equal parts are stored once, damage is refused."""

from __future__ import annotations

import json
import logging
import pickle
import struct
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from fake_driver import FakeDriver
from onnx import ModelProto, helper
from onnx_models import Array, model_of, numbers, run_reference

import mlirt
from mlirt.builder.gpu_code import kept_codes
from mlirt.dialects.processor_files import read_processor
from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime import cuda_driver, host_cpu, plan_file, plan_variants
from mlirt.runtime.engine import Engine
from mlirt.runtime.host_cpu import host_architecture, host_features
from mlirt.runtime.kept_ptx import ptx_text
from mlirt.runtime.plan_file import Plan, read_plan
from mlirt.runtime.plan_variants import GpuHere, Machine, choose
from mlirt.tools import rt_exec

CPUS = ("x86-64", "x86-64-v2", "x86-64-v4", "neoverse-v1")
X86 = host_architecture() == "x86_64"


def network() -> ModelProto:
    """A convolution whose weights are large enough to be stored in another order, and a product."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"]),
    ]
    weights = {"w": numbers(64, 32, 3, 3) * np.float32(0.1), "m": numbers(64, 10, seed=1)}
    return model_of(nodes, {"x": ("float32", (1, 32, 12, 12))}, ["y"], weights)


def feeds() -> dict[str, Array]:
    return {"x": numbers(1, 32, 12, 12, seed=2)}


@cache
def engine() -> Any:
    return mlirt.compile(network(), cpu=",".join(CPUS))


@cache
def data() -> bytes:
    return engine().plan.to_bytes()


def chosen_here() -> str:
    best = "x86-64"
    for name in CPUS[:3]:
        best = name if host_features().issuperset(read_processor(name).features) else best
    return best


@pytest.mark.skipif(not X86, reason="the plan's code is for x86-64 and one Arm processor")
def test_the_best_one_is_chosen_and_right(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.plan").write_bytes(data())
    with caplog.at_level(logging.INFO, "mlirt"):
        loaded = mlirt.load(tmp_path / "a.plan")
    assert loaded.machines[0] == chosen_here()
    assert set(loaded.machines) == set(CPUS)
    assert f"the plan has code for {', '.join(CPUS)}: {chosen_here()}" in caplog.text
    single = mlirt.compile(network(), cpu=chosen_here()).run(feeds())["y"]
    np.testing.assert_array_equal(loaded.run(feeds())["y"], single)
    np.testing.assert_allclose(single, run_reference(network(), feeds())[0], rtol=1e-4, atol=1e-5)
    loaded.save(tmp_path / "b.plan")
    assert (tmp_path / "b.plan").read_bytes() == data()


@pytest.mark.parametrize("name", CPUS)
def test_each_plan_is_the_one_for_that_machine_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def choose_it(machines: Sequence[Machine], _: object) -> Machine:
        return next(one for one in machines if one.name == name)

    monkeypatch.setattr(plan_file, "choose", choose_it)
    found, single = read_plan(data()), engine_for(name).plan
    assert found.manifest_json == json.loads(json.dumps(single.manifest_json))
    assert found.sections.keys() >= {key for key in single.sections}
    assert all(bytes(found.sections[key]) == bytes(body) for key, body in single.sections.items())
    assert found.weights.keys() == single.weights.keys()
    for key, array in single.weights.items():
        np.testing.assert_array_equal(found.weights[key], array)
        assert not found.weights[key].flags.writeable


@cache
def engine_for(name: str) -> Any:
    return mlirt.compile(network(), cpu=name)


def test_equal_parts_are_stored_once() -> None:
    """Three layouts of the weights take the room of one, with little besides."""
    single = max(sum(array.nbytes for array in engine_for(name).plan.weights.values()) for name in CPUS)
    index = json.loads(data()[64 : 64 + struct.unpack("<Q", data()[24:32])[0]])
    sizes = {name: size for name, _, size, _ in index}
    assert sizes["weights"] < 1.3 * single
    assert sum(name.endswith("/main.o") for name in sizes) == 2  # one for each architecture


def test_a_machine_without_code_is_told_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cpu, "host_features", lambda: frozenset[str]())
    monkeypatch.setattr(host_cpu, "host_triple", lambda: "riscv64-unknown-linux-gnu")
    with pytest.raises(PlanError) as error:
        mlirt.load(data())
    text = str(error.value)
    assert all(name in text for name in CPUS)
    assert "none of it runs on this machine" in text
    assert "\n" not in text


def _machine(
    name: str, kind: str, features: tuple[str, ...], archs: tuple[str, ...] = (), shared_bytes: int = 0
) -> Machine:
    return Machine(name, kind, "", features, archs, {}, {}, shared_bytes)


def test_a_gpu_goes_before_a_processor_where_its_code_runs() -> None:
    machines = [_machine("a", "cpu", ()), _machine("b", "cuda", (), ("sm_80",)), _machine("c", "cuda", (), ("sm_90a",))]
    for capability, name in (((8, 9), "b"), ((9, 0), "c"), ((7, 5), "a"), (None, "a")):
        found = choose(machines, lambda capability=capability: capability and GpuHere(capability))
        assert found is not None
        assert found.name == name
    assert choose(machines[1:], lambda: None) is None


GPUS = ("sm_75", "sm_80+ptx", "sm_86", "sm_87", "sm_89", "sm_90a", "sm_100a", "sm_120")


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ((7, 5), "sm_75"),
        ((8, 0), "sm_80+ptx"),
        ((8, 6), "sm_86"),
        ((8, 7), "sm_87"),
        ((8, 8), "sm_80+ptx"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100a"),
        ((10, 3), "sm_80+ptx"),
        ((11, 0), "sm_80+ptx"),
        ((12, 0), "sm_120"),
        ((12, 1), "sm_120"),
        ((13, 0), "sm_80+ptx"),
        ((7, 0), None),
    ],
)
def test_the_gpu_with_the_nearest_code_is_chosen(capability: tuple[int, int], name: str | None) -> None:
    """Machine code of the same kind goes before PTX, which is for what nobody knew."""
    machines = [_machine(one, "cuda", (), kept_codes(one)) for one in GPUS]
    for order in (machines, machines[::-1]):
        found = choose(order, lambda: GpuHere(capability))
        assert (found and found.name) == name


def test_code_that_needs_more_shared_memory_is_not_chosen() -> None:
    machines = [
        _machine("large", "cuda", (), ("sm_86",), 160 << 10),
        _machine("small", "cuda", (), ("sm_80",), 90 << 10),
    ]
    for room, name in ((99 << 10, "small"), (163 << 10, "large"), (0, "large")):
        found = choose(machines, lambda room=room: GpuHere((8, 9), room))
        assert found is not None
        assert found.name == name


def test_a_gpu_without_code_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    built: Any = mlirt.compile(model_of([node], {"x": ("float32", (4, 64))}, ["y"]), gpu="sm_80,sm_90a", heuristic=True)
    monkeypatch.setattr(cuda_driver, "open_driver", lambda: FakeDriver(capability=(7, 5)))
    with pytest.raises(PlanError, match=r"code for sm_80 \(sm_80\), sm_90a \(sm_90a\), .*GPU sm_75\)"):
        mlirt.load(built.plan.to_bytes())


def test_ptx_is_kept_beside_machine_code() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    model = model_of([node], {"x": ("float32", (4, 64))}, ["y"])
    plan = cast("Any", mlirt.compile(model, gpu="sm_80+ptx", heuristic=True)).plan
    (kernel,) = plan.manifest.kernels
    assert set(kernel.objects) == {"sm_80", "compute_80"}
    text = ptx_text(bytes(plan.sections[kernel.objects["compute_80"]]), "x")
    assert b".target sm_80" in text
    assert b".version 7.8" in text
    assert text.endswith(b"\0")
    assert len(plan.sections[kernel.objects["compute_80"]]) < len(text) / 2


@pytest.mark.parametrize("gpu", ["sm_90a+ptx", "sm_100a+ptx", "sm_90a,sm_12", "sm_80+cubin"])
def test_code_that_there_is_not_is_refused(gpu: str) -> None:
    with pytest.raises(InvalidInputError, match=r"runs on no newer GPU|is not made"):
        mlirt.BuildConfig().replace(gpu=gpu)


def test_plans_for_two_gpus_and_a_processor_are_one(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    model = model_of([node], {"x": ("float32", (4, 64))}, ["y"])
    built = mlirt.compile(model, cpu="x86-64", gpu="sm_80,sm_90a", heuristic=True)
    built.save(tmp_path / "a.plan")
    plan = read_plan(tmp_path / "a.plan")
    assert plan.variants is not None
    archs = {one.name: one.archs for one in plan.variants.machines}
    assert archs == {"x86-64": (), "sm_80": ("sm_80",), "sm_90a": ("sm_90a",)}


def test_damage_is_refused() -> None:
    rng = np.random.default_rng(3)
    assert isinstance(read_plan(data()), Plan)
    for place in [*rng.integers(0, len(data()), 40), 9, 64, 80]:
        broken = bytearray(data())
        broken[place] ^= 1 << int(rng.integers(8))
        try:
            found = read_plan(broken)
        except PlanError:
            continue
        with pytest.raises(PlanError):  # it lies in a plan for another machine
            found.to_bytes()


def changed(edit: Any) -> bytes:
    """The file with another section `machines`, and digests that are right."""
    sections, _ = plan_variants.merged(engine().plan.variants.read())
    rows = json.loads(bytes(sections["machines"]))
    edit(rows)
    text = json.dumps(rows, sort_keys=True, separators=(",", ":")).encode()
    bodies = {**sections, "machines": text}
    _, weights = plan_variants.merged(engine().plan.variants.read())
    return b"".join(plan_file._file_pieces(bodies, plan_file.safetensors_section.stream_of(weights), 4))  # pyright: ignore[reportPrivateUsage]


def _no_section(rows: Any) -> None:
    rows[0]["sections"]["manifest"] = "nowhere"


def _no_weight(rows: Any) -> None:
    for row in rows:
        row["weights"] = {key: "nowhere" for key in row["weights"]}


def _far_walk(rows: Any) -> None:
    for row in rows:
        for place in row["weights"].values():
            if isinstance(place, dict):
                place["walk"][1] += 1 << 30


def _other_features(rows: Any) -> None:
    for row in rows:
        row["features"] = []


def _no_machine(rows: Any) -> None:
    rows.clear()


def _no_kind(rows: Any) -> None:
    del rows[0]["kind"]


@pytest.mark.parametrize("edit", [_no_machine, _no_kind, _no_section, _no_weight])
def test_a_table_that_does_not_fit_is_refused(edit: Any) -> None:
    with pytest.raises(PlanError, match="damaged plan file"):
        read_plan(changed(edit)).to_bytes()


@pytest.mark.parametrize("edit", [_far_walk, _other_features])
def test_a_table_that_lies_is_refused(edit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def choose_last(machines: Sequence[Machine], _: object) -> Machine:
        return machines[-1]

    monkeypatch.setattr(plan_file, "choose", choose_last)
    with pytest.raises(PlanError, match="damaged plan file"):
        read_plan(changed(edit))


def test_files_of_earlier_versions_load() -> None:
    """Those of version 2, whose digest did not cover the header, and of version 3, which single plans still are."""
    new = engine_for("x86-64").plan.to_bytes()
    assert struct.unpack("<Q", new[8:16]) == (3,)
    assert struct.unpack("<Q", data()[8:16]) == (4,)
    end = 64 + struct.unpack("<Q", new[24:32])[0]
    old = new[:8] + struct.pack("<Q", 2) + new[16:32] + sha256(new[64:end]).digest() + new[64:]
    assert read_plan(old).manifest_json == read_plan(new).manifest_json


@pytest.mark.parametrize(
    "settings",
    [
        {"refittable": True},
        {"debug": ["c"]},
        {"target": "reference"},
        {"cpu": "x86-64,vax"},
        {"cpu": ","},
        {"gpu": "sm_12"},
    ],
)
def test_what_several_machines_cannot_have_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        mlirt.compile(network(), config=mlirt.BuildConfig().replace(cpu=",".join(CPUS)).replace(**settings))


def test_rt_exec_says_which_was_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.plan").write_bytes(data())
    assert rt_exec.main([f"--loadEngine={tmp_path / 'a.plan'}", "--iterations=1", "--duration=0", "--warmUp=0"]) == 0
    assert f"The plan has code for {chosen_here()}, " in capsys.readouterr().out


def test_the_target_of_several_is_the_first_ones() -> None:
    settings = mlirt.BuildConfig()
    assert settings.replace(cpu=",".join(CPUS)).chosen_target() == "cpu"
    assert settings.replace(gpu="sm_80,sm_90a").chosen_target() == "cuda"
    assert settings.replace(gpu="sm_90a").chosen_target() == "cuda"


def test_a_plan_for_one_gpu_has_code_for_it_alone() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    model = model_of([node], {"x": ("float32", (4, 64))}, ["y"])
    built: Any = mlirt.compile(model, gpu="sm_80", heuristic=True)
    assert built.machines == ()
    assert {arch for kernel in built.plan.manifest.kernels for arch in kernel.objects} == {"sm_80"}


def test_an_engine_of_several_is_pickled_with_all() -> None:
    assert isinstance(engine(), Engine)
    machines = pickle.loads(pickle.dumps(engine())).machines  # the first one suits the machine that opens it
    assert sorted(machines) == sorted(engine().machines) == sorted(CPUS)
