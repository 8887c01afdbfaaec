"""Errors and latencies on a GPU, against PyTorch on the same network, inputs and stream in the same run.

    python bench/gpu.py [--networks resnet50,mobilenet_v2,bert_base] [--batches 1,8,32,128] [--precisions fp16,fp32]
                        [--corpus DIR [--only ID,..]] [--compile default] [--profile] [--json FILE] [--pictures DIR]

Builds the plans on the spot, or takes those that `--plans DIR --build-only` has put into a folder. DIR of the corpus
holds <id>/model.onnx and perhaps <id>/inputs.npz; `--networks ""` leaves out the benchmark's own networks. Needs torch
for the peers; without it only our side is measured. The table comes last: the ratio is the time of the fastest peer
over ours, above 1 we are faster. Error is the largest difference over the largest value, against onnxruntime in fp32.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from gpu_cases import Case  # noqa: E402
from gpu_plans import prepare  # noqa: E402
from networks import NETWORKS  # noqa: E402

Row = dict[str, Any]


def main() -> None:
    """Build, measure, print."""
    options = _arguments()
    start = time.perf_counter()
    folder = Path(options.plans or tempfile.mkdtemp(prefix="mlirt-gpu-"))
    folder.mkdir(parents=True, exist_ok=True)
    cases = _cases(options)
    failures = prepare(cases, folder, options.jobs, json.loads(options.build))
    print(f"prepared in {time.perf_counter() - start:.0f} s", flush=True)
    if options.build_only:
        return
    from gpu_measure import Bench

    bench = Bench(folder, options.rounds, options.profile)
    print(bench.device, flush=True)
    rows: list[Row] = []

    def time_is_left() -> bool:
        return time.perf_counter() - start < options.budget

    try:
        for case in cases:
            why = (
                failures.get(case.name)
                or failures.get(case.data_name)
                or ("" if time_is_left() else "no time was left")
            )
            rows.append(bench.failed(case, why) if why else bench.measure(case))
            _print_row(rows[-1])
        for row in rows if options.compile != "none" else ():
            if time_is_left() and not row["why"]:
                bench.measure_compiled(row, options.compile)
                _print_row({key: row.get(key) for key in ("name", "times", "peers that failed")})
    finally:  # whoever interrupts a long run sees what was measured
        _report(options, bench.device, rows)


def _report(options: argparse.Namespace, device: str, rows: Sequence[Row]) -> None:
    from gpu_table import layer_lines, lines

    if options.json:
        Path(options.json).write_text(json.dumps({"device": device, "rows": rows}, indent=1))
    if options.pictures:
        from plot import draw

        draw({"device": device, "rows": rows}, Path(options.pictures))
    for row in rows:
        print("\n".join(layer_lines(row)))
    print("\n".join(lines(rows)), flush=True)


def _print_row(row: Row) -> None:
    print(json.dumps({key: value for key, value in row.items() if key != "layers"}), flush=True)


def _cases(options: argparse.Namespace) -> list[Case]:
    precisions = _listed(options.precisions)
    cases = [
        Case(network, int(batch), precision)
        for network, *own in (part.split(":") for part in _listed(options.networks))
        for batch in own or _listed(options.batches)
        for precision in precisions
    ]
    if options.corpus:
        folder, only = Path(options.corpus), _listed(options.only)
        names = only or sorted(path.parent.name for path in folder.glob("*/model.onnx"))
        cases += [Case(name, 1, precision, folder / name / "model.onnx") for name in names for precision in precisions]
    return cases


def _listed(text: str) -> Sequence[str]:
    return [part for part in text.split(",") if part]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--networks", default=",".join(NETWORKS), help="perhaps with batches of their own: bert_base:1:8"
    )
    parser.add_argument("--batches", default="1,8,32,128")
    parser.add_argument("--precisions", default="fp16,fp32")
    parser.add_argument("--corpus", default="", metavar="DIR")
    parser.add_argument("--only", default="", metavar="IDS", help="networks of the corpus (default: all)")
    parser.add_argument("--plans", default="", metavar="DIR", help="keep plans and expected outputs here")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument(
        "--build", default="{}", metavar="JSON", help='for mlirt.compile: {"heuristic": true}, {"timing_cache": FILE}'
    )
    parser.add_argument("--jobs", type=int, default=0, help="networks built at a time (default: by the cores)")
    parser.add_argument("--rounds", type=int, default=15, help="trains per contestant (default: %(default)s)")
    parser.add_argument("--compile", default="none", choices=("none", "default", "reduce-overhead", "max-autotune"))
    parser.add_argument("--budget", type=float, default=1e9, help="seconds after which nothing new is begun")
    parser.add_argument("--profile", action="store_true", help="time each layer against the roofline")
    parser.add_argument("--json", default="", metavar="FILE")
    parser.add_argument("--pictures", default="", metavar="DIR", help="a roofline and the layers of each network, SVG")
    return parser.parse_args()


if __name__ == "__main__":
    main()
