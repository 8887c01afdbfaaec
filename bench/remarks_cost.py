"""What listening to remarks costs a build: builds with and without it in one process by turns, CPU seconds.

    MLIRT_PLAN_CACHE_MB=0 python bench/remarks_cost.py MODEL.onnx .. [--builds 10]

Prints the geometric mean of the ratios with to without, and its bootstrap interval (95 %). Kernels come from the cache
after a first build, so that the compiler's own work is what is compared. The exit code is 1 from 1.05 on.
"""

from __future__ import annotations

import argparse
import sys
import time

import mlirt
from mlirt.tools.lab.ratio_statistics import ratio_of

MAX_RATIO = 1.05


def main() -> int:
    """Measure each model, print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="ONNX models")
    parser.add_argument("--builds", type=int, default=10, metavar="N", help="builds of each kind; default: 10")
    options = parser.parse_args()
    if options.builds < 2:
        parser.error("--builds: expected 2 or more")
    found = [_ratio(model, options.builds) for model in options.models]
    return int(max(found) >= MAX_RATIO)


def _ratio(model: str, builds: int) -> float:
    _seconds(model, None)
    remarks = mlirt.Remarks()
    _seconds(model, remarks)
    ratios: list[list[float]] = []
    for number in range(builds):
        times = {listens: _seconds(model, mlirt.Remarks() if listens else None) for listens in _order(number)}
        ratios.append([times[True] / times[False]])
    found = ratio_of(ratios)
    print(f"{model}: {found.value:.3f} [{found.low:.3f}, {found.high:.3f}] with {len(remarks.remarks)} remarks")
    return found.value


def _order(number: int) -> tuple[bool, bool]:
    return (False, True) if number % 2 == 0 else (True, False)


def _seconds(model: str, remarks: mlirt.Remarks | None) -> float:
    """CPU seconds of all threads of a build for the CPU."""
    start = time.process_time()
    mlirt.compile(model, "cpu", remarks=remarks)
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
