"""Remarks: what became of each place where a pass could have acted, said by the rule that decided.

A rule says `applied(new_op)` where it has acted, `declined(op, "the convolution has two readers")` where it matched and
a condition kept it from acting, `missed(op, "...")` where what it looks for is not there. Unless somebody records them,
as `--remarks` and `mlirt.compile(remarks=...)` do, these calls come back at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mlirt.dialects.locations import name_of, names
from mlirt.dialects.xdsl_compat import ops_inside

Kind = Literal["applied", "missed", "declined"]
KINDS: tuple[Kind, ...] = ("applied", "declined", "missed")


@dataclass(frozen=True)
class Remark:
    """One of them; `place` is where the op stands in the input's text, as far as that is known."""

    pass_name: str
    kind: Kind
    layer: str
    op: str
    reason: str
    place: str = ""

    def __str__(self) -> str:
        what = self.op if self.layer == self.op else f"{self.layer} ({self.op})"
        return f"{self.pass_name}: {self.kind}: {what}" + (f": {self.reason}" if self.reason else "")


@dataclass
class PassStatistics:
    """What a pass did in all its runs together."""

    runs: int = 0
    applied: int = 0
    declined: int = 0
    missed: int = 0
    inserted: int = 0
    erased: int = 0


@dataclass
class Remarks:
    """Collects remarks, of all passes or of those named in `passes`; with `statistics` also counts ops.

    `mlirt.compile(model, remarks=(found := mlirt.Remarks()))`, then `found.remarks`, `found.text()`, `found.json()`.
    """

    passes: Collection[str] = ()
    statistics: bool = False
    locate: Callable[[Operation], str] | None = None
    """The place of an op in the text that was read."""
    remarks: list[Remark] = field(default_factory=list[Remark])
    counts: dict[str, PassStatistics] = field(default_factory=dict[str, PassStatistics])
    _seen: set[tuple[Remark, int]] = field(default_factory=set[tuple[Remark, int]])
    _pass_name: str | None = None
    _before: list[Operation] | None = None

    def add(self, kind: Kind, op: Operation, reason: str, about: Sequence[Operation] = ()) -> None:
        """Keep a remark of the pass that runs; the same one of an op counts once in a run."""
        name = self._pass_name
        if name is None or (self.passes and name not in self.passes):
            return
        place = self.locate(op) if self.locate is not None else ""
        said = reason.format(*map(name_of, about)) if about else reason
        remark = Remark(name, kind, name_of(op), op.name, said, place)
        key = (remark, 0 if names(op.location) else id(op))
        if key in self._seen:
            return
        self._seen.add(key)
        self.remarks.append(remark)
        counted = self._counted(name)
        setattr(counted, kind, getattr(counted, kind) + 1)

    @contextmanager
    def running(self, name: str, module: ModuleOp, ctx: Context | None = None) -> Generator[None]:
        """A pass runs meanwhile; who watches more than remarks finds weights in `ctx`."""
        self._pass_name = name
        self._seen.clear()
        if self.statistics and self._before is None:
            self._before = ops_inside(module)
        try:
            yield
        finally:
            self._pass_name = None
        if self.statistics:
            self._count_ops(name, module)

    def measured(self, ops: Sequence[Operation], times: Mapping[str, float]) -> None:
        """Tactics of equal ops were measured, in microseconds by name; kept by those who show them."""

    def forget_ops(self) -> None:
        """The passes go on with another module."""
        self._before = None

    def _count_ops(self, name: str, module: ModuleOp) -> None:
        now, before = ops_inside(module), self._before
        assert before is not None
        counted = self._counted(name)
        counted.runs += 1
        if now != before:  # the ops of `before` live, so that none of `now` has the identity of another one
            counted.inserted += len({*map(id, now)}.difference(map(id, before)))
            counted.erased += len({*map(id, before)}.difference(map(id, now)))
        self._before = now

    def _counted(self, name: str) -> PassStatistics:
        return self.counts.setdefault(name, PassStatistics())

    def text(self) -> str:
        """A line each, in the order in which the passes ran."""
        return "".join(f"{remark.place}: remark: {remark}\n".removeprefix(": ") for remark in self.remarks)

    def statistics_text(self) -> str:
        """A table: a line for each pass that did or said something."""
        heads = ("runs", "applied", "declined", "missed", "inserted", "erased")
        lines = ["".join(f"{head:>10}" for head in heads) + "  pass"]
        for name, counted in self.counts.items():
            numbers = [getattr(counted, head) for head in heads]
            if any(numbers[1:]):
                lines.append("".join(f"{number:10}" for number in numbers) + f"  {name}")
        return "\n".join(lines) + "\n"

    def records(self) -> Mapping[str, object]:
        """The same as plain data."""
        counts = {name: asdict(counted) for name, counted in self.counts.items()}
        return {"remarks": [asdict(remark) for remark in self.remarks], "statistics": counts}

    def json(self) -> str:
        """The same as JSON."""
        import json

        return json.dumps(self.records(), indent=1) + "\n"

    def of(self, kind: Kind, pass_name: str | None = None) -> list[Remark]:
        """The remarks of a kind, of one pass where it is named."""
        return [one for one in self.remarks if one.kind == kind and pass_name in (None, one.pass_name)]


_RECORDER: ContextVar[Remarks | None] = ContextVar("recorder of remarks", default=None)


def recorder() -> Remarks | None:
    """What collects the remarks now; None where nobody does."""
    return _RECORDER.get()


@contextmanager
def recording(remarks: Remarks | None) -> Generator[None]:
    """Remarks go there meanwhile."""
    token = _RECORDER.set(remarks)
    try:
        yield
    finally:
        _RECORDER.reset(token)


def applied(op: Operation, what: str = "", *about: Operation) -> None:
    """A rule has acted, and this op came of it. `{}` in the text is the name of an op of `about`."""
    found = _RECORDER.get()
    if found is not None:
        found.add("applied", op, what, about)


def declined(op: Operation, reason: str, *about: Operation) -> None:
    """A rule matched, but a condition of it does not hold."""
    found = _RECORDER.get()
    if found is not None:
        found.add("declined", op, reason, about)


def missed(op: Operation, reason: str, *about: Operation) -> None:
    """A rule does not match here, although it looked."""
    found = _RECORDER.get()
    if found is not None:
        found.add("missed", op, reason, about)
