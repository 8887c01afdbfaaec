"""Runs what may end its process in a child, so that a crash is an outcome like others."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

from mlirt.errors import CompileError, MlirtError

T = TypeVar("T")
HAS_CHILDREN = hasattr(os, "fork")
_LOOKS_FOR_PARENT = 0.5  # seconds between them


class CrashedError(MlirtError):
    """A process ended before its work did; the text says how."""


def apart(run: Callable[[], T]) -> T:
    """What a function returns, in a child process; an error that it raises is raised here.

    Raises `CrashedError` where the child ends without having returned from it: by a signal, or by an exit.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        os.close(reader)
        _answer(run, writer, parent)
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as stream:
            data = stream.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not data:
        raise CrashedError(f"crashed: {signal.Signals(-code).name if code < 0 else f'exit code {code}'}")
    error, value = cast("tuple[Exception | None, T]", pickle.loads(data))
    if error is not None:
        raise error
    return value


def _answer(run: Callable[[], object], writer: int, parent: int) -> NoReturn:
    """In the child: run it, say what came of it, and end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends this one
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    if hasattr(stream := cast("Any", sys.stdout), "reconfigure"):
        stream.reconfigure(line_buffering=True)  # a crash loses what is not written
    try:
        data = pickle.dumps((None, run()))
    except Exception as error:
        data = _with_error(error)
    except BaseException as stop:  # a plugin that exits has not returned
        _end(stop.code if isinstance(stop, SystemExit) and isinstance(stop.code, int) else 1)
    with os.fdopen(writer, "wb") as stream:
        stream.write(data)
    _end(0)


def _end(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:  # a reader that went has closed it
            stream.flush()
    os._exit(code)


def _with_error(error: Exception) -> bytes:
    """An error as it is where it can be sent, else its text."""
    try:
        data = pickle.dumps((error, None))
        if str(pickle.loads(data)[0]) == str(error):
            return data
    except Exception:  # errors hold ops, files, anything
        pass
    return pickle.dumps((CompileError(str(error) if isinstance(error, MlirtError) else repr(error)), None))


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOKS_FOR_PARENT)
    os._exit(1)
