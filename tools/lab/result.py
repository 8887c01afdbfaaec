"""What rt-lab found for one network, as plain data: lines of a table, a record of JSON, a bar of the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from mlirt.tools.lab.costs import Costs
from mlirt.tools.lab.interleaving import Measured

SAME = "the same kernels"
_NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Result:
    """A network with its numbers, or the error that it ended with."""

    model: str
    error: str = ""
    wrong: str = ""
    """The output that is off, and how far; empty where both sides agree with the interpreted network."""
    off_reference: float = 0.0
    off_without: float = 0.0
    applied: int = 0
    declined: int = 0
    missed: int = 0
    inserted: int = 0
    erased: int = 0
    reasons: Sequence[tuple[str, str, int]] = ()
    """Kind, reason, how often."""
    without: Costs | None = None
    with_: Costs | None = None
    measured: Measured | None = None
    same: bool = False
    """Whether nothing was measured as both sides run the same kernels."""

    @property
    def verdict(self) -> str:
        """What can be said of the time with the pass."""
        if self.error:
            return "failed"
        if self.wrong:
            return "wrong results"
        if self.same:
            return SAME
        return _NOT_MEASURED if self.measured is None else self.measured.ratio.verdict

    @property
    def estimated(self) -> float | None:
        """The estimated time without the pass over that with it."""
        if self.without is None or self.with_ is None or not self.with_.microseconds:
            return None
        return self.without.microseconds / self.with_.microseconds

    def record(self) -> dict[str, object]:
        """The same for JSON; times are in seconds where they were measured, in microseconds where estimated."""
        record: dict[str, object] = {
            "model": self.model,
            "verdict": self.verdict,
            "error": self.error or None,
            "wrong": self.wrong or None,
            "off_reference": self.off_reference,
            "off_without": self.off_without,
            **{name: getattr(self, name) for name in ("applied", "declined", "missed", "inserted", "erased")},
            "reasons": [{"kind": kind, "reason": reason, "count": count} for kind, reason, count in self.reasons],
            "without": None if self.without is None else asdict(self.without),
            "with": None if self.with_ is None else asdict(self.with_),
            "estimated_ratio": self.estimated,
            "measured": None,
        }
        if self.measured is not None:
            ratio = self.measured.ratio
            record["measured"] = {
                "without_seconds": self.measured.first,
                "with_seconds": self.measured.second,
                "ratio": ratio.value,
                "interval": [ratio.low, ratio.high],
                "rounds": ratio.rounds,
                "sessions": self.measured.sessions,
            }
        return record


@dataclass(frozen=True)
class Summary:
    """All networks, and the head that says what was tried."""

    head: Sequence[str]
    results: list[Result] = field(default_factory=list[Result])
    details: Mapping[str, object] = field(default_factory=dict[str, object])

    def lines(self) -> list[str]:
        """The table, why the passes declined, and what went wrong."""
        rows = [_HEADS, *map(_row, self.results)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
        lines = [*self.head]
        for row in rows:
            cells = [
                cell.ljust(width) if column in _LEFT else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        return [*lines, *self._reasons(), *self.problems()]

    def _reasons(self) -> list[str]:
        counts: dict[tuple[str, str], int] = {}
        for result in self.results:
            for kind, reason, count in result.reasons:
                if reason:
                    counts[kind, reason] = counts.get((kind, reason), 0) + count
        listed = sorted(counts.items(), key=lambda item: (_ORDER.index(item[0][0]), -item[1]))
        return [f"{kind} {count}x: {reason}" for (kind, reason), count in listed[:_MAX_REASONS]]

    def problems(self) -> list[str]:
        """A line for each network that failed or computes something else."""
        return [f"{one.model}: error: {one.error or one.wrong}" for one in self.results if one.error or one.wrong]

    def record(self) -> dict[str, object]:
        """The same for JSON."""
        return {**self.details, "models": [result.record() for result in self.results]}


_ORDER = ("applied", "declined", "missed")
_MAX_REASONS = 8
_HEADS = (
    "model", "off", "applied", "declined", "ops", "launches", "MB", "estimated us", "ratio", "measured ms", "ratio",
    "interval", "verdict",
)  # fmt: skip
_LEFT = (0, 12)


def _row(result: Result) -> Sequence[str]:
    if result.without is None or result.with_ is None:
        return (result.model, *[""] * (len(_HEADS) - 2), result.verdict)
    before, after, measured = result.without, result.with_, result.measured
    times = ("-", "-", "-")
    if measured is not None:
        ratio = measured.ratio
        interval = f"[{ratio.low:.3f}, {ratio.high:.3f}]"
        times = (_change(f"{1e3 * measured.first:.4g}", f"{1e3 * measured.second:.4g}"), f"{ratio.value:.3f}", interval)
    return (
        result.model,
        f"{max(result.off_reference, result.off_without):.1e}",
        str(result.applied),
        str(result.declined),
        f"+{result.inserted} -{result.erased}",
        _change(str(before.launches), str(after.launches)),
        _change(f"{before.bytes / 1e6:.4g}", f"{after.bytes / 1e6:.4g}"),
        _change(f"{before.microseconds:.4g}", f"{after.microseconds:.4g}"),
        f"{result.estimated or 0:.3f}",
        *times,
        result.verdict,
    )


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} -> {after}"
