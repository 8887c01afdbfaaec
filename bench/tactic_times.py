"""Measures the tactics of the benchmark's networks on this machine's GPU, to compare their estimates with.

    python bench/tactic_times.py OUT.json [--cases resnet50:1:fp16,bert_base:8:fp16]

Writes for each different layer the network of that layer alone, and the microseconds of its tactics. The test
test/kernels/test_estimates.py reads such a file: the estimates are to lead to what is fast.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from networks import NETWORKS  # noqa: E402
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, TensorType  # noqa: E402
from xdsl.ir import Operation  # noqa: E402

from mlirt.builder.host import cuda_target  # noqa: E402
from mlirt.builder.tactics.footprint import touched_bytes  # noqa: E402
from mlirt.builder.tactics.measurement import times_of  # noqa: E402
from mlirt.builder.tactics.network_of_one_op import network_of  # noqa: E402
from mlirt.builder.tactics.selection import CALLS  # noqa: E402
from mlirt.builder.tactics.sites import find_sites  # noqa: E402
from mlirt.builder.tactics.timing_cache import TimingCache, times_of_those_right  # noqa: E402
from mlirt.builder.tactics.tuning import device_timer  # noqa: E402
from mlirt.dialects.context import RtContext  # noqa: E402
from mlirt.dialects.interpreter import entry_function  # noqa: E402
from mlirt.dialects.trt.constant import ConstantOp  # noqa: E402
from mlirt.dialects.typical_sizes import typical_values  # noqa: E402
from mlirt.dialects.xdsl_compat import module_text  # noqa: E402
from mlirt.frontend.onnx.importer import import_model  # noqa: E402
from mlirt.passes.pipeline import PipelineOptions, run_phases  # noqa: E402

_CASES = "resnet50:1:fp16,resnet50:32:fp16,resnet50:1:fp32,mobilenet_v2:1:fp16,bert_base:1:fp16,bert_base:8:fp16"

Row = dict[str, Any]


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", default=_CASES, help="network:batch:precision, .. (default: %(default)s)")
    options = parser.parse_args()
    rows: dict[str, Row] = {}
    for case in options.cases.split(","):
        network, batch, precision = case.split(":")
        start = time.perf_counter()
        found = measured(network, int(batch), precision)
        print(f"{case}: {len(found)} layers in {time.perf_counter() - start:.0f} s", flush=True)
        rows |= {row["network"]: row for row in found if row["network"] not in rows}
        options.out.write_text(json.dumps(list(rows.values()), indent=0) + "\n", encoding="utf-8")


def measured(network: str, batch: int, precision: str) -> list[Row]:
    """A row for each different layer."""
    timer = device_timer()
    if timer is None:
        raise SystemExit("this machine has no CUDA device")
    context, target = RtContext(), cuda_target()
    module = import_model(NETWORKS[network](batch), context, {}, None)
    run_phases(module, context, last="layout", options=PipelineOptions("cuda", precision))
    known = typical_values(entry_function(module).body.block)
    sites = find_sites(module, context, target)
    cold = touched_bytes(module, known) > timer.cache_bytes
    times = times_of(sites, context, target, known, timer, TimingCache(), _silent, CALLS, cold=cold)
    rows: list[Row] = []
    for site, microseconds in zip(sites, times, strict=True):
        finite = {name: round(one, 2) for name, one in times_of_those_right(microseconds).items()}
        if len(finite) > 1:
            rows.append({"network": _text(site.ops[0], known), "microseconds": finite})
    return rows


def _text(op: Operation, known: dict[str, int]) -> str:
    """The network of one layer, all constants full of ones: estimates do not look at their values."""
    network = network_of(op, known)
    for constant in network.walk():
        if isinstance(constant, ConstantOp):
            type_: Any = constant.output.type
            element = type_.get_element_type()
            ones = [1.0] if isinstance(element, AnyFloat) else [1]
            plain: Any = TensorType(element, type_.get_shape())
            constant.properties["value"] = DenseIntOrFPElementsAttr.from_list(plain, ones)
    return module_text(network)


def _silent(text: str, done: int, total: int) -> None:
    """Nobody watches."""


if __name__ == "__main__":
    main()
