"""An engine as a C library: the bits of the Python runtime, in a program without Python; errors in words; no leak."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from c_programs import NEEDS_COMPILER, CProgram, assert_same_bits, compiled
from onnx import parser
from onnx_control_flow import SUM_EVEN, UNEQUAL_BRANCHES, UNTIL_LARGE
from onnx_models import Array
from small_network import network

import mlirt
from mlirt.errors import InvalidInputError, PlanError, UnsupportedError
from mlirt.runtime.c_library.features import FEATURES
from mlirt.runtime.c_library.system_files import SYSTEM_FILES
from mlirt.runtime.engine_interface import EngineLike
from mlirt.systems import LINUX
from mlirt.tools.rt_exec import main

pytestmark = NEEDS_COMPILER


def engine_of(text: str) -> EngineLike:
    return mlirt.compile(parser.parse_model(text), target="cpu")


def images(batch: int) -> dict[str, Array]:
    random = np.random.default_rng(batch)
    return {"x": random.standard_normal((batch, 3, 64, 64), np.float32)}


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory: pytest.TempPathFactory) -> CProgram:
    """Convolutions with borders, a pooling and a product, of any batch."""
    return CProgram(mlirt.compile(network("n"), target="cpu"), tmp_path_factory.mktemp("dynamic"))


@pytest.mark.parametrize("batch", [1, 2, 7, 33])
@pytest.mark.parametrize("threads", [1, 3])
def test_dynamic_lengths(dynamic: CProgram, batch: int, threads: int) -> None:
    feeds = images(batch)
    assert_same_bits(dynamic.outputs(feeds, threads), dynamic.engine.run(feeds))


def test_handles_in_threads(dynamic: CProgram) -> None:
    feeds = images(5)
    assert_same_bits(dynamic.outputs(feeds, 2, 4, 50, keeps=1), dynamic.engine.run(feeds))


def test_static_lengths(tmp_path: Path) -> None:
    program = CProgram(mlirt.compile(network(3), target="cpu"), tmp_path)
    feeds = images(3)
    assert_same_bits(program.outputs(feeds, keeps=1), program.engine.run(feeds))


def test_loop_with_a_branch(tmp_path: Path) -> None:
    program = CProgram(engine_of(SUM_EVEN), tmp_path)
    for count in (0, 1, 6):
        feeds = {"items": np.arange(1, 9, dtype=np.float32) / 3, "count": np.array(count)}
        assert_same_bits(program.outputs(feeds, 2), program.engine.run(feeds))


def test_sizes_that_the_data_decide_about(tmp_path: Path) -> None:
    program = CProgram(engine_of(UNTIL_LARGE), tmp_path)
    for limit in (0, 5, 1000):
        feeds = {"x": np.array([0.5, 1, 1.5], np.float32), "limit": np.array(limit, np.float32)}
        assert_same_bits(program.outputs(feeds), program.engine.run(feeds))


def test_branches_of_unequal_lengths(tmp_path: Path) -> None:
    program = CProgram(engine_of(UNEQUAL_BRANCHES), tmp_path)
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    for condition in (True, False):
        feeds = {"c": np.array(condition), "x": x}
        assert_same_bits(program.outputs(feeds, keeps=1), program.engine.run(feeds))


def test_random_numbers_go_on_from_run_to_run(tmp_path: Path) -> None:
    program = CProgram(
        engine_of("""
            <ir_version: 8, opset_import: ["" : 17]>
            draws (float[4] x) => (float[4] y) {
               noise = RandomUniformLike <seed: float = 3.0> (x)
               y = Add (noise, x)
            }"""),
        tmp_path,
    )
    feeds = {"x": np.zeros(4, np.float32)}
    first, second = program.engine.run(feeds), program.engine.run(feeds)
    assert first["y"].tobytes() != second["y"].tobytes()
    assert_same_bits(program.outputs(feeds, runs=1), first)
    done = subprocess.run(program.command(feeds, runs=2), cwd=tmp_path, check=False)
    assert done.returncode == 73  # the second run gives other bytes


def test_a_wrong_shape_names_the_tensor(dynamic: CProgram) -> None:
    wrong = np.zeros((2, 3, 64, 65), np.float32)
    expected = "input 'x': expected shape (n, 3, 64, 64), got (2, 3, 64, 65): dimension 3 must be 64, not 65"
    assert dynamic.error({"x": wrong}) == f"status 2: {expected}"
    few = np.zeros((3, 64, 64), np.float32)
    assert dynamic.error({"x": few}) == "status 2: input 'x': expected shape (n, 3, 64, 64), got 3 dimensions"


def test_lengths_that_contradict_each_other(tmp_path: Path) -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        added (float[n, 2] x, float[n, 2] y) => (float[n, 2] z) { z = Add (x, y) }"""
    program = CProgram(engine_of(text), tmp_path)
    feeds = {"x": np.ones((3, 2), np.float32), "y": np.ones((4, 2), np.float32)}
    with pytest.raises(InvalidInputError) as caught:
        program.engine.run(feeds)
    said = program.error(feeds)
    assert said.startswith("status 2: input 'y': expected shape (n, 2), got (4, 2): dimension 0 must be 3")
    assert "dimension 0 must be 3" in str(caught.value)


