"""Plans on processors that are not here: a sample of what `bench/cpu_fuzz.py --emulator` does with thousands of cases.

The emulators are got by `python bench/emulated.py`; where they are not, what needs them is skipped.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emulated
import numpy as np
import pytest
from cpu_fuzz import judge
from emulated import FOLDER, EmulatedMachine, emulated_model, why_not
from emulated_messages import read_message, write_message
from emulated_networks import networks
from fuzz_cases import Case, random_case
from onnx import helper
from onnx_models import model_of, numbers, one_node

import mlirt
from mlirt.dialects.processor_files import processor_names, read_processor
from mlirt.errors import InvalidInputError
from mlirt.runtime.host_cpu import host_architecture

EMULATORS = Path(os.environ.get("MLIRT_EMULATORS", FOLDER))
CPUS = ("cortex-a57", "neoverse-n1", "neoverse-v2", "neoverse-v1", "x86-64-v2", "x86-64-v3")
SAMPLE = ("functions", "int8 convolutions", "products", "loop")


@pytest.fixture(scope="module", params=CPUS)
def elsewhere(request: pytest.FixtureRequest) -> Iterator[tuple[str, EmulatedMachine]]:
    """A processor's name, and the emulator that has it."""
    cpu: str = request.param
    if reason := why_not(EMULATORS, cpu):
        pytest.skip(reason)
    machine = EmulatedMachine(EMULATORS, cpu)
    yield cpu, machine
    machine.close()


def test_networks_and_graphs_run_on_other_processors(elsewhere: tuple[str, EmulatedMachine]) -> None:
    cpu, machine = elsewhere
    cases = [case for case in networks() if case.name.removeprefix("network ") in SAMPLE]
    assert len(cases) == len(SAMPLE)
    outcomes = {case.name: judge(case, "cpu", cpu=cpu, machine=machine) for case in [*cases, random_case(9, 8)]}
    assert {kind for kind, _ in outcomes.values()} <= {"right", "rounding"}, outcomes


def _quantized(channels: int, element: str) -> Case:
    """A convolution of 8 bits, whose images have rows of many lengths: they are brought into blocks and out of them."""
    random, limits = np.random.default_rng(channels), np.iinfo(element)
    weights = {
        "scale": np.array(0.02, "f"),
        "small": np.array(0.05, "f"),
        "zero": np.array(3, element),
        "w": random.integers(-127, 128, (channels + 3, channels, 3, 3), np.int8),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "scale"], ["e"]),
        helper.make_node("Conv", ["d", "e"], ["c"], pads=[1] * 4),
        helper.make_node("QuantizeLinear", ["c", "small", "zero"], ["y"]),
    ]
    model = model_of(nodes, {"x": (element, (1, channels, 3, "width"))}, ["y"], weights)
    sizes = [1, 3, 7, 8, 9, 15, 16, 17, 23, 31, 37, 100]
    feeds = [{"x": random.integers(limits.min, limits.max + 1, (1, channels, 3, n), element)} for n in sizes]
    return Case(f"{element} of {channels}", model, tuple(feeds))


@pytest.mark.parametrize(("channels", "element"), [(3, "uint8"), (16, "uint8"), (21, "int8")])
def test_rows_of_any_length_are_brought_into_blocks_of_bytes(
    elsewhere: tuple[str, EmulatedMachine], channels: int, element: str
) -> None:
    cpu, machine = elsewhere
    assert judge(_quantized(channels, element), "cpu", cpu=cpu, machine=machine) == ("right", "")


def test_what_bytes_cannot_hold_is_saturated(elsewhere: tuple[str, EmulatedMachine]) -> None:
    """Here and there alike, by twos of lanes, by whole vectors and at their ends; infinite numbers too."""
    cpu, machine = elsewhere
    numbers_given = np.array([np.inf, -np.inf, 3e38, -3e38, 2.0**31, 2.0**33, 1e5, -1e5, 254.5, 127.5, -0.5, 1.5], "f")
    weights = {"one": np.array(1, "f"), "middle": np.array(128, "u1"), "none": np.array(0, "i1")}
    nodes = [helper.make_node("QuantizeLinear", ["x", "one", zero], [zero + "_y"]) for zero in ("middle", "none")]
    model = model_of(nodes, {"x": ("float32", ("n",))}, ["middle_y", "none_y"], weights)
    runs = tuple({"x": np.resize(numbers_given, count)} for count in (1, 5, 12, 67))
    assert judge(Case("saturated", model, runs), "cpu", cpu=cpu, machine=machine) == ("right", "")


