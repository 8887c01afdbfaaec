"""Processors that are not here: QEMU and Python for them from Debian's packages, and engines that run there.

`python bench/emulated.py [FOLDER]` gets them, for a machine with Debian or Ubuntu on x86-64; nothing is installed, and
they can be deleted with the folder (about 1 GB; .cache/emulators if none is named, where tests look for it). Then

    python bench/cpu_fuzz.py --emulator FOLDER --cpu neoverse-v1 --networks --graphs 500 --node-tests

builds each case here, for that processor, and runs it there. One process of the emulator runs all the cases of a job,
as Python needs 15 seconds to start in it. A processor that no emulator has, such as one with AVX-512, runs on this
machine where it may.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from emulated_messages import Array, read_message, write_message

from mlirt import errors
from mlirt.dialects.processor_files import Processor, read_processor

_HERE = Path(__file__).parent
FOLDER = _HERE.parent / ".cache" / "emulators"
"""Where the emulators are unless another folder is named."""
_PYTHON = "usr/bin/python3.11"
_EMULATORS = ("qemu-user-static", "qemu-user", "libcapstone4", "liburing2")
_FOREIGN = (
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6", "libgcc-s1", "libstdc++6"),
    *("libexpat1", "libssl3", "zlib1g", "libffi8", "libbz2-1.0", "liblzma5", "libuuid1", "libcrypt1", "libsqlite3-0"),
)
_WHEELS = ("numpy>=2.0", "llvmlite", "safetensors>=0.5", "ml_dtypes>=0.5")
_PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
_V2 = frozenset({"sse4.2", "popcnt"})
_ARM_MAX = frozenset({"neon", "lse", "rdm", "fullfp16", "fp16fml", "dotprod", "i8mm", "bf16"})
_MODELS: Mapping[str, Sequence[tuple[str, frozenset[str]]]] = {
    "aarch64": (
        ("cortex-a57", frozenset({"neon"})),
        ("neoverse-n1", frozenset({"neon", "lse", "rdm", "fullfp16", "dotprod"})),
        ("max,sve=off", _ARM_MAX),
        ("max,sve256=on,sve-default-vector-length=32", _ARM_MAX | {"sve", "sve2", "sve256"}),
    ),
    "x86_64": (
        ("Nehalem", _V2),
        ("Haswell", _V2 | {"avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"}),
    ),
}
"""What QEMU 7.2 has of each architecture, the least first, with the features that plans may need."""


def emulated_model(processor: Processor) -> str | None:
    """QEMU's name of the least processor that has what code for one may use; None where there is none."""
    needed = frozenset(processor.features) | frozenset(processor.special)
    return next((name for name, having in _MODELS[processor.architecture] if needed <= having), None)


def why_not(folder: Path | None, cpu: str) -> str:
    """Why code for a processor cannot run here; empty where it can."""
    from mlirt.runtime.host_cpu import host_architecture, host_features

    processor = read_processor(cpu)
    needed = frozenset(processor.features) | frozenset(processor.special)
    if emulated_model(processor) is None:
        same = processor.architecture == host_architecture()
        return "" if same and needed <= host_features() else f"no emulator has {cpu}, and this machine is none"
    if folder is None:
        return "no folder of emulators is named"
    missing = [path for path in _files_needed(folder, processor) if not path.exists()]
    return f"{missing[0]} is not there: run python bench/emulated.py {folder}" if missing else ""


def _files_needed(folder: Path, processor: Processor) -> list[Path]:
    qemu = folder / "tools/usr/bin" / f"qemu-{processor.architecture}-static"
    return [qemu] if processor.architecture == "x86_64" else [qemu, folder / "root" / _PYTHON, folder / "site"]


def emulated_command(folder: Path | None, cpu: str, more: Sequence[str] = (), *, static: bool = True) -> list[str]:
    """The command that starts Python on a processor, with `more` flags of the emulator."""
    processor = read_processor(cpu)
    model = emulated_model(processor)
    if model is None:
        return [sys.executable]
    assert folder is not None
    tools = folder.absolute() / "tools"
    name = f"qemu-{processor.architecture}"
    if static:
        start = [str(tools / "usr/bin" / f"{name}-static")]
    else:
        libraries = str(tools / "usr/lib/x86_64-linux-gnu")
        start = ["/lib64/ld-linux-x86-64.so.2", "--library-path", libraries, str(tools / "usr/bin" / name)]
    start += ["-cpu", model, *more]
    if processor.architecture == "x86_64":
        return [*start, sys.executable]
    root = folder.absolute() / "root"
    return [*start, "-L", str(root), str(root / _PYTHON)]


