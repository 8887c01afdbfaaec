"""Which pass or which launch ends the process: candidates run in children, and a crash is what is looked for."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from os import environ

from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.locations import name_of
from mlirt.tools.debugging.apart import CrashedError
from mlirt.tools.debugging.case import Case
from mlirt.tools.debugging.compare import with_all_results
from mlirt.tools.debugging.finding import ALONE, Finding
from mlirt.tools.debugging.halving import least

_GUARD = "MLIRT_GUARD"
_TIMES = 3
"""How often a launch that may crash is run."""


def crash_of(case: Case, run: Callable[[], object]) -> str:
    """How a candidate crashes; empty where it does not, or fails in another way."""
    try:
        case.apart(run)
    except CrashedError as crash:
        return str(crash)
    except Exception:
        return ""
    return ""


def crash_in(case: Case) -> Finding:
    """The pass or the launch that crashes; without a crash where all of it went well this time."""
    found = crashing_pass(case) or crashing_launch(case)
    if found is not None:
        return found
    crash = crash_of(case, lambda: bool(case.compiled(case.module, case.first)))
    return Finding("memory", ALONE.format("crashes") if crash else "it crashed once, and not again", crash=crash)


def crashing_pass(case: Case) -> Finding | None:
    """The first pass that crashes, if one does."""
    passes = case.phases()

    def crash_after(count: int) -> str:
        return crash_of(case, lambda: bool(case.after(count)))

    if not crash_after(len(passes)):
        return None
    number = least(1, len(passes), lambda count: bool(crash_after(count)))
    return Finding("pass", passes[number - 1][1], number, crash=crash_after(number))


def crashing_launch(case: Case) -> Finding | None:
    """The first launch that crashes where only those before it run, when it is built or when it runs.

    One that leaves its memory may do so unseen: where none crashes they run in memory that is guarded.
    """
    for memory in (nullcontext(), guarded(on=case.target == "cpu")):
        found = _crashing_launch(case, memory)
        if found is not None:
            return found
    return None


def _crashing_launch(case: Case, memory: AbstractContextManager[None]) -> Finding | None:
    module = case.after(None, "fusion")
    launches = [op for op in entry_function(module).body.block.ops if isinstance(op, FusedOp)]

    def crash_of_first(count: int) -> str:
        part = module.clone()
        with_all_results(part, count)

        def run() -> None:
            engine = case.engine(part, "layout")
            for _ in range(_TIMES):
                engine.run(case.feeds)

        return crash_of(case, run)

    with memory:
        if not launches or not crash_of_first(len(launches)):
            return None
        number = least(1, len(launches), lambda count: bool(crash_of_first(count)))
        guilty = launches[number - 1]
        return Finding("kernel", guilty.name, layers=(name_of(guilty),), crash=crash_of_first(number))


@contextmanager
def guarded(*, on: bool = True) -> Generator[None]:
    """Engines that are made meanwhile have guarded memory, in which each byte that nobody has written is 0xFF."""
    before = environ.get(_GUARD)
    if on and not before:
        environ[_GUARD] = "end"
    try:
        yield
    finally:
        if on and not before:
            del environ[_GUARD]
