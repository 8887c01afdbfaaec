"""C libraries for 64-bit Arm under Linux, made on another machine and run by QEMU: the Python runtime's bits?

`python bench/arm_libraries.py [FOLDER] [--emulators FOLDER] [--cpu NAME,..] [--only NAME]`

gets Debian's compiler for Arm into the first folder (200 MB; .cache/arm-tools if none is named; nothing is installed),
and exports the three networks of `bench/c_library.py --small`: ResNet-18, an LSTM in a loop, and a BERT of any length.
`bench/c_library_run.c` is compiled with each, once with the shared library and once with the single object and no
shared library at all. The emulator of the second folder (bench/emulated.py) runs both, and the plan with Python; all
outputs have to have the same bytes. The exit code is 1 where some have not.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from c_library import PROGRAM, Case, Feeds, cases, run_command
from emulated import FOLDER as EMULATORS
from emulated import EmulatedMachine, emulated_command, why_not

import mlirt

FOLDER = Path(__file__).parent.parent / ".cache" / "arm-tools"
"""Where the compiler is unless another folder is named."""
_PREFIX, _VERSION = "aarch64-linux-gnu", 12
_PACKAGES = (
    *(f"gcc-{_VERSION}-{_PREFIX}", f"gcc-{_VERSION}-{_PREFIX}-base", f"cpp-{_VERSION}-{_PREFIX}"),
    *(f"binutils-{_PREFIX}", f"libgcc-{_VERSION}-dev-arm64-cross", "libgcc-s1-arm64-cross"),
    *("libc6-dev-arm64-cross", "libc6-arm64-cross", "linux-libc-dev-arm64-cross"),
)
_CPUS = "neoverse-v1,cortex-a76"
_LINKED = ("shared", "static")


def why_not_made(folder: Path) -> str:
    """Why libraries cannot be made here; empty where they can."""
    missing = not compiler(folder).exists()
    return f"{compiler(folder)} is not there: run python bench/arm_libraries.py {folder}" if missing else ""


def compiler(folder: Path) -> Path:
    """Debian's compiler for Arm in a folder."""
    return folder.absolute() / "bin" / f"{_PREFIX}-gcc"


def environment(folder: Path) -> dict[str, str]:
    """What names the compiler, and where its tools find their libraries."""
    return {"CC": str(compiler(folder)), "LD_LIBRARY_PATH": f"{folder.absolute()}/tools/usr/lib/x86_64-linux-gnu"}


def set_up(folder: Path) -> None:
    """Download and unpack the compiler; what is there stays."""
    tools, debs, program = folder.absolute() / "tools", folder / "packages", compiler(folder)
    if program.exists():
        return
    for one in (tools, debs, program.parent):
        one.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "--quiet", "download", *_PACKAGES], cwd=debs, check=True)
    for deb in sorted(debs.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(deb), str(tools)], check=True)
    # The linker's script names files of the system.
    script = tools / f"usr/{_PREFIX}/lib/libc.so"
    script.write_text(script.read_text("ascii").replace(f"/usr/{_PREFIX}/lib/", ""), "ascii")
    gcc = f"{tools}/usr/bin/{_PREFIX}"
    program.write_text(f'#!/bin/sh\nexec {gcc}-gcc-{_VERSION} -B{gcc}- "$@"\n', "ascii")
    program.chmod(0o755)


def made(case: Case, cpu: str, tools: Path, folder: Path) -> mlirt.Engine:
    """Build and export a network, and compile the programs that run it."""
    engine = mlirt.compile(case.model, target="cpu", cpu=cpu, system="linux")
    assert isinstance(engine, mlirt.Engine)
    linking = {
        "shared": [f"-L{folder}", "-lnet", "-Wl,-rpath,$ORIGIN"],
        "static": [str(folder / "net.o"), "-lm", "-lpthread", "-static"],
    }
    with patch.dict(os.environ, environment(tools)):
        mlirt.export_c(engine, folder)
        for how in _LINKED:
            program = [str(compiler(tools)), "-O2", f"-I{folder}", str(PROGRAM), "-o", str(folder / how)]
            subprocess.run([*program, *linking[how]], check=True)
    return engine


def differing(engine: mlirt.Engine, feeds: Feeds, machine: EmulatedMachine, start: Sequence[str], where: Path) -> str:
    """Which programs give other bytes than the plan does there; empty where none."""
    expected = [array.tobytes() for array in machine.engine(engine.plan.to_bytes()).run(dict(feeds)).values()]
    found: list[str] = []
    for how in _LINKED:
        for old in where.glob("output_*.bin"):
            old.unlink()
        command = [*start, *run_command(engine, feeds, where / how, 2)]
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
        outputs = [where / f"output_{number}.bin" for number in range(len(expected))]
        is_same = done.returncode == 0 and [one.read_bytes() for one in outputs] == expected
        found += [] if is_same else [f"{how} {(done.stderr or done.stdout).strip()[-200:]}".strip()]
    return ", ".join(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--emulators", type=Path, default=EMULATORS, help="the folder of bench/emulated.py")
    parser.add_argument("--cpu", default=_CPUS, help="processors (default: %(default)s)")
    parser.add_argument("--only", default="", help="only networks with this text in their names")
    given = parser.parse_args()
    set_up(given.folder)
    is_right = True
    for cpu in given.cpu.split(","):
        if reason := why_not(given.emulators, cpu):
            raise SystemExit(reason)
        machine = EmulatedMachine(given.emulators, cpu)
        start = emulated_command(given.emulators, cpu)[:-1]
        for case in cases(is_small=True):
            if given.only not in case.name:
                continue
            where = given.folder.absolute() / "libraries" / cpu / case.name
            engine = made(case, cpu, given.folder, where)
            outcomes = [differing(engine, feeds, machine, start, where) for feeds in case.runs]
            is_right &= not any(outcomes)
            told = "; ".join(filter(None, outcomes)) or f"same bits in {len(outcomes)} runs"
            print(f"{cpu:12} {case.name:9} {told}", flush=True)
        machine.close()
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