def emulated_environment(folder: Path | None, cpu: str) -> dict[str, str]:
    """The environment of such a process: where Python finds our sources, and packages for the processor."""
    paths = [str(_HERE.parent / "src")]
    if folder is not None and read_processor(cpu).architecture != "x86_64":
        paths.append(str(folder.absolute() / "site"))
    elif os.environ.get("PYTHONPATH"):
        paths.append(os.environ["PYTHONPATH"])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MLIRT", "OPENBLAS"))}
    # Two threads, so that the workers of a plan meet; idle ones sleep at once, as spinning is slow in an emulator.
    return kept | {"PYTHONPATH": os.pathsep.join(paths), "MLIRT_NUM_THREADS": "2", "MLIRT_SPIN_MS": "0"}


class EmulatedProcess:
    """Python on another processor, which loads plans and runs them when it is told to."""

    def __init__(self, folder: Path | None, cpu: str) -> None:
        command = [*emulated_command(folder, cpu), str(_HERE / "emulated_server.py")]
        if len(command) > 2 and read_processor(cpu).architecture == "x86_64":
            command.append("--together")
        self._process = subprocess.Popen(
            command,
            env=emulated_environment(folder, cpu),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, plan: str, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of the plan in a file; raises the error that the plan raised there, and RuntimeError where the
        process has died.
        """
        entries = {name: np.asarray(value) for name, value in feeds.items()}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            write_message(self._process.stdin, {"plan": plan}, entries)
            header, found = read_message(self._process.stdout)
        except (OSError, EOFError):
            raise RuntimeError(f"the emulated process died with exit code {self._process.wait()}") from None
        if "error" in header:
            kind = getattr(errors, header["error"], RuntimeError)
            raise kind(header["text"])
        return found

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class EmulatedMachine:
    """Processes for one processor, one at a time: another takes its place when it dies."""

    def __init__(self, folder: Path | None, cpu: str) -> None:
        self._folder, self._cpu = folder, cpu
        self._process: EmulatedProcess | None = None

    def process(self) -> EmulatedProcess:
        if self._process is None or not self._process.is_alive:
            self._process = EmulatedProcess(self._folder, self._cpu)
        return self._process

    def engine(self, data: bytes) -> EmulatedEngine:
        """The plan with these bytes, to be run there."""
        return EmulatedEngine(self, data)

    def close(self) -> None:
        if self._process is not None:
            self._process.close()


class EmulatedEngine:
    """A plan that runs on an emulated machine."""

    def __init__(self, machine: EmulatedMachine, data: bytes) -> None:
        self._machine = machine
        self._file = tempfile.NamedTemporaryFile(suffix=".plan")
        self._file.write(data)
        self._file.flush()

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        return self._machine.process().ask(self._file.name, feeds)


def set_up(folder: Path) -> None:
    """Download and unpack QEMU, and Python with its packages for 64-bit Arm, into a folder; what is there stays."""
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.absolute()
    apt = _apt(folder)
    _told([*apt, "update"], folder)
    for name, packages in (("tools", _EMULATORS), ("root", [f"{one}:arm64" for one in _FOREIGN])):
        debs = folder / "packages" / name
        debs.mkdir(parents=True, exist_ok=True)
        _told([*apt, "download", *packages], debs)
        (folder / name).mkdir(exist_ok=True)
        for deb in sorted(debs.glob("*.deb")):
            _told(["dpkg-deb", "-x", str(deb), str(folder / name)], folder)
    platforms = [flag for one in _PLATFORMS for flag in ("--platform", one)]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(folder / "site")]
    _told([*pip, *platforms, "--python-version", "3.11", "--only-binary=:all:", *_WHEELS], folder)
    for cpu in ("cortex-a57", "x86-64-v2"):
        reason = why_not(folder, cpu)
        assert not reason, reason


def _apt(folder: Path) -> list[str]:
    """apt-get with lists of its own, so that the system's own architectures stay what they are."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / "apt" / name).mkdir(parents=True, exist_ok=True)
    settings = {
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "root",
        "Dir::State::lists": str(folder / "apt/lists"),
        "Dir::Cache": str(folder / "apt/cache"),
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]
    return ["apt-get", "--quiet", *options, "-oAPT::Architectures::=amd64", "-oAPT::Architectures::=arm64"]


def _told(command: Sequence[str], folder: Path) -> None:
    print(" ".join(command), flush=True)
    subprocess.run(command, cwd=folder, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help="where they go")
    set_up(parser.parse_args().folder)


if __name__ == "__main__":
    main()
