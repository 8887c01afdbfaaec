"""Runs the RUN lines of a lit test inside this process, which is 30 times faster than starting the tools.

Understands `tool args | tool args`, `%s`, `%t`, `%S`, `not`, `>`, `2>&1`; the tools are ours, `filecheck` and `cat`. A
line that uses anything else goes to a shell. lit itself runs the same files as users do (`lit test/`).
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

_RUN = re.compile(r"RUN:[ \t]*(?P<command>.*?)[ \t]*(?P<more>\\)?$")
_REQUIRES = re.compile(r"REQUIRES:[ \t]*(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


class Failure(Exception):
    """A RUN line that did not end with 0."""


def run_lines(path: Path) -> list[str]:
    """The commands of a test; a line that ends with a backslash goes on in the next RUN line."""
    commands: list[str] = []
    goes_on = False
    for line in path.read_text(encoding="utf-8").splitlines():
        match = _RUN.search(line)
        if match is None:
            continue
        if goes_on:
            commands[-1] += " " + match["command"]
        else:
            commands.append(match["command"])
        goes_on = match["more"] is not None
    return commands


def requirements(path: Path) -> set[str]:
    """The features that a test asks for in REQUIRES lines."""
    listed = _REQUIRES.findall(path.read_text(encoding="utf-8"))
    return {feature.strip() for line in listed for feature in line.split(",")}


def run_test(path: Path, folder: Path) -> None:
    """Run all RUN lines of a test; raises `Failure` with what the tools said. `folder` takes its temporary files."""
    commands = run_lines(path)
    if not commands:
        raise Failure(f"{path} has no RUN line")
    for command in commands:
        expanded = _expand(command, path, folder)
        outcome = _run(expanded)
        if outcome.code != 0:
            raise Failure(f"{expanded}\nexit code {outcome.code}\n{outcome.stderr}{outcome.stdout}")


def _expand(command: str, path: Path, folder: Path) -> str:
    values = {"%s": str(path), "%t": str(folder / (path.name + ".tmp")), "%S": str(path.parent), "%T": str(folder)}
    return re.sub("|".join(values), lambda match: values[match[0]], command)


def _run(command: str) -> Outcome:
    stages = list(_stages(command))
    if not all(_tool_of(stage.words) for stage in stages):
        return _run_in_shell(command)
    text, errors, code = "", "", 0
    for stage in stages:
        outcome = _run_stage(stage, text)
        text, errors = outcome.stdout, errors + outcome.stderr
        code = code or outcome.code  # as lit: a pipe fails where any of its stages fails
    return Outcome(code, text, errors)


@dataclass(frozen=True)
class _Stage:
    words: tuple[str, ...]
    joins_stderr: bool
    output: str | None


def _stages(command: str) -> Iterator[_Stage]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|><&;")
    lexer.whitespace_split = True
    words: list[str] = []
    tokens = list(lexer)
    for token in [*tokens, "|"]:
        if token != "|":
            words.append(token)
            continue
        yield _stage(words)
        words = []


def _stage(words: list[str]) -> _Stage:
    joined = words[-3:] == ["2", ">&", "1"]
    words = words[:-3] if joined else words
    output = words[-1] if len(words) > 2 and words[-2] == ">" else None
    words = words[:-2] if output is not None else words
    return _Stage(tuple(words), joined, output)


_MAINS = {
    "rt-opt": "mlirt.tools.rt_opt",
    "rt-translate": "mlirt.tools.rt_translate",
    "rt-exec": "mlirt.tools.rt_exec",
    "filecheck": "filecheck.main",
}


def _tool_of(words: Sequence[str]) -> Callable[[list[str]], int] | None:
    """A function that runs a command; None where only a shell can."""
    if not words or any(word in ("<", ">", ">>", ">&", "&&", ";", "&", "||") for word in words):
        return None
    if words[0] == "not":
        inner = _tool_of(words[1:])
        return None if inner is None else lambda arguments: 1 if inner(arguments[1:]) == 0 else 0
    if words[0] == "cat":
        return _cat
    if words[0] not in _MAINS:
        return None
    main = import_module(_MAINS[words[0]]).main
    return (lambda arguments: main([words[0], *arguments])) if words[0] == "filecheck" else main


def _cat(arguments: list[str]) -> int:
    for argument in arguments:
        print(Path(argument).read_text(encoding="utf-8"), end="")
    return 0


def _run_stage(stage: _Stage, text: str) -> Outcome:
    tool = _tool_of(stage.words)
    assert tool is not None
    stdout = io.StringIO()
    stderr = stdout if stage.joins_stderr else io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        with redirect_stdout(stdout), redirect_stderr(stderr):
            code = _exit_code(tool, list(stage.words[1:]))
    finally:
        sys.stdin = stdin
    errors = "" if stage.joins_stderr else stderr.getvalue()
    if stage.output is None:
        return Outcome(code, stdout.getvalue(), errors)
    Path(stage.output).write_text(stdout.getvalue(), encoding="utf-8")
    return Outcome(code, "", errors)


def _exit_code(tool: Callable[[list[str]], int | None], arguments: list[str]) -> int:
    try:
        return tool(arguments) or 0
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)


def _run_in_shell(command: str) -> Outcome:
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    script = 'not() { if "$@"; then return 1; else return 0; fi; }\nset -o pipefail\n' + command
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
