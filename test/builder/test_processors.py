"""Plans for processors that are named: nothing is asked of the machine that builds, and lower levels run on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import Array, model_of, numbers, run_reference

import mlirt
from mlirt.builder import host
from mlirt.builder.device_choice import asking
from mlirt.builder.host import cpu_target, log_target
from mlirt.dialects.processor_files import read_processor
from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime.elf_sections import MACHINES
from mlirt.runtime.host_cpu import host_features
from mlirt.runtime.plan_file import Plan
from mlirt.tools import rt_exec, rt_opt

LOWER = [
    name for name in ("x86-64", "x86-64-v2", "x86-64-v3") if host_features().issuperset(read_processor(name).features)
]


def network() -> Any:
    """A convolution with its activation, a product and a softmax."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["c"], ["s"]),
        helper.make_node("GlobalAveragePool", ["s"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["p"]),
        helper.make_node("Softmax", ["p"], ["y"]),
    ]
    weights = {"w": numbers(32, 16, 3, 3) * np.float32(0.1), "m": numbers(32, 10, seed=1)}
    return model_of(nodes, {"x": ("float32", (1, 16, 9, 9))}, ["y"], weights)


def feeds() -> dict[str, Array]:
    return {"x": numbers(1, 16, 9, 9, seed=2)}


def plan_for(cpu: str) -> Plan:
    engine: Any = mlirt.compile(network(), cpu=cpu)
    return engine.plan


def machines(plan: Plan) -> set[int]:
    """The processors that the objects of a plan are for, by ELF's numbers."""
    objects = [bytes(code) for name, code in plan.sections.items() if name.endswith(".o")]
    assert objects
    return {int.from_bytes(code[18:20], "little") for code in objects}


