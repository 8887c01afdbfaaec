"""The integers of a quantised network, tensor by tensor, against onnxruntime: which is the first that differs.

`python bench/quantized_tensors.py MODEL [--target cpu|cuda|reference] [--inputs FILE.npz] [--all]`. Every tensor that a
QuantizeLinear, DynamicQuantizeLinear or QLinear op gives becomes an output of the network on both sides. The tensors
are printed in the order of the graph, with the number of elements that differ and the largest difference; without --all
only those that differ are.
"""

# onnxruntime has no types: what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from cpu_peer import cpu_session
from gpu_cases import Arrays, Case

import mlirt


@dataclass(frozen=True)
class Agreement:
    """How far a tensor of one side is from that of the other."""

    name: str
    op_type: str
    elements: int
    differing: int
    largest: float

    def __str__(self) -> str:
        return f"{self.op_type:24} {self.differing:>9} of {self.elements:<9} by {self.largest:<9.4g} {self.name}"


def quantized_tensors(model: onnx.ModelProto) -> dict[str, str]:
    """The names of the tensors of integers that nodes give, with the nodes' ops, in the order of the graph."""
    found: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear", "QGemm") or node.op_type.startswith("QLinear"):
            found[node.output[0]] = node.op_type
    return found


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """The network that gives these tensors too."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    known = {output.name for output in copy.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    return copy


def run_peer(model: onnx.ModelProto, feeds: Arrays) -> Arrays:
    """The outputs by onnxruntime."""
    session = cpu_session(model)
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(feeds)), strict=True))


def compared(model: onnx.ModelProto, feeds: Arrays, target: str) -> list[Agreement]:
    """Each quantised tensor and each output of the network, on both sides."""
    tensors = quantized_tensors(model)
    tensors |= {output.name: "output" for output in model.graph.output}
    whole = with_outputs(model, list(tensors))
    found, wanted = mlirt.compile(whole, target=target).run(feeds), run_peer(whole, feeds)
    return [agreement(name, op_type, found, wanted) for name, op_type in tensors.items()]


def agreement(name: str, op_type: str, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> Agreement:
    """How far one tensor is from the other."""
    got, want = (np.asarray(side[name]).astype(np.float64) for side in (found, wanted))
    if got.shape != want.shape:
        raise ValueError(f"{name}: shape {got.shape}, but {want.shape} with onnxruntime")
    distance = np.abs(got - want)
    return Agreement(name, op_type, distance.size, int(np.count_nonzero(distance)), float(distance.max(initial=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--inputs", type=Path)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    case = Case(options.model.stem, 1, "fp32", options.model)
    feeds = case.feeds() if options.inputs is None else dict(np.load(options.inputs))
    rows = compared(onnx.load(options.model), feeds, options.target)
    for row in rows:
        if options.all or row.differing:
            print(row)
    integers = [row for row in rows if row.op_type != "output"]
    equal = sum(not row.differing for row in integers)
    print(f"{equal} of {len(integers)} quantised tensors are equal, {len(integers) - equal} are not")


if __name__ == "__main__":
    main()
