"""Processes that compile: each answers requests, one after the other, and is kept for the next build while it idles.

A request is a line of JSON; the answer is a line of JSON and the bytes whose numbers are in its list `sizes`, or has an
`error`. A process ends with its input or its parent, or after some idle seconds. What a compiler may print goes to
standard error.

A process imports Python's own library, the installed packages, and the packages of `_PACKAGES` from where this process
has them: nothing from the current folder, the folder of the script or the rest of PYTHONPATH, which may belong to
whoever made the model. It is in a process group of its own, so that Ctrl-C reaches this process alone, which ends it.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, TypeAlias

from mlirt.errors import CompileError, out_of_memory
from mlirt.runtime.garbage_collection import rare_collections

_IDLE_SECONDS = 20.0
_LOOKS_FOR_PARENT = 0.5  # seconds between them
_PACKAGES = ("mlirt", "xdsl", "numpy", "numba", "llvmlite", "numba_cuda", "cuda", "nvidia")
# Behind Python's own library, so that no file beside a package stands for a module of that.
_START = """
import os, sys
own = os.path.dirname(os.__file__)
place = max(k for k, path in enumerate(sys.path) if path == own or os.path.dirname(path) == own) + 1
sys.path[place:place] = filter(None, sys.argv.pop(1).split(os.pathsep))
import runpy
runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
"""

Answer: TypeAlias = "tuple[dict[str, Any], list[bytes]]"
Handler: TypeAlias = "Callable[[dict[str, Any]], tuple[dict[str, Any], Sequence[bytes]]]"


class CompilerProcess:
    """A process that runs a module with some variables set; an idle one like it is taken where there is one."""

    _idle: dict[str, list[subprocess.Popen[bytes]]] = {}  # noqa: RUF012  (shared on purpose)
    _lock = threading.Lock()

    def __init__(self, module: str, variables: Mapping[str, str] | None = None) -> None:
        self._module, self._variables = module, dict(variables or {})
        self._kind = json.dumps([module, self._variables])
        self._change, self._ended = threading.Lock(), False
        with self._lock:
            idle = self._idle.setdefault(self._kind, [])
            while idle and idle[-1].poll() is not None:
                idle.pop()
            self._process = idle.pop() if idle else self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = dict(os.environ, **self._variables)
        for name in ("PYTHONPATH", "PYTHONINSPECT"):
            environment.pop(name, None)
        flags = ["-E"] * sys.flags.ignore_environment + ["-s"] * sys.flags.no_user_site
        arguments = [os.pathsep.join(_package_folders()), self._module, str(os.getpid())]
        try:
            return subprocess.Popen(
                [sys.executable, "-P", *flags, "-c", _START, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                cwd=Path(__file__).resolve().parent,  # numba reads settings from the current folder
                creationflags=_OWN_GROUP if sys.platform == "win32" else 0,
                process_group=None if sys.platform == "win32" else 0,
            )
        except OSError as error:
            shortage = out_of_memory("the compiler", error)
            raise shortage or CompileError(f"no compiler process can be started: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.end()
        if self._ended:
            self._process.wait()
            return
        with self._lock:
            self._idle.setdefault(self._kind, []).append(self._process)

    def end(self) -> None:
        """End the process, whatever it does: what another thread asks of it fails. It never starts again."""
        with self._change:
            self._ended = True
            self._process.kill()

    def ask(self, request: Mapping[str, object]) -> Answer:
        """The answer to a request; raises `CompileError` if the process fails twice."""
        line = json.dumps(request).encode() + b"\n"
        answer = self._try(line)
        if answer is None and self._restart():  # the idle process had just gone
            answer = self._try(line)
        if answer is None:
            raise CompileError(f"the compiler process {self._module} ended without an answer{self._last_word()}")
        if answer[0].get("memory"):
            raise out_of_memory("the compiler", MemoryError()) or MemoryError()
        if "error" in answer[0]:
            raise CompileError(str(answer[0]["error"]))
        return answer

    def _last_word(self) -> str:
        """How the process ended; a process that asks for more memory than there is ends by one of these signals."""
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return ""
        memory = "; perhaps there was too little memory, MLIRT_JOBS=1 takes less" if code in (-6, -9) else ""
        return f" (signal {-code}{memory})" if code < 0 else f" (exit code {code})"

    def _restart(self) -> bool:
        with self._change:
            if not self._ended:
                self._process = self._start()
            return not self._ended

    def _try(self, line: bytes) -> Answer | None:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        try:
            requests.write(line)
            requests.flush()
        except OSError:
            return None
        header = answers.readline()
        if not header.endswith(b"\n"):
            return None
        record: dict[str, Any] = json.loads(header)
        sizes: list[int] = record.get("sizes", [])
        pieces = [answers.read(size) for size in sizes]
        return (record, pieces) if [*map(len, pieces)] == sizes else None  # a process that was ended says less

    @classmethod
    def stop_idle(cls) -> None:
        """Processes end with their input; waiting for them leaves no warnings behind."""
        for process in (process for idle in cls._idle.values() for process in idle):
            process.communicate()

    @classmethod
    def forget_parents(cls) -> None:
        """A forked child starts processes of its own: those of its parent answer its parent."""
        cls._lock = threading.Lock()
        _forgotten.extend(process for idle in cls._idle.values() for process in idle)
        cls._idle = {}


_OWN_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
_forgotten: list[subprocess.Popen[bytes]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CompilerProcess.forget_parents)


def _package_folders() -> list[str]:
    """The folders that this process has the packages from, in the order in which it looks into them."""
    found: set[str] = set()
    for package in _PACKAGES:
        spec = find_spec(package)
        found |= {str(Path(place).parent.absolute()) for place in (spec and spec.submodule_search_locations) or ()}
    order = {str(Path(folder).absolute()): k for k, folder in reversed([*enumerate(sys.path)])}
    return sorted(found, key=lambda folder: order.get(folder, len(order)))


atexit.register(CompilerProcess.stop_idle)


def serve(handle: Handler) -> None:
    """Answer the requests on standard input until there are none; `handle` gives a record and pieces of bytes."""
    watch = _Watch(int(sys.argv[-1]))
    threading.Thread(target=watch.look, daemon=True).start()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        watch.idle_since = time.monotonic()
        line = sys.stdin.buffer.readline()
        watch.idle_since = None
        if not line:
            return
        with rare_collections():
            record, pieces = _handled(handle, json.loads(line))
        record["sizes"] = [len(piece) for piece in pieces]
        try:
            answers.write(json.dumps(record).encode() + b"\n" + b"".join(pieces))
            answers.flush()
        except OSError:
            os._exit(1)  # nobody waits for it any more


class _Watch:
    """Looks now and then whether the process has a reason to live; systems differ in how one waits for a pipe."""

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self.idle_since: float | None = None

    def look(self) -> None:
        """End where nobody is left to read the answer, though a compiler be in the middle of its work, and after some
        idle seconds. A request that comes at that moment goes to a new process. Under Windows the parent's number
        stays when it ends; the input ends with it.
        """
        while os.getppid() == self._parent:
            since = self.idle_since
            if since is not None and time.monotonic() - since > _IDLE_SECONDS:
                os._exit(0)
            time.sleep(_LOOKS_FOR_PARENT)
        os._exit(1)


def _handled(handle: Handler, request: dict[str, Any]) -> tuple[dict[str, Any], Sequence[bytes]]:
    try:
        return handle(request)
    except MemoryError:
        return {"memory": True}, []
    except Exception as error:
        return {"error": f"{error}"}, []
