"""Processes that compile: each answers requests, one after the other, and is kept for the next build while it idles.

A request is a line of JSON; the answer is a line of JSON and the bytes whose numbers are in its list `sizes`, or has an
`error`. A process ends with its input, or after some idle seconds. What a compiler may print goes to standard error.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeAlias

from mlirt.errors import CompileError

_IDLE_SECONDS = 20.0

Answer: TypeAlias = "tuple[dict[str, Any], list[bytes]]"
Handler: TypeAlias = "Callable[[dict[str, Any]], tuple[dict[str, Any], Sequence[bytes]]]"


class CompilerProcess:
    """A process that runs a module with some variables set; an idle one like it is taken where there is one."""

    _idle: dict[str, list[subprocess.Popen[bytes]]] = {}  # noqa: RUF012  (shared on purpose)
    _lock = threading.Lock()

    def __init__(self, module: str, variables: Mapping[str, str] | None = None) -> None:
        self._module, self._variables = module, dict(variables or {})
        self._kind = json.dumps([module, self._variables])
        with self._lock:
            idle = self._idle.setdefault(self._kind, [])
            while idle and idle[-1].poll() is not None:
                idle.pop()
            self._process = idle.pop() if idle else self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = dict(os.environ, **self._variables)
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        return subprocess.Popen(
            [sys.executable, "-m", self._module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._process.kill()
            self._process.wait()
            return
        with self._lock:
            self._idle[self._kind].append(self._process)

    def ask(self, request: Mapping[str, object]) -> Answer:
        """The answer to a request; raises `CompileError` if the process fails twice."""
        line = json.dumps(request).encode() + b"\n"
        answer = self._try(line)
        if answer is None:
            self._process = self._start()  # the idle process had just gone
            answer = self._try(line)
        if answer is None:
            raise CompileError(f"the compiler process {self._module} ended without an answer")
        if "error" in answer[0]:
            raise CompileError(str(answer[0]["error"]))
        return answer

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
        if not header:
            return None
        record: dict[str, Any] = json.loads(header)
        return record, [answers.read(size) for size in record.get("sizes", [])]

    @classmethod
    def stop_idle(cls) -> None:
        """Processes end with their input; waiting for them leaves no warnings behind."""
        for process in (process for idle in cls._idle.values() for process in idle):
            process.communicate()


atexit.register(CompilerProcess.stop_idle)


def serve(handle: Handler) -> None:
    """Answer the requests on standard input until there are none; `handle` gives a record and pieces of bytes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # A request comes only after the answer to the one before it, so none can hide in the buffer.
    while select.select([sys.stdin], [], [], _IDLE_SECONDS)[0]:
        line = sys.stdin.buffer.readline()
        if not line:
            return
        record, pieces = _handled(handle, json.loads(line))
        record["sizes"] = [len(piece) for piece in pieces]
        answers.write(json.dumps(record).encode() + b"\n" + b"".join(pieces))
        answers.flush()


def _handled(handle: Handler, request: dict[str, Any]) -> tuple[dict[str, Any], Sequence[bytes]]:
    try:
        return handle(request)
    except Exception as error:
        return {"error": f"{error}"}, []