def test_lengths_out_of_the_profile(tmp_path: Path) -> None:
    engine = mlirt.compile(network("n"), target="cpu", profiles={"x": ((1, 3, 64, 64), (2, 3, 64, 64), (4, 3, 64, 64))})
    program = CProgram(engine, tmp_path)
    feeds = images(4)
    assert_same_bits(program.outputs(feeds), engine.run(feeds))
    said = program.error(images(5))
    assert "no optimization profile covers the shapes x=(5, 3, 64, 64)" in said
    assert said.endswith("axis 0 of input 'x' is 5, profile 0 allows 1 to 4")


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
def test_no_leak(dynamic: CProgram) -> None:
    assert isinstance(dynamic.engine, mlirt.Engine)
    if any(name.startswith(("avx512", "amx")) for name in dynamic.engine.plan.manifest.target.features):
        pytest.skip("valgrind knows no instructions of AVX-512")
    check = ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=all", "--error-exitcode=99"]
    command = [*check, *dynamic.command(images(2), threads=2, handles=2, runs=2)]
    done = subprocess.run(command, cwd=dynamic.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_the_library_exports_its_functions_alone(dynamic: CProgram) -> None:
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", "libnet.so"], cwd=dynamic.folder, capture_output=True, text=True, check=True
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    header = (dynamic.folder / "net.h").read_text()
    assert all(f"{name}(" in header for name in names)
    assert {"net_create", "net_run", "net_destroy", "net_error"} < names


def test_two_networks_in_one_program(dynamic: CProgram, tmp_path: Path) -> None:
    other = engine_of(SUM_EVEN)
    mlirt.export_c(dynamic.engine, tmp_path, "first")
    mlirt.export_c(other, tmp_path, "second")
    (tmp_path / "both.c").write_text("""
        #include "first.h"
        #include "second.h"
        #include <stdio.h>
        int main(void) {
          first_handle *a;
          second_handle *b;
          if (first_create(&a, 1) != FIRST_OK || second_create(&b, 1) != SECOND_OK)
            return 1;
          static float pixels[2 * 3 * 64 * 64], scores[2 * 10], items[3] = {1, 2, 4}, total;
          int64_t shape[] = {2, 3, 64, 64}, three[] = {3}, count = 3;
          const void *image[] = {pixels}, *given[] = {items, &count};
          void *out[] = {scores}, *sum[] = {&total};
          if (first_set_input_shape(a, 0, shape, 4) || first_run(a, image, out))
            return 2;
          if (second_set_input_shape(b, 0, three, 1) || second_run(b, given, sum))
            return 3;
          printf("%g\\n", total);
          first_destroy(a);
          second_destroy(b);
          return 0;
        }""")
    shared = ("-Wl,-rpath,$ORIGIN", "-L.", "-lfirst", "-lsecond")
    compiled("cc", tmp_path / "both.c", tmp_path / "shared", tmp_path, *shared)
    compiled("cc", tmp_path / "both.c", tmp_path / "static", tmp_path, "first.o", "second.o", "-lm", "-lpthread")
    for program in ("shared", "static"):
        done = subprocess.run([tmp_path / program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "5\n"), program


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler (g++)")
def test_header_for_cpp(dynamic: CProgram, tmp_path: Path) -> None:
    source = tmp_path / "use.cpp"
    source.write_text("""
        #include <cstdio>
        #include "net.hpp"
        int main() {
          net_cpp::Network network(1), moved(1);
          moved = std::move(network);
          std::vector<float> image(2 * 3 * 64 * 64, 1.0f);
          try {
            moved.set_input_shape(0, {2, 3, 64, 65});
            return 1;
          } catch (const net_cpp::Error& error) {
            std::puts(error.what());
          }
          moved.set_input_shape(0, {2, 3, 64, 64});
          std::vector<std::int64_t> shape = moved.output_shape(0);
          std::vector<float> scores(moved.output_bytes(0) / sizeof(float));
          moved.run({image.data()}, {scores.data()});
          std::printf("%d %d %.9g\\n", int(shape[0]), int(shape[1]), scores[0]);
        }""")
    folder = dynamic.folder
    options = ("-std=c++11", "-Wall", "-Wextra", "-Werror", f"-Wl,-rpath,{folder}", f"-L{folder}", "-lnet")
    compiled("g++", source, tmp_path / "use", folder, *options)
    done = subprocess.run([tmp_path / "use"], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith("input 'x': expected shape (n, 3, 64, 64)")
    scores = dynamic.engine.run({"x": np.ones((2, 3, 64, 64), np.float32)})["y"]
    assert second == f"2 10 {scores[0, 0]:.9g}"


def test_the_example_runs(dynamic: CProgram, tmp_path: Path) -> None:
    folder = dynamic.folder
    compiled("cc", folder / "example.c", tmp_path / "example", folder, f"-Wl,-rpath,{folder}", f"-L{folder}", "-lnet")
    done = subprocess.run([tmp_path / "example", "4x3x64x64"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("y [4, 10] ")
    refused = subprocess.run([tmp_path / "example", "4x3x64x63"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: input 'x': expected shape")


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dynamic: CProgram) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match="needs a C compiler and a linker, and none of cc, gcc, clang"):
        mlirt.export_c(dynamic.engine, tmp_path / "out")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(UnsupportedError, match="no-such-compiler is not on the PATH"):
        mlirt.export_c(dynamic.engine, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_compiler_for_another_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dynamic: CProgram) -> None:
    fake = tmp_path / "fake-cc"
    fake.write_text("#!/bin/sh\necho aarch64-linux-gnu\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CC", os.fspath(fake))
    with pytest.raises(UnsupportedError, match="is for aarch64-linux-gnu, the plan for x86_64"):
        mlirt.export_c(dynamic.engine, tmp_path / "out")


def test_a_compiler_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dynamic: CProgram) -> None:
    fake = tmp_path / "fake-cc"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = -dumpmachine ] && echo x86_64-linux-gnu && exit 0\necho error: broken >&2\nexit 1\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("CC", os.fspath(fake))
    with pytest.raises(UnsupportedError, match="could not make the library: error: broken"):
        mlirt.export_c(dynamic.engine, tmp_path / "out")


@pytest.mark.parametrize("name", ["", "Net", "1net", "a-b", "../net"])
def test_names(dynamic: CProgram, tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="is no name for a C library"):
        mlirt.export_c(dynamic.engine, tmp_path, name)


def test_a_processor_without_an_instruction(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dynamic: CProgram) -> None:
    """The last leaf of CPUID that there can be, which no processor has."""
    assert isinstance(dynamic.engine, mlirt.Engine)
    plan = dynamic.engine.plan
    monkeypatch.setitem(FEATURES, "avx4096", (0x7FFFFFFF, 0, 0, 0))
    target = replace(plan.manifest.target, features=(*plan.manifest.target.features, "avx4096"))
    library = mlirt.export_c(replace(plan, manifest=replace(plan.manifest, target=target)), tmp_path)
    shutil.copy(library, dynamic.folder / "other.so")
    command = [*dynamic.command(images(1))]
    environment = {**os.environ, "LD_PRELOAD": os.fspath(dynamic.folder / "other.so")}
    done = subprocess.run(command, cwd=dynamic.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("status 5: the library was made for processors with avx4096, which this one")


def test_a_feature_that_nothing_looks_for(tmp_path: Path, dynamic: CProgram) -> None:
    assert isinstance(dynamic.engine, mlirt.Engine)
    plan = dynamic.engine.plan
    target = replace(plan.manifest.target, features=("avx4096",))
    with pytest.raises(UnsupportedError, match="no test for the processor features avx4096 is known"):
        mlirt.export_c(replace(plan, manifest=replace(plan.manifest, target=target)), tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"triple": "aarch64-unknown-linux-gnu", "features": ("sve512",)}, "the processor features sve512 is known"),
        ({"triple": "aarch64-pc-windows-msvc-elf"}, "the plan is for aarch64-pc-windows-msvc-elf"),
        ({"triple": "x86_64-unknown-freebsd"}, "the plan is for x86_64-unknown-freebsd"),
        ({"triple": "x86_64-apple-macosx11.0.0-elf"}, "is for .*, the plan for x86_64 under darwin"),
    ],
)
def test_other_machines_are_refused(tmp_path: Path, dynamic: CProgram, change: dict[str, str], said: str) -> None:
    assert isinstance(dynamic.engine, mlirt.Engine)
    plan = dynamic.engine.plan
    target = replace(plan.manifest.target, **change)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UnsupportedError, match=said):
        mlirt.export_c(replace(plan, manifest=replace(plan.manifest, target=target)), tmp_path)


