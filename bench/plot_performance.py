"""Draws the tables of docs/performance.md as bars, into docs/performance: `python bench/plot_performance.py`.

A test compares the pictures with the page, so that they show what it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from plot import ratios

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "performance.md"
FOLDER = ROOT / "docs" / "performance"
TITLES: Mapping[str, tuple[str, str]] = {
    "cpu": ("The open corpus", "time of onnxruntime over ours, apart, 2 cores"),
    "int8": ("INT8 on a CPU", "time of onnxruntime over ours, quantised networks, 2 cores"),
    "half": ("ResNet-50, MobileNetV2 and BERT base", "time of PyTorch's compiler over ours, half precision, H100"),
    "single": ("Single precision", "time of the fastest way of PyTorch over ours, single precision, batch 1, H200"),
}
"""For each picture the heading of its section, whose first table with ratios it shows, and its title."""


def pictures() -> dict[str, str]:
    """The text of each picture by its file name."""
    page = PAGE.read_text(encoding="utf-8")
    return {f"{name}.svg": ratios(rows(page, heading), title) for name, (heading, title) in TITLES.items()}


def rows(page: str, heading: str) -> list[tuple[str, float]]:
    """Names and ratios of the first table below a heading that has a column of ratios; tables may be side by side."""
    below = re.split(rf"^#+ {re.escape(heading)}$", page, flags=re.MULTILINE)[1]
    for table in re.findall(r"(?:^\|.*\n)+", below, re.MULTILINE):
        heads, _, *lines = (_cells(line) for line in table.splitlines())
        if "ratio" in heads:
            return list(_pairs(heads, lines))
    raise ValueError(f"no table with ratios below {heading!r}")


def _pairs(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[tuple[str, float]]:
    columns = [place for place, head in enumerate(heads) if head == "ratio"]
    starts = [0, *(place + 1 for place, head in enumerate(heads) if not head)]
    for name, ratio in zip(starts, columns, strict=True):
        for cells in lines:
            if cells[name] and cells[ratio]:
                yield re.sub(r"[`*]", "", cells[name]), float(cells[ratio])


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"wrote {FOLDER / name}")


if __name__ == "__main__":
    main()
