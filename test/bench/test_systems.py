"""Libraries for Windows run under Wine, and ones for macOS are linked: a sample of what `bench/systems.py` does.

The tools are got by `python bench/systems.py`, the emulator by `python bench/emulated.py`; where they are not, what
needs them is skipped.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import emulated
import numpy as np
import pytest
import systems
from emulated_networks import networks
from fuzz_cases import Case

import mlirt
from mlirt.errors import UnsupportedError
from mlirt.runtime.c_library import toolchain
from mlirt.runtime.host_cpu import host_architecture
from mlirt.runtime.plan_file import Plan
from mlirt.systems import DARWIN, LINUX, WINDOWS

TOOLS = Path(os.environ.get("MLIRT_SYSTEMS", systems.FOLDER))
EMULATORS = Path(os.environ.get("MLIRT_EMULATORS", emulated.FOLDER))
NEEDS_TOOLS = pytest.mark.skipif(bool(systems.why_not(TOOLS)), reason=systems.why_not(TOOLS) or "they are there")
SAMPLE = ("residual convolutions", "loop", "functions")


@cache
def case(name: str) -> Case:
    (found,) = [one for one in networks() if one.name == f"network {name}"]
    return found


@cache
def engine(name: str, cpu: str, system: str) -> Any:
    return mlirt.compile(case(name).model, cpu=cpu, system=system)


def plan(name: str, cpu: str, system: str) -> Plan:
    return engine(name, cpu, system).plan


@NEEDS_TOOLS
@pytest.mark.skipif(host_architecture() != "x86_64", reason="the code is for x86-64")
@pytest.mark.parametrize("name", SAMPLE)
def test_a_library_for_windows_has_the_bits_of_linux(name: str, tmp_path: Path) -> None:
    program = systems.WindowsProgram(plan(name, "x86-64-v2", WINDOWS), TOOLS, tmp_path)
    assert sorted(one.name for one in tmp_path.glob("*net*")) == ["libnet.dll.a", "net.dll", "net.h", "net.hpp"]
    here = engine(name, "x86-64-v2", LINUX)
    for feeds in case(name).runs:
        expected = [np.array(value).tobytes() for value in here.run(feeds).values()]
        for threads in (1, 3):
            assert program.run(feeds, threads, runs=20) == expected


@NEEDS_TOOLS
def test_errors_are_words_under_windows(tmp_path: Path) -> None:
    program = systems.WindowsProgram(plan("residual convolutions", "x86-64-v2", WINDOWS), TOOLS, tmp_path)
    with pytest.raises(RuntimeError, match=re.escape("expected shape (n, 3, 35, 37), got (2, 3, 35, 38)")):
        program.run({"x": np.zeros((2, 3, 35, 38), np.float32)})


@NEEDS_TOOLS
@pytest.mark.parametrize("cpu", ["x86-64-v2", "apple-m1"])
def test_a_library_for_macos_is_linked(cpu: str, tmp_path: Path) -> None:
    """With the functions of `libSystem.tbd` alone: another one would be missing."""
    library = systems.exported(plan("functions", cpu, DARWIN), TOOLS, tmp_path, DARWIN)
    assert library.name == "libnet.dylib"
    assert library.read_bytes()[:4] == b"\xcf\xfa\xed\xfe"
    described = subprocess.run(["file", str(library)], capture_output=True, text=True, check=False).stdout
    assert not described or "dynamically linked shared library" in described
    assert systems.uses_of_x18(plan("functions", "apple-m1", DARWIN)) == 0


def test_macos_code_has_the_bits_of_linux_in_an_emulator(tmp_path: Path) -> None:
    if reason := emulated.why_not(EMULATORS, "apple-m1"):
        pytest.skip(reason)
    for number, name in enumerate(SAMPLE):
        systems.kept_for_emulator(case(name), tmp_path, number)
    assert systems.emulated(EMULATORS, tmp_path) == [f"{number} same bits" for number in range(len(SAMPLE))]


def test_the_compiler_is_for_the_system_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def dumped(command: list[str], folder: Path) -> str:
        return said[0]

    monkeypatch.setenv("CC", "sh")
    monkeypatch.setattr(toolchain, "run", dumped)
    for machine, architecture, system in [
        ("x86_64-w64-mingw32", "x86_64", WINDOWS),
        ("x86_64-pc-windows-msvc", "x86_64", WINDOWS),
        ("arm64-apple-darwin23.1.0", "aarch64", DARWIN),
        ("x86_64-apple-macosx11.0.0", "x86_64", DARWIN),
        ("x86_64-linux-gnu", "x86_64", LINUX),
        ("aarch64-linux-gnu", "aarch64", LINUX),
        ("x86_64-pc-linux-gnu", "x86_64", LINUX),
    ]:
        said[:] = [machine]
        assert toolchain.compiler(architecture, system) == ["sh"]
        other = LINUX if system != LINUX else WINDOWS
        with pytest.raises(UnsupportedError, match=f"is for {re.escape(machine)}, the plan for .* under {other}"):
            toolchain.compiler(architecture, other)
