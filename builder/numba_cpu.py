"""Source of CPU kernels to object files: from the cache where they are known, else by numba in up to two processes."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from mlirt.builder.kernel_cache import KernelCache, key_of, sources_digest, versions
from mlirt.dialects.target import Target
from mlirt.errors import CompileError
from mlirt.runtime.host_cpu import host_architecture

_HERE = Path(__file__).parent
_MOST_PROCESSES = 2
# Starting a process costs as much as compiling a few kernels.
_KERNELS_PER_PROCESS = 3

Report = Callable[[str, int, int], None]


def compile_kernels(sources: Mapping[str, str], target: Target, report: Report | None = None) -> dict[str, bytes]:
    """The object file of each kernel by its name; raises `CompileError` that names the kernel.

    `report` is called with a text, the kernels done and the kernels in all.
    """
    cache, objects = KernelCache(), dict[str, bytes]()
    keys = {name: _key(source, target) for name, source in sources.items()}
    for name, key in keys.items():
        found = cache.get(key)
        if found is not None:
            objects[name] = found
    missing = [name for name in sources if name not in objects]
    if missing:
        _compile({name: sources[name] for name in missing}, target, objects, report, len(sources))
        for name in missing:
            cache.put(keys[name], objects[name])
    return {name: objects[name] for name in sources}


def _key(source: str, target: Target) -> str:
    library = sources_digest(_HERE / "numba_cpu_intrinsics", _HERE / "numba_cpu_compiler.py")
    return key_of("cpu", source, _processor(target), library, versions("numba", "llvmlite", "numpy"))


def _processor(target: Target) -> str:
    """The processor as numba is told: the baseline of its architecture, and features."""
    features = sorted(target.features)
    name = "x86-64" if host_architecture() == "x86_64" else "generic"
    wide = ["-prefer-256-bit"] if target.vector_bits == 512 else []
    return f"{name} {','.join([*(f'+{feature}' for feature in features), *wide])}"


def _compile(
    sources: Mapping[str, str], target: Target, objects: dict[str, bytes], report: Report | None, total: int
) -> None:
    """Let processes take kernels from one list, the longest first, until it is empty or one fails."""
    names = sorted(sources, key=lambda name: len(sources[name]))
    lock, failures = threading.Lock(), list[Exception]()
    if report is not None:
        report("compiling kernels", len(objects), total)

    def work() -> None:
        try:
            with _Process(target) as process:
                while not failures:
                    with lock:
                        if not names:
                            return
                        name = names.pop()
                    code = process.compile(name, sources[name])
                    with lock:
                        objects[name] = code
                        if report is not None:
                            report(f"compiling kernels ({name})", len(objects), total)
        except Exception as error:
            failures.append(error)

    count = min(_MOST_PROCESSES, os.cpu_count() or 1, -(-len(sources) // _KERNELS_PER_PROCESS))
    helpers = [threading.Thread(target=work, name=f"compile-{number}") for number in range(1, count)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]


# Processes that have nothing to do, by the processor that they compile for.
_idle: dict[str, list[subprocess.Popen[bytes]]] = {}
_idle_lock = threading.Lock()


class _Process:
    """A process with numba in it; an idle one of the same kind is taken where there is one."""

    def __init__(self, target: Target) -> None:
        self._processor = _processor(target)
        with _idle_lock:
            idle = _idle.setdefault(self._processor, [])
            while idle and idle[-1].poll() is not None:
                idle.pop()
            self._process = idle.pop() if idle else self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        name, features = self._processor.split(" ", 1)
        environment = dict(os.environ, NUMBA_CPU_NAME=name, NUMBA_CPU_FEATURES=features or "+sse2")
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        return subprocess.Popen(
            [sys.executable, "-m", "mlirt.builder.numba_cpu_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._process.kill()
            self._process.wait()
            return
        with _idle_lock:
            _idle[self._processor].append(self._process)

    def compile(self, name: str, source: str) -> bytes:
        """The object file of a kernel; raises `CompileError`."""
        request = json.dumps({"name": name, "source": source}).encode() + b"\n"
        answer, code = self._ask(request)
        if answer is None:
            self._process = self._start()  # the idle process had just gone
            answer, code = self._ask(request)
        if answer is None:
            raise CompileError(f"kernel {name}: the compiler process ended without an answer")
        if "error" in answer:
            reason = " ".join(str(answer["error"]).split())
            raise CompileError(f"kernel {name}: numba refuses the generated source: {reason[:500]}")
        return code

    def _ask(self, request: bytes) -> tuple[dict[str, object] | None, bytes]:
        """The answer to a request and the bytes after it; None from a process that is not there."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        try:
            requests.write(request)
            requests.flush()
        except OSError:
            return None, b""
        header = answers.readline()
        if not header:
            return None, b""
        answer = json.loads(header)
        return answer, answers.read(answer.get("bytes", 0))


@atexit.register
def _stop_idle_processes() -> None:
    """Processes end with their input; waiting for them leaves no warnings behind."""
    for process in (process for idle in _idle.values() for process in idle):
        process.communicate()
