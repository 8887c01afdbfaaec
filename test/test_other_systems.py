"""Nothing that other operating systems lack is needed to import a module, nor what macOS lacks to build and run.

What is known of them is left away here: modules, functions and constants of Linux. It shows what the sources ask for;
no such machine was at hand.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

HIDE = """\
import asyncio, concurrent.futures, ctypes, importlib, importlib.util, logging, mmap, multiprocessing, os, pickle
import pkgutil, platform, selectors, shutil, signal, socket, ssl, subprocess, sys, tempfile, threading, uuid
import numba, numba.core.registry, numpy, onnx, xdsl, llvmlite.binding, ml_dtypes
for name in OPTIONAL:
    try:
        importlib.import_module(name)
    except ImportError:
        pass

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in MODULES:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Hidden())
for module, names in LACKING.items():
    for name in names:
        if hasattr(sys.modules[module], name):
            delattr(sys.modules[module], name)
sys.platform = PLATFORM
load = ctypes.CDLL.__init__
def no_process(self, name, *rest, **more):
    assert name is not None, "a library of Windows has a name"
    load(self, name, *rest, **more)
if PLATFORM == "win32":
    ctypes.CDLL.__init__ = no_process
"""
POSIX = ("sched_getaffinity", "sched_setaffinity", "O_TMPFILE", "memfd_create", "sched_getscheduler", "pipe2", "splice")
UNIX = (
    *(
        "fork",
        "forkpty",
        "register_at_fork",
        "fchmod",
        "getuid",
        "geteuid",
        "getgid",
        "mkfifo",
        "mknod",
        "setsid",
        "killpg",
    ),
    *("uname", "sysconf", "chown", "getpgid", "wait4", "posix_spawn", "getloadavg", "nice", "sched_yield", "pread"),
)
ADVICE = ("MADV_HUGEPAGE", "MADV_NOHUGEPAGE", "MADV_POPULATE_READ", "MAP_POPULATE", "MAP_STACK", "MAP_NORESERVE")
MAPPING = (
    *(*ADVICE, "MAP_PRIVATE", "MAP_SHARED", "MAP_ANONYMOUS", "MAP_ANON", "PROT_READ", "PROT_WRITE", "PROT_EXEC"),
    *("MADV_DONTNEED", "MADV_WILLNEED", "MADV_SEQUENTIAL", "MADV_RANDOM", "MADV_NORMAL", "MADV_FREE"),
)
SIGNALS = (
    "SIGHUP",
    "SIGKILL",
    "SIGALRM",
    "SIGUSR1",
    "SIGUSR2",
    "SIGCHLD",
    "SIGQUIT",
    "SIGPIPE",
    "SIGSTOP",
    "pthread_kill",
)
WINDOWS = {
    "PLATFORM": "win32",
    "MODULES": ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix", "uvloop", "readline"),
    "LACKING": {"os": (*POSIX, *UNIX), "mmap": MAPPING, "signal": SIGNALS},
}
MACOS = {
    "PLATFORM": "darwin",
    "MODULES": ("spwd", "ossaudiodev"),
    "LACKING": {"os": POSIX, "mmap": ADVICE},
}
OPTIONAL = ("aiohttp", "prometheus_client", "grpc", "numba.cuda", "cuda.core", "PIL", "fsspec", "shtab", "torch")
IMPORT_ALL = """\
import mlirt
failed = []
for found in pkgutil.walk_packages(mlirt.__path__, "mlirt.", lambda name: None):
    # Classes of names that the version of TensorRT must have, which is 8.5 until another one is asked for.
    if ".import_names." in found.name or found.name.endswith(("__main__", ".layers_later")):
        continue
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        if error.name in MODULES or error.name.startswith("mlirt"):
            failed.append(f"{found.name}: {error!r}")
    except Exception as error:
        failed.append(f"{found.name}: {error!r}")
print("\\n".join(failed))
print("modules", sum(name.startswith("mlirt.") for name in sys.modules))
"""
RUN = """\
import numpy as np
import mlirt
from mlirt.aligned_memory import private_memory
from mlirt.runtime.guarded_memory import GuardedBlock

engine = mlirt.compile("small.onnx", target="cpu")
images = np.random.default_rng(0).uniform(-1, 1, (4, 3, 8, 8)).astype(np.float32)
scores = engine.run({"image": images})["scores"]
engine.save("small.plan")
engine.save("small.plan")
again = mlirt.load("small.plan", threads=2).run({"image": images})["scores"]
assert np.array_equal(scores, again)
assert GuardedBlock(100, "end").bytes_at(0, 100).size == 100
assert len(private_memory(1 << 22)) == 1 << 22
print("ran")
"""


def python_without(system: Mapping[str, object], script: str, folder: Path) -> str:
    """What a script prints where a system's lacks are hidden."""
    names = "\n".join(f"{name} = {value!r}" for name, value in {**system, "OPTIONAL": OPTIONAL}.items())
    command = [sys.executable, "-W", "ignore", "-c", f"{names}\n{HIDE}\n{script}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("system", [WINDOWS, MACOS], ids=["windows", "macos"])
def test_every_module_is_imported_without_what_a_system_lacks(system: Mapping[str, object], tmp_path: Path) -> None:
    *failed, last = python_without(system, IMPORT_ALL, tmp_path).splitlines()
    assert not [line for line in failed if line]
    assert int(last.removeprefix("modules ")) > 900


def test_a_network_is_built_and_run_without_what_macos_lacks(tmp_path: Path) -> None:
    example = Path(__file__).parents[1] / "examples" / "small_network.py"
    subprocess.run([sys.executable, str(example), "small.onnx"], cwd=tmp_path, check=True)
    assert python_without(MACOS, RUN, tmp_path).splitlines()[-1] == "ran"
