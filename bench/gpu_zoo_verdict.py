"""Judges what a network of the zoo gave, and prints the judgements as a table, the worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Row = dict[str, Any]

FACTOR = 3.0
"""Our error may be so many times PyTorch's in the same precision."""

# Half the distance of neighbouring numbers around 1: what rounding one result may cost. An error of two roundings is
# as good as none, whatever the luck of the peer.
_ROUNDING = {"fp16": 2.0**-11, "bf16": 2.0**-8, "tf32": 2.0**-11, "fp32": 2.0**-24}
_INTEGERS = 2.0**-7  # of the largest value: one step of a byte, where our reference of int8 rounds otherwise


def error_of(found: Sequence[Array], want: Sequence[Array]) -> float:
    """The largest difference over the largest value, of the worst output; infinite where one is not finite.

    Numbers that are not finite in `want` have to be the same in `found`.
    """
    if [one.shape for one in found] != [one.shape for one in want]:
        shapes = [list(one.shape) for one in found], [list(one.shape) for one in want]
        raise ValueError(f"outputs of shapes {shapes[0]} in place of {shapes[1]}")
    return max((_error(one, other) for one, other in zip(found, want, strict=True)), default=0.0)


def _error(found: Array, want: Array) -> float:
    wide, right = found.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(right)
    if not np.array_equal(wide[~finite], right[~finite], equal_nan=True) or not np.isfinite(wide[finite]).all():
        return float("inf")
    difference = np.abs(wide[finite] - right[finite]).max(initial=0.0)
    return float(difference / max(1e-30, np.abs(right[finite]).max(initial=0.0))) if difference else 0.0


def allowed(precision: str, peer: float) -> float:
    """The error that ours may have."""
    return max(FACTOR * peer, _INTEGERS if precision == "int8" else 2 * _ROUNDING[precision])


def judge(row: Row) -> Row:
    """The row with `verdict`: right, wrong, unstable, failed, or not offered; and why."""
    notes: list[str] = list(row.get("notes", []))
    if row.get("why"):
        verdict = "failed"
    elif row["differing"]:
        verdict = "unstable"
    elif row["error"] > allowed(row["precision"], row["peer"]):
        verdict = "wrong"
    else:
        verdict = "right"
    if row.get("peer") == float("inf"):
        notes.append("PyTorch leaves the range of numbers too")
    return {**row, "verdict": verdict, "notes": notes}


def is_bad(row: Mapping[str, Any]) -> bool:
    return row["verdict"] in ("failed", "unstable", "wrong")


_ORDER = ("failed", "unstable", "wrong", "not offered", "right")


def lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each row, the worst first, and one about all."""
    ordered = sorted(rows, key=lambda row: (_ORDER.index(row["verdict"]), -_badness(row), row["name"]))
    head = f"{'verdict':11} {'network precision tactics':38} {'error':>8} {'peer':>8} {'x':>6} {'differ':>7} notes"
    return [head, *map(_line, ordered), summary(rows)]


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    counts = {kind: sum(row["verdict"] == kind for row in rows) for kind in _ORDER}
    networks = len({row["network"] for row in rows} - {""})
    return f"{networks} networks, {len(rows)} cases: " + ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)


def _badness(row: Mapping[str, Any]) -> float:
    if "error" not in row:
        return 0.0
    return row["error"] / allowed(row["precision"], row["peer"]) if row["peer"] != float("inf") else 0.0


def _line(row: Mapping[str, Any]) -> str:
    notes = "; ".join(filter(None, [row.get("why", ""), *row.get("notes", [])]))
    if "error" not in row:
        return f"{row['verdict']:11} {row['name']:38} {'':8} {'':8} {'':6} {'':7} {notes}"[:400]
    ratio = f"{row['error'] / row['peer']:6.2f}" if row["peer"] else f"{'':6}"
    runs = f"{row['differing']}/{row['runs']}"
    return f"{row['verdict']:11} {row['name']:38} {row['error']:8.1e} {row['peer']:8.1e} {ratio} {runs:>7} {notes}"[
        :600
    ]