def refused(*_: object) -> NoReturn:
    raise AssertionError("the machine that builds was asked")


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody ask what the machine that builds has."""
    monkeypatch.delenv("MLIRT_NUM_THREADS", raising=False)
    for name in ("host_features", "host_architecture", "thread_count", "allow_matrix_unit"):
        monkeypatch.setattr(host, name, refused)


@pytest.mark.usefixtures("deaf")
@pytest.mark.parametrize("name", ["x86-64", "x86-64-v4", "sapphirerapids", "alderlake", "neoverse-v1", "apple-m1"])
def test_a_named_processor_is_what_its_file_says(name: str) -> None:
    with asking(None, name):
        found, described = cpu_target(), read_processor(name)
    assert found.triple == described.triple("linux")
    assert (found.features, found.special) == (frozenset(described.features), frozenset(described.special))
    assert found.vector_bits == described.vector_bits
    assert found.cpu.name == described.device


@pytest.mark.usefixtures("deaf")
def test_a_level_has_none_of_the_special_features_of_the_machine_that_builds() -> None:
    with asking(None, "x86-64-v4"):
        assert not cpu_target().special


@pytest.mark.usefixtures("deaf")
def test_narrower_vectors_are_those_of_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_VECTOR_BITS", "256")
    with asking(None, "sapphirerapids"):
        assert cpu_target().features == frozenset(read_processor("x86-64-v3").features)
        assert not cpu_target().special
    with asking(None, "neoverse-v2"), pytest.raises(InvalidInputError, match="neoverse-v2 has 128"):
        cpu_target()


@pytest.mark.usefixtures("deaf")
def test_sve_of_256_bits_is_neon_where_vectors_are_narrower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_VECTOR_BITS", "128")
    with asking(None, "neoverse-v1"):
        found = cpu_target()
    assert found.vector_bits == found.cpu.vector_bits == 128
    assert {"neon", "lse"} <= found.features
    assert not {"sve", "sve256"} & found.features
    assert found.special == {"dotprod", "fp16fml", "i8mm"}


def test_a_device_beside_it_has_the_same_vectors() -> None:
    with asking("cpu-neoverse-n1", "neoverse-v2"):
        assert cpu_target().cpu.multiplies == 2
    with asking("cpu-avx2", "neoverse-v2"), pytest.raises(InvalidInputError, match="vectors of 256 bits, but the proc"):
        cpu_target()


def test_it_decides_on_the_target() -> None:
    with asking(None, "neoverse-v1"):
        assert log_target("auto") == "cpu"
        with pytest.raises(InvalidInputError, match="the processor neoverse-v1 is for target cpu, not cuda"):
            log_target("cuda")
    with asking(None, None, "linux"):
        assert cpu_target().triple.split("-")[2] == "linux"


@pytest.mark.parametrize("cpu", LOWER)
def test_a_lower_level_runs_here(cpu: str) -> None:
    engine = mlirt.compile(network(), cpu=cpu)
    np.testing.assert_allclose(engine.run(feeds())["y"], run_reference(network(), feeds())[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("cpu", "bits"), [("neoverse-v1", 256), ("neoverse-v2", 128), ("cortex-a57", 128)])
def test_code_for_arm_is_made_anywhere(cpu: str, bits: int, tmp_path: Path) -> None:
    plan = plan_for(cpu)
    target = plan.manifest.target
    assert machines(plan) == {MACHINES["aarch64"]}
    assert (target.triple, target.vector_bits) == ("aarch64-unknown-linux-gnu", bits)
    assert ("lse" in target.features) == (cpu != "cortex-a57")
    assert ("sve256" in target.features) == (bits == 256)
    if "neon" in host_features():
        pytest.skip("this machine may run it")
    plan.save(tmp_path / "a.plan")
    with pytest.raises(PlanError, match="built for aarch64 processors"):
        mlirt.load(tmp_path / "a.plan")


def test_rt_exec_builds_for_a_processor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(network().SerializeToString())
    flags = (
        f"--onnx={path}",
        "--cpu=neoverse-v1",
        "--system=linux",
        "--buildOnly",
        f"--saveEngine={tmp_path / 'a.plan'}",
    )
    assert rt_exec.main([*flags]) == 0
    from mlirt.runtime.plan_file import read_plan

    assert machines(read_plan(tmp_path / "a.plan")) == {MACHINES["aarch64"]}
    capsys.readouterr()
    for flag, words in (("--cpu=x86-64-v9", "there is no processor 'x86-64-v9'"), ("--system=plan9", "--system: ")):
        assert rt_exec.main([f"--onnx={path}", flag, "--buildOnly"]) != 0
        told = capsys.readouterr()
        (line,) = [line for line in (told.out + told.err).splitlines() if words in line]
        assert "expected one of host, " in line


def test_rt_opt_writes_assembly_for_a_processor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sum.mlir"
    kind = "tensor<4096xf32>"
    path.write_text(
        f"func.func @main(%x: {kind}) -> {kind} {{ %y = trt.elementwise sum %x, %x : ({kind}, {kind}) -> {kind}"
        f" func.return %y : {kind} }}",
        encoding="utf-8",
    )
    for cpu, word in (
        ("x86-64-v4", "%zmm"),
        ("x86-64-v3", "%ymm"),
        ("x86-64-v2", "%xmm"),
        ("neoverse-v2", "fadd\tv"),
        ("neoverse-v1", "fadd\tz"),
    ):
        assert rt_opt.main([str(path), "--to=memory", "-t", "asm", f"--cpu={cpu}"]) == 0
        assert word in capsys.readouterr().out


@pytest.mark.parametrize("cpu", ["neoverse-v1", "cortex-a57", "x86-64-v2", "x86-64-v4"])
def test_rows_scattered_at_places_of_the_run_are_compiled_for_each(cpu: str) -> None:
    """Loops over elements that a condition stores, beside those that move bytes."""
    inputs = {"cache": ["n", "h", "m", "d"], "update": ["n", "h", "k", "d"], "at": ["n"]}
    infos = [
        helper.make_tensor_value_info(name, TensorProto.INT64 if name == "at" else TensorProto.FLOAT, shape)
        for name, shape in inputs.items()
    ]
    node = helper.make_node("TensorScatter", [*inputs], ["y"], mode="linear")
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "network", infos, [result])
    model: Any = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    engine: Any = mlirt.compile(model, cpu=cpu)
    assert engine.plan.manifest.launches
