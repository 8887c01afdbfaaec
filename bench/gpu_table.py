"""The table of the GPU benchmark: one line per network, batch size and precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_COLUMNS = ("network", "batch", "precision", "ms", "ratio", "TF32 ratio", "fastest peer", "ms", "eager ms", "error")
_MORE = ("peer's error", "launches", "notes")


def lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Markdown; the second ratio is against a peer that rounds float32 factors to TF32."""
    table = [_line([*_COLUMNS, *_MORE]), _line(["---"] * len([*_COLUMNS, *_MORE]))]
    return ["", *table, *(_line(_cells(row)) for row in rows)]


def layer_lines(row: Mapping[str, Any], count: int = 8) -> list[str]:
    """The layers that take the most time, with the part of the roof that each reaches."""
    layers: Sequence[Mapping[str, Any]] = row.get("layers") or []
    if not layers or isinstance(layers, str):
        return []
    whole = sum(one["microseconds"] for one in layers)
    roof = sum(one["roof"] for one in layers)
    lines = [f"\n{row['name']}: kernels {whole:.1f} us {row['profile']}, roof {roof:.1f} us, {len(layers)} layers"]
    for one in sorted(layers, key=lambda one: -one["microseconds"])[:count]:
        time, share = one["microseconds"], one["share"]
        part = f"{time:8.1f} us {100 * time / whole:5.1f} %  roof {100 * share:4.0f} %  {one['launches']} launches"
        lines.append(f"  {part}  {one['kernel'][:40]:40s}  {one['name'][:60]}")
    return lines


def fastest(row: Mapping[str, Any], tf32: bool) -> tuple[str, float] | None:
    """The name and milliseconds of the fastest peer, among those that round to TF32 or among the others."""
    times: Mapping[str, float] = row["times"]
    peers = [(name, ms) for name, ms in times.items() if name != "ours" and name.endswith("tf32") == tf32]
    return min(peers, key=lambda peer: peer[1]) if peers else None


def ratio(row: Mapping[str, Any], tf32: bool = False) -> float | None:
    """The fastest peer's time over ours."""
    best, ours = fastest(row, tf32), row["times"].get("ours")
    return best[1] / ours if best and ours else None


def _cells(row: Mapping[str, Any]) -> list[str]:
    best, errors = fastest(row, False) or fastest(row, True), row["errors"]
    eager = min((ms for name, ms in row["times"].items() if name.startswith("eager")), default=None)
    notes = [row["why"], "" if row.get("same bits", True) else "other bits in the second run"]
    notes += [f"{name}: {why}"[:60] for name, why in row.get("peers that failed", {}).items()]
    return [
        *(row["network"], str(row["batch"]), row["precision"], _ms(row["times"].get("ours"))),
        *(_ratio(ratio(row)), _ratio(ratio(row, True)), best[0] if best else "", _ms(best[1] if best else None)),
        *(_ms(eager), _error(errors.get("ours")), _error(errors.get(best[0]) if best else None)),
        *(str(row.get("launches", "")), "; ".join(filter(None, notes))),
    ]


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