def test_weights_that_code_does_not_reach(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dynamic: CProgram) -> None:
    """Where they do not lie behind all else; here a system whose code reaches very little."""
    monkeypatch.setitem(SYSTEM_FILES, LINUX, replace(SYSTEM_FILES[LINUX], max_weights=1 << 20))
    assert isinstance(dynamic.engine, mlirt.Engine)
    weights = {name: np.zeros(1 << 19, np.float32) for name in dynamic.engine.plan.weights}
    with pytest.raises(UnsupportedError, match="the weights have more than 1 MiB, as a C library may have"):
        mlirt.export_c(replace(dynamic.engine.plan, weights=weights), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_code_without_a_kernel(tmp_path: Path, dynamic: CProgram) -> None:
    assert isinstance(dynamic.engine, mlirt.Engine)
    plan = dynamic.engine.plan
    kernels = (replace(plan.manifest.kernels[0], symbol="system"), *plan.manifest.kernels[1:])
    with pytest.raises(PlanError, match="it does not define 'system'"):
        mlirt.export_c(replace(plan, manifest=replace(plan.manifest, kernels=kernels)), tmp_path)


def test_an_engine_without_a_plan(tmp_path: Path) -> None:
    engine = mlirt.compile(network(1), target="reference")
    with pytest.raises(UnsupportedError, match="made of an engine with a plan"):
        mlirt.export_c(engine, tmp_path)


def test_rt_exec_writes_a_library(dynamic: CProgram, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dynamic.engine.save(tmp_path / "a.plan")
    assert main([f"--loadEngine={tmp_path / 'a.plan'}", f"--exportC={tmp_path / 'c'}", "--buildOnly"]) == 0
    assert f"Wrote the C library {tmp_path / 'c' / 'libnet.so'}" in capsys.readouterr().out
    made = {"example.c", "libnet.so", "net.h", "net.hpp", "net.o"}
    assert {one.name for one in (tmp_path / "c").iterdir()} == made
    assert main([f"--loadEngine={tmp_path / 'a.plan'}", f"--exportC={tmp_path / 'a.plan'}", "--buildOnly"]) == 1
    refused = capsys.readouterr()
    assert "is no folder" in refused.out + refused.err


_COUNTER = """
    <ir_version: 8, opset_import: ["" : 17]>
    counter (float[2] x, float[2] before) => (float[2] after, float[2] y) {
       after = Add (x, before)
       y = Neg (after)
    }"""
_GROWING = """
    <ir_version: 8, opset_import: ["" : 17]>
    growing (float[n, 2] x, float[past, 2] before) => (float[all, 2] after, float[n] last, float[all] y) {
       after = Concat <axis = 0> (before, x)
       axis = Constant <value = int64[1] {1}> ()
       y = ReduceSum <keepdims: int = 0> (after, axis)
       last = ReduceSum <keepdims: int = 0> (x, axis)
    }"""


@pytest.mark.parametrize(("text", "shape"), [(_COUNTER, (2,)), (_GROWING, (3, 2))])
def test_state_goes_on_from_run_to_run(tmp_path: Path, text: str, shape: tuple[int, ...]) -> None:
    engine = mlirt.compile(parser.parse_model(text), target="cpu", state={"before": "after"})
    program = CProgram(engine, tmp_path)
    feeds = {"x": np.linspace(1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)}
    first = engine.run(feeds)
    assert_same_bits(program.outputs(feeds, runs=1), first)
    engine.run(feeds)
    third = engine.run(feeds)
    assert_same_bits(program.outputs(feeds, 2, 3, runs=3, keeps=2), third)
    assert third["y"].tobytes() != first["y"].tobytes()
    assert_same_bits(program.outputs(feeds, runs=4, keeps=3), first)


def test_first_value_of_a_state(tmp_path: Path) -> None:
    first = {"before": np.array([5, 7], np.float32)}
    model = parser.parse_model(_COUNTER)
    engine = mlirt.compile(model, target="cpu", state={"before": "after"}, initial_state=first)
    program = CProgram(engine, tmp_path)
    feeds = {"x": np.ones(2, np.float32)}
    found = program.outputs(feeds, runs=1)
    assert_same_bits(found, engine.run(feeds))
    assert found["y"].tolist() == [-6, -8]
