"""The errors that a user can meet; each message names the layer, what was expected, what came and what to do."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# A row of refusals names so many nodes; the data has all.
_MAX_SHOWN_NODES = 4
_NOT_MAPPED = re.compile(r"[Cc]annot allocate memory|failed to map segment|Arena alloc failed")


class MlirtError(Exception):
    """Base of every error that mlirt raises on purpose; tools print it as one line and exit with 1."""

    def __str__(self) -> str:
        """One line: names in a model may hold line breaks and what terminals obey."""
        text = super().__str__()
        return text if text.isprintable() else _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


class UnsupportedError(MlirtError, NotImplementedError):
    """The network uses something that this version cannot compile."""


@dataclass(frozen=True)
class Refusal:
    """An operator that cannot be taken for one reason: where it is, and what to do."""

    operator: str
    domain: str
    why: str
    way_out: str
    nodes: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.nodes)

    def __str__(self) -> str:
        shown = ", ".join(self.nodes[:_MAX_SHOWN_NODES]) + (", .." if len(self.nodes) > _MAX_SHOWN_NODES else "")
        domain = f" ({self.domain})" if self.domain else ""
        way_out = f" | {self.way_out}" if self.way_out else ""
        return f"{self.operator}{domain} | {self.count} | {self.why}{way_out} | {shown}"


class UnsupportedOperatorsError(UnsupportedError):
    """All that a network has and this version cannot compile; `refusals` has a row for each operator and reason."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(refusals)
        total = sum(refusal.count for refusal in refusals)
        nodes = "node" if total == 1 else "nodes"
        super().__init__(f"{total} {nodes} cannot be taken: " + "; ".join(map(str, refusals)))


class InvalidModelError(MlirtError, ValueError):
    """The model is damaged, or contradicts the specification of its format."""


class InvalidInputError(MlirtError, ValueError):
    """An input of a run is missing, or has the wrong name, shape or data type."""


class UnmetConditionError(InvalidInputError):
    """A run found that a condition of the network does not hold for its inputs: an assertion, or a layer's own."""


class PlanError(MlirtError, ValueError):
    """A plan file is damaged, was made for another version, or for a device that is not here."""


class CompileError(MlirtError):
    """A pass or a compiler back end failed on a network that should have been compiled."""


class OutOfMemoryError(MlirtError, MemoryError):
    """There is too little memory to read, build, open or run a network."""


class PluginError(MlirtError):
    """A plugin has no creator here, or its own code failed; the cause is its exception."""


class DeadlineError(MlirtError, TimeoutError):
    """A run did not end within its timeout, and was stopped or not begun."""


class RunCancelledError(MlirtError):
    """A run was cancelled before it ended."""


class OverloadError(MlirtError):
    """A request was refused at once, as more wait already than can be answered soon; it may be sent again later."""


class UnavailableError(MlirtError):
    """What should answer is not there now: it is closed, starting, or its process has ended."""


class MissingPackageError(MlirtError, ImportError):
    """What was asked for needs a package that is not installed, as on a machine that only runs engines."""


class AccuracyWarning(UserWarning):
    """An engine can be built and run, but what it computes is farther from float32 than is good."""


def missing_package(what: str, error: ModuleNotFoundError) -> MissingPackageError:
    """The error for something whose import failed."""
    package = (error.name or "").partition(".")[0]
    return MissingPackageError(
        f"{what} needs the package {package}, which is not installed here: `pip install mlirt` brings the compiler's "
        "packages; engines run without them",
        name=error.name,
    )


def too_little_memory(error: Exception) -> str:
    """What to say of it: how much was asked for is not always known."""
    detail = "" if isinstance(error, OSError) else " ".join(str(error).split())
    return "there is too little memory for this network" + (f": {detail}" if detail else "")


def out_of_memory(what: str, error: Exception) -> OutOfMemoryError | None:
    """The error for one that a shortage of memory is the cause of; None where another thing is."""
    if isinstance(error, OutOfMemoryError):
        return error
    # Libraries and threads need memory, too, and say so in words of their own.
    is_loading = isinstance(error, ImportError | OSError) and _NOT_MAPPED.search(str(error)) is not None
    is_thread = isinstance(error, RuntimeError) and "can't start new thread" in str(error)
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM or is_loading or is_thread:
        return OutOfMemoryError(f"{what}: {too_little_memory(error)}")
    return None


def reports_shortage(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function in which a shortage of memory is an `OutOfMemoryError` that begins with `what`."""

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except (MemoryError, OSError, ImportError, RuntimeError) as error:
                shortage = out_of_memory(what, error)
                if shortage is None or shortage is error:
                    raise
                raise shortage from error

        return wrapped

    return wrap
