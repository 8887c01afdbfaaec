"""Measures all experiments of the gallery by rt-lab, on the networks that each of them writes, as one table.

    python examples/research/measure.py [EXPERIMENT ..] [--target cuda] [--precision fp16] [--seconds 10] [--small]

An experiment is a folder with `networks.py` and a file of passes. The exit code is 1 where rt-lab fails, and where a
pass has nothing to do in one of its networks.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RT_LAB = Path(sys.executable).parent / "rt-lab"
HEADS = ("experiment", "network", "off", "applied", "launches", "MB", "estimated", "measured", "interval", "verdict")


def main() -> int:
    """Print the table; returns the exit code."""
    options = _arguments()
    rows: list[Sequence[str]] = []
    problems: list[str] = []
    for name in options.experiments or experiments():
        models, failed = _measured(name, options)
        problems += failed
        for one in models:
            if not one["error"] and not one["applied"]:
                problems.append(f"{name}: the pass does nothing in {one['model']}")
            rows.append(_row(name, one))
    widths = [max(map(len, column)) for column in zip(HEADS, *rows, strict=True)]
    for row in (HEADS, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print("\n".join(problems), end="\n" * bool(problems))
    return int(bool(problems))


def experiments() -> list[str]:
    """The folders that write networks, by name."""
    return sorted(path.parent.name for path in HERE.glob("*/networks.py"))


def pass_file(name: str) -> Path:
    """The plugin of an experiment: its only file with a class of a pass; raises `SystemExit` for another folder."""
    found = [path for path in sorted((HERE / name).glob("*.py")) if "Pass)" in path.read_text(encoding="utf-8")]
    if len(found) != 1 or name not in experiments():
        raise SystemExit(f"measure.py: error: {name}: expected one of {', '.join(experiments())}")
    return found[0]


def _measured(name: str, options: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """The records of rt-lab, one for each network, and what went wrong."""
    plugin = pass_file(name)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        subprocess.run([sys.executable, HERE / name / "networks.py"], cwd=folder, check=True)
        models = sorted(path.name for path in folder.glob("*_small.onnx" if options.small else "*.onnx"))
        flags = [f"--{flag}={getattr(options, flag)}" for flag in ("target", "precision", "seconds")]
        command = [RT_LAB, plugin, *models, *flags, "--json=found.json", *["--no-measure"] * options.no_measure]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        failed = [f"{name}: {line}" for line in (done.stdout + done.stderr).splitlines() if "error: " in line]
        if done.returncode and not failed:
            failed.append(f"{name}: rt-lab ended with {done.returncode}")
        found = folder / "found.json"
        return (json.loads(found.read_text("utf-8"))["models"] if found.exists() else []), failed


def _row(name: str, one: dict[str, Any]) -> Sequence[str]:
    """A line of the table from the record of a network."""
    network = str(one["model"]).removesuffix(".onnx")
    if one["without"] is None or one["with"] is None:
        return (name, network, *["-"] * (len(HEADS) - 3), str(one["verdict"]))
    measured = one["measured"]
    low, high = measured["interval"] if measured else (0.0, 0.0)
    return (
        name,
        network,
        f"{max(one['off_reference'], one['off_without']):.1e}",
        str(one["applied"]),
        f"{one['without']['launches']} -> {one['with']['launches']}",
        f"{one['without']['bytes'] / 1e6:.4g} -> {one['with']['bytes'] / 1e6:.4g}",
        f"{one['estimated_ratio']:.3f}",
        f"{measured['ratio']:.3f}" if measured else "-",
        f"[{low:.3f}, {high:.3f}]" if measured else "-",
        str(one["verdict"]),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="folders (default: all)")
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu", help="what to build for (default: cpu)")
    parser.add_argument("--precision", default="fp32", help="the precision of the builds, as rt-lab has it")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S", help="how long to measure a network")
    parser.add_argument("--small", action="store_true", help="the smallest network of each experiment alone")
    parser.add_argument("--no-measure", action="store_true", help="compare, count and estimate alone")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
