"""The RUN lines of a test whose output filecheck reads, and what they print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlirt.errors import InvalidInputError
from mlirt.tools.lit_config import PLUGINS, configured_folder, plugin_flags

_RUN = re.compile(r"RUN:[ \t]*(?P<command>.*?)[ \t]*(?P<more>\\)?$")
_TOOLS = ("rt-opt", "rt-translate")
_CHECKERS = ("filecheck", "FileCheck")
_PREFIX = re.compile(r"--?check-prefix(?:es)?(?:=(.*))?")
_EXPECTED = "expected `rt-opt %s .. | filecheck %s`, perhaps with --check-prefix=NAME"


@dataclass(frozen=True)
class RunLine:
    """A command of a test up to filecheck, as the words of each of its stages, and the prefix of its CHECK lines."""

    path: Path
    line: int
    stages: tuple[tuple[str, ...], ...]
    prefix: str

    @property
    def splits_input(self) -> bool:
        """Whether each part of the file is printed on its own."""
        return "--split-input-file" in self.stages[0]

    def output(self) -> str:
        """What is printed; raises `InvalidInputError` where a stage fails, with the first line that it says."""
        text = ""
        for words in self.stages:
            command = [sys.executable, "-m", f"mlirt.tools.{words[0].replace('-', '_')}", *words[1:]]
            environment = {**os.environ, "MLIRT_PLAN_CACHE_MB": "0"}
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=environment)
            if done.returncode:
                said = (done.stderr.splitlines() or ["it says nothing"])[0]
                raise InvalidInputError(f"{self.path}:{self.line}: {words[0]} ends with {done.returncode}: {said}")
            text = done.stdout
        return text


def run_lines(path: Path, text: str) -> list[RunLine]:
    """The RUN lines with filecheck; raises `InvalidInputError` for one that cannot be run here, or if there is none."""
    found = [line for line in _read(path, text) if line is not None]
    if not found:
        raise InvalidInputError(f"{path}: no RUN line ends in `| filecheck %s`, so that there is nothing to check")
    return found


def _read(path: Path, text: str) -> Iterator[RunLine | None]:
    folder = configured_folder(path)
    values = {
        PLUGINS: plugin_flags(folder) if folder is not None else "",
        "%s": str(path),
        "%S": str(path.resolve().parent),
    }
    for number, command in _commands(text):
        words = _words(path, number, re.sub("|".join(values), lambda match: values[match[0]], command))
        stages = [list[str]()]
        for word in words:
            if word == "|":
                stages.append([])
            else:
                stages[-1].append(word)
        yield _run_line(path, number, command, stages)


def _commands(text: str) -> Iterator[tuple[int, str]]:
    """Each command with the number of its first line; a backslash at its end lets the next RUN line go on with it."""
    first, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        match = _RUN.search(line)
        if match is None:
            continue
        first = first if parts else number
        parts.append(match["command"])
        if match["more"] is None:
            yield first, " ".join(parts)
            parts = []


def _words(path: Path, number: int, command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|><&;")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError as error:
        raise InvalidInputError(f"{path}:{number}: the RUN line cannot be read: {error}") from error


def _run_line(path: Path, number: int, command: str, stages: Sequence[Sequence[str]]) -> RunLine | None:
    """None for a command without filecheck, such as one with --verify-diagnostics: it has no CHECK lines."""
    *tools, last = stages
    if not any(words and words[0] in _CHECKERS for words in stages):
        return None
    reason = _refused(tools, last, str(path))
    if reason:
        raise InvalidInputError(f"{path}:{number}: the RUN line `{command}` cannot be run here, {reason}: {_EXPECTED}")
    return RunLine(path, number, tuple(tuple(words) for words in tools), _prefix(last))


def _refused(tools: Sequence[Sequence[str]], last: Sequence[str], file: str) -> str:
    """Why a command cannot be run here; empty where it can."""
    for words in tools:
        if not words or words[0] not in _TOOLS:
            return f"as `{words[0] if words else '|'}` is none of {' and '.join(_TOOLS)}"
        shell = [word for word in words if word.strip("|><&;") == "" and word]
        if shell:
            return f"as `{shell[0]}` needs a shell"
    rest = [word for word in last[1:] if word != file and not _PREFIX.fullmatch(word)]
    prefix = _prefix(last)
    if not tools or last[0] not in _CHECKERS:
        return "as filecheck is not the last of it"
    if any(word != prefix for word in rest) or not re.fullmatch(r"[A-Za-z][\w-]*", prefix):
        return f"as filecheck is called with `{' '.join(last[1:])}`"
    return "" if file in last else "as filecheck does not read %s"


def _prefix(words: Sequence[str]) -> str:
    for place, word in enumerate(words):
        match = _PREFIX.fullmatch(word)
        if match is not None:
            return match[1] or "".join(words[place + 1 : place + 2])
    return "CHECK"