@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 1031, 20), (5, 517, 37), (23, 256, 72)])
def test_products_of_halves_where_they_are_granted(
    elsewhere: tuple[str, EmulatedMachine], rows: int, depth: int, columns: int
) -> None:
    """Whatever a processor multiplies: no less accurate than factors that were rounded, with sums in float32."""
    cpu, machine = elsewhere
    model, feeds = one_node("MatMul", [numbers(rows, depth), numbers(depth, columns, seed=1)], constants=[1])
    engine: Any = mlirt.compile(model, target="cpu", cpu=cpu, precision="fp16")
    found = machine.engine(engine.plan.to_bytes()).run(feeds)["out0"]
    exact, weights = feeds["in0"], numbers(depth, columns, seed=1)
    rounded = exact.astype("f2").astype("f8") @ weights.astype("f2").astype("f8")
    wanted = rounded if "fp16fml" in engine.plan.manifest.target.features else exact.astype("f8") @ weights.astype("f8")
    assert ("fp16fml" in engine.plan.manifest.target.features) == (cpu == "neoverse-v2")
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * float(np.abs(wanted).max()))


@pytest.fixture
def own_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedMachine]:
    """This machine as if it were another one."""

    def none(_: object) -> None:
        return None

    monkeypatch.setattr(emulated, "emulated_model", none)
    machine = EmulatedMachine(None, "x86-64" if host_architecture() == "x86_64" else "armv8-a")
    yield machine
    machine.close()


def test_an_engine_elsewhere_gives_what_one_here_gives(own_machine: EmulatedMachine) -> None:
    model, feeds = one_node("Exp", [numbers(3, 5)])
    engine: Any = mlirt.compile(model, target="cpu")
    found = own_machine.engine(engine.plan.to_bytes()).run(feeds)
    np.testing.assert_array_equal(found["out0"], engine.run(feeds)["out0"])
    with pytest.raises(InvalidInputError, match="in0"):
        own_machine.engine(engine.plan.to_bytes()).run({})


def test_a_process_that_dies_is_an_error_and_has_a_successor(own_machine: EmulatedMachine) -> None:
    model, feeds = one_node("Neg", [numbers(4)])
    built: Any = mlirt.compile(model, target="cpu")
    engine = own_machine.engine(built.plan.to_bytes())
    first = own_machine.process()
    first.close()
    with pytest.raises(RuntimeError, match="died with exit code"):
        first.ask("a.plan", feeds)
    np.testing.assert_array_equal(engine.run(feeds)["out0"], -feeds["in0"])


def test_arrays_go_through_a_pipe_as_they_are() -> None:
    import ml_dtypes

    given = {
        "a": np.arange(6, dtype=np.int16).reshape(2, 3).T,
        "number": np.array(2.5, np.float16),
        "empty": np.zeros((0, 3), bool),
        "narrow": np.array([1, 2], ml_dtypes.bfloat16),
    }
    pipe = io.BytesIO()
    write_message(pipe, {"plan": "a"}, given)
    pipe.seek(0)
    header, found = read_message(pipe)
    assert header["plan"] == "a"
    for name, value in given.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape)
        np.testing.assert_array_equal(found[name], value)
    with pytest.raises(EOFError):
        read_message(pipe)


def test_the_least_model_that_has_what_code_needs_is_chosen() -> None:
    chosen = {name: emulated_model(read_processor(name)) for name in processor_names()}
    assert chosen["cortex-a57"] == "cortex-a57"
    assert chosen["neoverse-n1"] == "neoverse-n1"
    assert chosen["neoverse-v2"] == "max,sve=off"
    assert chosen["neoverse-v1"] == "max,sve256=on,sve-default-vector-length=32"
    assert (chosen["x86-64-v2"], chosen["x86-64-v3"], chosen["x86-64-v4"]) == ("Nehalem", "Haswell", None)
    assert all(chosen[name] for name in chosen if read_processor(name).architecture == "aarch64")


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    assert "run python bench/emulated.py" in why_not(tmp_path, "neoverse-v1")
    assert "no emulator has sapphirerapids" in why_not(tmp_path, "sapphirerapids") or why_not(None, "x86-64-v4") == ""
