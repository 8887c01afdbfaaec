"""Runs the cases of a fuzz, each in a forked child with limits of memory and of time, and counts what comes of them."""

from __future__ import annotations

import argparse
import collections
import os
import re
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

BAD = ("crash", "hang", "exception", "internal", "lines")
"""Outcomes that fail the fuzz: the process died, or took longer than the limit; an exception that is no `MlirtError`;
a pass that failed over its own mistake; a message of more than one line."""

OWN_MISTAKE = re.compile(r"\bpass [\w-]+: [A-Z]\w*(Error|Exception|Iteration|Exists): ")
"""How a pass says that it failed over something that it did not expect."""


@dataclass(frozen=True)
class Limits:
    """What one case may take."""

    seconds: float = 10.0
    bytes: int = 6 << 30


@dataclass
class Case:
    """A file under test: a name that tells it apart, its bytes, and what is done with it in the child."""

    name: str
    content: bytes
    judge: Callable[[bytes, Callable[[str, str], None]], None]
    """Tells its outcome and a text; what it tells last counts, also where it crashes after that."""


@dataclass
class Tally:
    """Counts of outcomes, the slowest cases and those that fail the fuzz."""

    counts: collections.Counter[str] = field(default_factory=collections.Counter[str])
    slowest: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    told: list[str] = field(default_factory=list[str])

    def add(self, case: Case, outcome: str, text: str, seconds: float, keep: Path | None) -> None:
        """Count a case; those that are bad or differ are printed, and kept in a folder."""
        self.counts[outcome] += 1
        self.slowest = sorted([*self.slowest, (seconds, f"{case.name}: {outcome}")], reverse=True)[:5]
        if outcome in (*BAD, "differs"):
            self.told.append(f"{outcome}: {case.name}: {text}")
            print(self.told[-1][:2000], flush=True)
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / case.name.replace("/", "_")).write_bytes(case.content)

    @property
    def is_good(self) -> bool:
        return not any(self.counts[kind] for kind in BAD)

    def print(self, seconds: float) -> None:
        """The table."""
        for kind, count in self.counts.most_common():
            print(f"{kind:>24} {count:6}")
        print(f"{'cases':>24} {self.counts.total():6}  in {seconds:.0f} s")
        for took, name in self.slowest:
            print(f"{took:22.1f} s  {name}")


def run_cases(cases: Iterable[Case], limits: Limits, keep: Path | None = None) -> Tally:
    """Run each case in a child of this process, one after the other."""
    tally, start = Tally(), time.monotonic()
    for number, case in enumerate(cases, 1):
        tally.add(case, *run_isolated(case, limits), keep)
        if number % 500 == 0:
            print(f"# {number} cases, {time.monotonic() - start:.0f} s: {dict(tally.counts)}", flush=True)
    tally.print(time.monotonic() - start)
    return tally


def run_isolated(case: Case, limits: Limits) -> tuple[str, str, float]:
    """The outcome of a case, what it said, and how many seconds of its time it took, of the clock for a hang."""
    ours, theirs = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _run_child(case, limits, theirs)
    os.close(theirs)
    start, said = time.monotonic(), b""
    used = 0.0
    while True:
        ready, _, _ = select.select([ours], [], [], 0.25)
        part = os.read(ours, 1 << 16) if ready else b"."
        if not part:
            break
        said += part if ready else b""
        used = _processor_seconds(child)
        # A busy machine must not make hangs, nor may a case that waits for something go on for ever.
        if used > limits.seconds or time.monotonic() - start > 12 * limits.seconds:
            os.kill(child, signal.SIGKILL)
            break
    os.close(ours)
    _, status, usage = os.wait4(child, 0)
    used = usage.ru_utime + usage.ru_stime
    outcome, _, text = (said.decode(errors="replace").rstrip("\0").rpartition("\0")[2] or "silent\n").partition("\n")
    if used > limits.seconds or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
        return "hang", f"{used:.1f} s after {outcome}", used
    if os.WIFSIGNALED(status) and outcome != "runs":
        return "crash", f"signal {os.WTERMSIG(status)} after {outcome} {text}", used
    if os.WIFSIGNALED(status):
        return "peer crashes", f"signal {os.WTERMSIG(status)}", used
    return outcome, text, used


def _processor_seconds(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _run_child(case: Case, limits: Limits, pipe: int) -> None:
    """Never returns."""

    def tell(outcome: str, text: str) -> None:
        os.write(pipe, f"{outcome}\n{text[:4000].replace(chr(0), ' ')}\0".encode(errors="replace"))

    try:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        resource.setrlimit(resource.RLIMIT_AS, (limits.bytes, limits.bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        case.judge(case.content, tell)
    except BaseException as error:
        tell("exception", f"{type(error).__name__}: {error}")
    finally:
        os._exit(0)


def untold(outcome: str, text: str) -> None:
    """Takes what is told of a case that does not count."""


def said_by(error: Exception) -> tuple[str, str]:
    """The outcome that an error is, and its text."""
    from mlirt.errors import MlirtError

    text = f"{type(error).__name__}: {error}"
    if not isinstance(error, MlirtError):
        return "exception", text
    if "\n" in str(error):
        return "lines", text
    if OWN_MISTAKE.search(text):
        return "internal", text
    return type(error).__name__, text


def parser(description: str, cases: int) -> argparse.ArgumentParser:
    """The flags that fuzzes share."""
    flags = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--cases", type=int, default=cases, help="how many files")
    flags.add_argument("--first", type=int, default=0, help="the number of the first; its number is the seed of each")
    flags.add_argument("--seconds", type=float, default=10.0, help="processor time that a case may take")
    flags.add_argument("--keep", type=Path, help="a folder for the files that fail")
    return flags
