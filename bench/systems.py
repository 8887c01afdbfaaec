"""Windows and macOS without such a machine: C libraries that run under Wine, and ones linked as macOS has them.

`python bench/systems.py [FOLDER]` gets MinGW, Wine, clang and lld from Debian's packages, for a machine with Debian or
Ubuntu on x86-64; nothing is installed, and they can be deleted with the folder (about 1.5 GB; .cache/systems if none is
named, where tests look for it). Then it builds fifteen networks, or those that `--networks` names, and random graphs
(`--graphs`), and tells

- windows: whether a library (.dll) and a program (.exe) run under Wine with the bits that Linux's code of the same
  processor has here, with one thread and with three;
- darwin: whether a library (.dylib) is linked for both of Apple's architectures with functions of bench/macos_headers/
  alone, and how many instructions of its kernels touch the register x18, which is the system's. With
  `--emulators FOLDER` (bench/emulated.py) QEMU runs the kernels for apple-m1 (bench/foreign_systems.py).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from emulated import emulated_command, emulated_environment
from emulated_networks import networks
from fuzz_cases import Case, random_case

import mlirt
from mlirt.runtime.c_library.export import export_c
from mlirt.runtime.elf_sections import read_object
from mlirt.runtime.plan_file import Plan
from mlirt.systems import DARWIN, WINDOWS, architecture_of

_HERE = Path(__file__).parent
FOLDER = _HERE.parent / ".cache" / "systems"
"""Where the tools are unless another folder is named."""
_PACKAGES = (
    *("wine64", "libwine", "libunwind8", "libz-mingw-w64", "binutils-mingw-w64-x86-64", "mingw-w64-common"),
    *("mingw-w64-x86-64-dev", "gcc-mingw-w64-x86-64-posix-runtime", "gcc-mingw-w64-x86-64-posix", "gcc-mingw-w64-base"),
    *("clang-14", "libclang-common-14-dev", "libclang1-14", "libclang-cpp14", "libllvm14", "lld-14"),
)
_GCC, _WINE, _LLVM = "usr/bin/x86_64-w64-mingw32-gcc-posix", "usr/lib/wine", "usr/lib/llvm-14/bin"
_HEADERS = _HERE / "macos_headers"
_PROGRAM = _HERE.parent / "test" / "runtime" / "c_library" / "run_library.c"
_TARGETS = {"x86_64": "x86_64-apple-macos11", "aarch64": "arm64-apple-macos11"}
_WARNINGS = ("-Wno-unused-command-line-argument", "-Werror=implicit-function-declaration")
_X18 = re.compile(r"\b[xw]18\b")

_APPLE = "apple-m1"
Array = np.ndarray[Any, Any]


def why_not(folder: Path) -> str:
    """Why libraries cannot be made for other systems here; empty where they can."""
    missing = [one for one in (_GCC, f"{_WINE}/wine64", f"{_LLVM}/ld64.lld") if not (folder / "tools" / one).exists()]
    return f"{folder / 'tools' / missing[0]} is not there: run python bench/systems.py {folder}" if missing else ""


def set_up(folder: Path) -> None:
    """Download and unpack the tools into a folder; what is there stays."""
    tools, debs = folder / "tools", folder / "packages"
    for one in (tools, debs):
        one.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "--quiet", "download", *_PACKAGES], cwd=debs, check=True)
    for deb in sorted(debs.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(deb), str(tools)], check=True)
    # The server's script looks in the system's own folders; and Wine looks for its libraries beside each other.
    shutil.copy(tools / _WINE / "wineserver64", tools / _WINE / "wineserver")
    shutil.copy(
        tools / "usr/x86_64-w64-mingw32/lib/zlib1.dll", tools / "usr/lib/x86_64-linux-gnu/wine/x86_64-windows/zlib1.dll"
    )


def _environment(folder: Path, **more: str) -> dict[str, str]:
    tools = folder.absolute() / "tools"
    libraries = [str(tools / "usr/lib/x86_64-linux-gnu"), str(tools / "usr/lib/llvm-14/lib")]
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(libraries), **more}


def exported(plan: Plan, folder: Path, out: Path, system: str) -> Path:
    """The library of a plan for Windows or macOS."""
    tools = folder.absolute() / "tools"
    if system == WINDOWS:
        command = [str(tools / _GCC)]
    else:
        target = _TARGETS[architecture_of(plan.manifest.target.triple)]
        command = [str(tools / _LLVM / "clang"), f"--target={target}", "-nostdlibinc", f"-isystem{_HEADERS}"]
        command += ["-fuse-ld=lld", f"-L{_HEADERS}", *_WARNINGS]
    with patch.dict(os.environ, _environment(folder, CC=" ".join(command))):
        return export_c(plan, out)


class WindowsProgram:
    """A library for Windows and a program that runs it, under Wine."""

    def __init__(self, plan: Plan, folder: Path, out: Path) -> None:
        self._folder, self._out, self._manifest = folder, out, plan.manifest
        self.library = exported(plan, folder, out, WINDOWS)
        command = [str(folder.absolute() / "tools" / _GCC), "-O2", str(_PROGRAM), "-I.", "-static", "-o", "run.exe"]
        subprocess.run([*command, self.library.name, "-lpthread"], cwd=out, check=True, env=_environment(folder))

    def run(self, feeds: Mapping[str, Array], threads: int = 1, runs: int = 3) -> list[bytes]:
        """The bytes of the outputs; RuntimeError with what the program says where it fails."""
        arguments = [str(threads), "1", str(runs), "1"]
        for number, tensor in enumerate(self._manifest.given_inputs):
            (self._out / f"input_{number}.bin").write_bytes(feeds[tensor.name].tobytes())
            arguments += [f"input_{number}.bin", ",".join(map(str, feeds[tensor.name].shape))]
        done = wine(self._folder, [str(self._out / "run.exe"), *arguments], self._out)
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}")
        return [(self._out / f"output_{i}.bin").read_bytes() for i in range(len(self._manifest.outputs))]


def wine(folder: Path, command: Sequence[str], where: Path) -> subprocess.CompletedProcess[str]:
    """Run a program for Windows; what Wine keeps of it is in the folder."""
    prefix = folder.absolute() / "wine"
    settings = {"WINEPREFIX": str(prefix), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml=", "DISPLAY": ""}
    loader = str(folder.absolute() / "tools" / _WINE / "wine64")
    return subprocess.run(
        [loader, *command],
        cwd=where,
        env=_environment(folder, **settings),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )


def uses_of_x18(plan: Plan) -> int:
    """How many instructions of a plan for Arm touch the register that belongs to macOS and to Windows."""
    capstone: Any = import_module("capstone")
    decoder = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    decoder.skipdata = True  # tables of jumps
    uses = 0
    for name, data in plan.sections.items():
        if name.endswith(".o"):
            for section in read_object(memoryview(data), name, "aarch64").sections:
                if section.name.startswith(".text"):
                    uses += sum(bool(_X18.search(one[3])) for one in decoder.disasm_lite(bytes(section.body), 0))
    return uses


def _built(case: Case, cpu: str, system: str) -> Any:
    return mlirt.compile(case.model, cpu=cpu, system=system)


def _refusal(case: Case, cpu: str) -> str:
    """Why there is nothing to compare: the graph has no meaning under Linux either; empty where it has one."""
    try:
        engine = _built(case, cpu, "linux")
        for feeds in case.runs:
            engine.run(feeds)
    except mlirt.MlirtError as error:
        return str(error)
    return ""


def _windows(case: Case, cpu: str, folder: Path, out: Path) -> str:
    program = WindowsProgram(_built(case, cpu, WINDOWS).plan, folder, out)
    here = _built(case, cpu, "linux")
    for feeds in case.runs:
        expected = [np.array(value).tobytes() for value in here.run(feeds).values()]
        for threads in (1, 3):
            if program.run(feeds, threads) != expected:
                return f"DIFFERS with {threads} threads"
    return "same bits"


def _darwin(case: Case, folder: Path, out: Path) -> str:
    found: list[str] = []
    for cpu in ("x86-64-v3", _APPLE):
        plan = _built(case, cpu, DARWIN).plan
        library = exported(plan, folder, out / cpu, DARWIN)
        found.append(f"{cpu} {library.stat().st_size >> 10} KiB")
        if cpu == _APPLE:
            found.append(f"x18 in {uses_of_x18(plan)} instructions")
    return ", ".join(found)


def kept_for_emulator(case: Case, out: Path, number: int) -> None:
    """Write plans of a network for Apple's processor, for macOS and Linux, and its inputs, as foreign_systems.py reads
    them.
    """
    out.mkdir(parents=True, exist_ok=True)
    for system in (DARWIN, "linux"):
        _built(case, _APPLE, system).save(out / f"{number}.{system}")
    for k, feeds in enumerate(case.runs):
        np.savez(out / f"{number}_{k}.npz", allow_pickle=False, **feeds)


def emulated(folder: Path, out: Path) -> list[str]:
    """Whether code for macOS has the bits of Linux's on an emulated Arm processor, a line for each network there."""
    program = [*emulated_command(folder, _APPLE), str(_HERE / "foreign_systems.py"), str(out)]
    environment = emulated_environment(folder, _APPLE)
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-300:]}")
    return done.stdout.splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help="where the tools go")
    parser.add_argument("--cpu", default="x86-64-v3", help="the processor of Windows; default: %(default)s")
    parser.add_argument("--networks", default="", metavar="WORD", help="those whose name has the word; default: all")
    parser.add_argument("--graphs", type=int, default=0, help="random graphs besides; default: %(default)s")
    parser.add_argument("--systems", default="windows,darwin", help="default: %(default)s")
    parser.add_argument("--emulators", type=Path, help="where QEMU is, which then runs what is for macOS")
    arguments = parser.parse_args()
    if why_not(arguments.folder):
        set_up(arguments.folder)
    failed, folder = 0, arguments.folder.absolute()
    for number, case in enumerate([*networks(), *(random_case(seed, 8) for seed in range(arguments.graphs))]):
        if arguments.networks not in case.name:
            continue
        if _refusal(case, arguments.cpu):
            print(f"{number:2} {case.name:32} refused everywhere", flush=True)
            continue
        for system in arguments.systems.split(","):
            out = folder / "built" / f"{system}_{number}"
            shutil.rmtree(out, ignore_errors=True)
            try:
                said = _windows(case, arguments.cpu, folder, out) if system == WINDOWS else (
                    _darwin(case, folder, out)
                )  # fmt: skip
            except (RuntimeError, mlirt.MlirtError, subprocess.SubprocessError) as error:
                said = f"FAILED: {error}"
            failed += "DIFFERS" in said or "FAILED" in said
            print(f"{number:2} {case.name:32} {system:8} {said}", flush=True)
        if arguments.emulators:
            kept_for_emulator(case, folder / "emulated", number)
    for line in emulated(arguments.emulators, folder / "emulated") if arguments.emulators else ():
        failed += "DIFFERS" in line
        print(line, "(QEMU)", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
