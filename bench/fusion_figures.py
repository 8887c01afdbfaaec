"""Figures of a plan and of a corpus: bytes that launches move, times against peers, and what is printed of them."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import html
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from cpu_peer import cpu_session

from mlirt.dialects.kernel.worker import PARTS
from mlirt.runtime.expressions import evaluate
from mlirt.runtime.manifest import Buffer, BufferArgument, Manifest, MapArgument

_WIDTH, _LINE, _LABELS = 900, 18, 330
_WORKERS = 2
_OURS, _PALE = "#2b7a78", "#c9d6d5"


def moved_and_least(manifest: Manifest) -> tuple[int, int]:
    """The bytes of the buffers that each launch is given, and those of inputs, weights and outputs alone.

    For plans whose sizes depend on nothing but the number of workers: two are assumed. A buffer counts whole where a
    launch touches a part of it.
    """
    given = [
        {one.buffer for one in launch.args if isinstance(one, BufferArgument | MapArgument)}
        for launch in manifest.launches
    ]
    borders = [one.kind != "arena" and one.view_of is None for one in manifest.buffers]
    return bytes_moved(given, [_size(one) for one in manifest.buffers], borders)


def bytes_moved(launches: Iterable[Iterable[int]], sizes: Sequence[int], borders: Sequence[bool]) -> tuple[int, int]:
    """The bytes of the buffers of each launch, and those of all buffers at the borders of the plan."""
    moved = sum(sizes[index] for buffers in launches for index in buffers)
    return moved, sum(size for size, is_border in zip(sizes, borders, strict=True) if is_border)


def _size(buffer: Buffer) -> int:
    return evaluate(buffer.size, {PARTS: _WORKERS})


def milliseconds(sides: Mapping[str, Callable[[], object]], rounds: int = 5, seconds: float = 0.06) -> dict[str, float]:
    """The median time of a call of each side; some calls of one are followed by some of the next, each after one."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _, (name, run) in product(range(rounds), sides.items()):
        run()
        end = time.perf_counter() + seconds
        for number in range(200):
            start = time.perf_counter()
            if number >= 2 and start > end:
                break
            run()
            times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(found) for name, found in times.items()}


def times_of(case: Any, engine: Any) -> dict[str, float]:
    """Milliseconds of a call of the engine, and of each peer that takes the module."""
    import torch

    sides: dict[str, Callable[[], object]] = {
        "ours": lambda: engine(*case.inputs),
        "eager": lambda: case.module(*case.inputs),
    }
    makers = {"compiled": _compiled}
    if not left_out():
        makers["onnxruntime"] = _session
    with torch.no_grad():
        for name, make in makers.items():
            try:
                sides[name] = make(case)
            except Exception as error:  # the peer's own, such as a missing C++ compiler
                print(f"{name}: {type(error).__name__}: {str(error)[:100]}", flush=True)
        found = milliseconds(sides)
    torch._dynamo.reset()  # which keeps all modules that it has compiled
    return found


def left_out() -> list[str]:
    """A line that says so where onnxruntime is not installed."""
    return [] if importlib.util.find_spec("onnxruntime") else ["onnxruntime is not installed: it is no peer here"]


def _compiled(case: Any) -> Callable[[], object]:
    """The module by torch.compile, which has compiled it."""
    import torch

    compiled = torch.compile(case.module)
    compiled(*case.inputs)
    return lambda: compiled(*case.inputs)


def _session(case: Any) -> Callable[[], object]:
    """The exported module in onnxruntime, with the threads of PyTorch."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.onnx"
        torch.onnx.export(case.module, tuple(case.inputs), path, dynamo=True, verbose=False)
        session = cpu_session(path, threads=torch.get_num_threads())
    values = [one.numpy() for one in case.inputs if hasattr(one, "numpy")]
    feeds = dict(zip((one.name for one in session.get_inputs()), values, strict=True))
    session.run(None, feeds)
    return lambda: session.run(None, feeds)


def ratio(times: Mapping[str, float]) -> float:
    """The time of the fastest peer over ours."""
    return min(value for name, value in times.items() if name != "ours") / times["ours"]


def summary(launches: Mapping[str, Sequence[int]], ratios: Mapping[str, float]) -> list[str]:
    """Launches for each target, and the geometric mean and the slowest of the ratios."""
    lines = [
        f"{target}: launches {statistics.mean(counts):.2f} in the mean, median {statistics.median(counts):g}, "
        f"most {max(counts)}"
        for target, counts in launches.items()
        if counts
    ]
    if ratios:
        slowest = sorted(ratios, key=lambda name: ratios[name])[:10]
        lines.append(f"fastest peer over ours: {statistics.geometric_mean(ratios.values()):.2f} in the geometric mean")
        lines += [f"  {ratios[name]:6.2f} {name}" for name in slowest]
    return lines


def picture(ratios: Mapping[str, float]) -> str:
    """An SVG with a bar for each module, the slowest first."""
    names = sorted(ratios, key=lambda name: ratios[name])
    most = max(2.0, *ratios.values())
    unit = (_WIDTH - _LABELS - 60) / most
    height = 40 + _LINE * len(names)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif" '
        'font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<text x="10" y="18" font-size="13">time of the fastest peer over ours</text>',
    ]
    for row, name in enumerate(names):
        y, found = 30 + _LINE * row, ratios[name]
        parts.append(f'<text x="{_LABELS - 6}" y="{y + 11}" text-anchor="end">{html.escape(name[:52])}</text>')
        colour = _OURS if found >= 1 else _PALE
        parts.append(f'<rect x="{_LABELS}" y="{y}" width="{found * unit:.1f}" height="14" fill="{colour}"/>')
        parts.append(f'<text x="{_LABELS + found * unit + 5:.1f}" y="{y + 11}">{found:.2f}</text>')
    line = _LABELS + unit
    parts.append(f'<line x1="{line:.1f}" y1="26" x2="{line:.1f}" y2="{height - 6}" stroke="#333"/>')
    return "\n".join([*parts, "</svg>\n"])
