"""What listening to remarks costs a build: builds with and without it in one process by turns, CPU seconds.

    MLIRT_PLAN_CACHE_MB=0 python bench/remarks_cost.py MODEL.onnx .. [--builds 10]

Prints the geometric mean of the ratios with to without, and its bootstrap interval (95 %). Kernels come from the cache
after a first build, so that the compiler's own work is what is compared. The exit code is 1 from 1.05 on.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import mlirt

MOST = 1.05


def main() -> int:
    """Measure each model, print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="ONNX models")
    parser.add_argument("--builds", type=int, default=10, metavar="N", help="builds of each kind; default: 10")
    options = parser.parse_args()
    found = [_ratio(model, options.builds) for model in options.models]
    return int(max(found) >= MOST)


def _ratio(model: str, builds: int) -> float:
    _seconds(model, None)
    remarks = mlirt.Remarks()
    _seconds(model, remarks)
    logs: list[float] = []
    for number in range(builds):
        times = {listens: _seconds(model, mlirt.Remarks() if listens else None) for listens in _order(number)}
        logs.append(float(np.log(times[True] / times[False])))
    drawn = np.random.default_rng(0).integers(0, builds, (20000, builds))
    low, high = np.exp(np.quantile(np.array(logs)[drawn].mean(axis=1), [0.025, 0.975]))
    ratio = float(np.exp(np.mean(logs)))
    print(f"{model}: {ratio:.3f} [{low:.3f}, {high:.3f}] with {len(remarks.remarks)} remarks")
    return ratio


def _order(number: int) -> tuple[bool, bool]:
    return (False, True) if number % 2 == 0 else (True, False)


def _seconds(model: str, remarks: mlirt.Remarks | None) -> float:
    """CPU seconds of all threads of a build for the CPU."""
    start = time.process_time()
    mlirt.compile(model, "cpu", remarks=remarks)
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
