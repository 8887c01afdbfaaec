"""Launches and bytes of a corpus on a GPU, counted behind the passes: no kernel is compiled and no device is needed."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fusion_figures import bytes_moved
from fusion_modules import halved, load

from mlirt.builder.config.build_config import BuildConfig
from mlirt.builder.inner_outputs import InnerOutputs
from mlirt.builder.plan_writer.manifest import manifest_of
from mlirt.builder.read_model import read_model_network
from mlirt.dialects.context import RtContext
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.passes.remarks import Remarks, recording

WANTED_LAUNCHES, WANTED_BYTES = 2, 1.2
_BUFFER = {"buffer", "map"}


@dataclass(frozen=True)
class Counted:
    """What a plan of a module launches."""

    name: str
    kernels: Sequence[str]
    moved: int
    """Bytes of the buffers that each launch is given."""
    least: int
    """Bytes of inputs, weights and outputs."""
    remarks: str = ""

    @property
    def ratio(self) -> float:
        """How many times the least possible is moved."""
        return self.moved / max(self.least, 1)

    def line(self) -> str:
        """As it is printed."""
        return f"{self.name[:52]:52} {len(self.kernels)} launches, moved {self.ratio:.2f}: {', '.join(self.kernels)}"


def count(path: Path, precision: str, *, reduced: bool, explained: bool = False) -> Counted:
    """The launches of a module by the cost model; what the module, its export or the passes raise is let through."""
    from mlirt.frontend.torch.exported_network import exported_network  # needs PyTorch

    case = load(path, reduced=reduced, filled=False)
    case = halved(case) if precision == "fp16" else case
    ctx, config = RtContext(), BuildConfig.of(None, {"target": "cuda", "precision": precision})
    exported = exported_network(case.module, tuple(case.inputs), None, None)
    network = read_model_network(exported, ctx, config, "cuda", InnerOutputs(()))
    found = Remarks()
    with recording(found if explained else None):
        run_phases(network.module, ctx, options=PipelineOptions("cuda", precision))
    return counted_in(manifest_of(network.module), f"{path.parent.name[-1]}/{path.stem[:44]} {precision}", found.text())


def counted_in(manifest: Mapping[str, Any], name: str, remarks: str = "") -> Counted:
    """The launches of a manifest whose sizes are known."""
    launches = cast("list[dict[str, Any]]", manifest["launches"])
    given = [{one.get("map", one)["buffer"] for one in launch["args"] if _BUFFER & one.keys()} for launch in launches]
    sizes = [int(one["bytes"]) for one in manifest["buffers"]]
    borders = [one["kind"] != "arena" and one.get("view_of") is None for one in manifest["buffers"]]
    kernels = [str(manifest["kernels"][launch["kernel"]]["name"]).rpartition("_")[0] for launch in launches]
    return Counted(name, kernels, *bytes_moved(given, sizes, borders), remarks)


def table(rows: Sequence[Counted]) -> list[str]:
    """For each precision: launches, and how many modules move few bytes; `name` ends in the precision."""
    lines: list[str] = []
    for precision in dict.fromkeys(row.name.rpartition(" ")[2] for row in rows):
        group = [row for row in rows if row.name.endswith(f" {precision}")]
        counts = [len(row.kernels) for row in group]
        ratios = sorted(row.ratio for row in group)
        lines.append(
            f"{precision}: {len(group)} modules, launches {statistics.mean(counts):.2f} in the mean, "
            f"most {max(counts)}, "
            f"{sum(one > WANTED_LAUNCHES for one in counts)} over {WANTED_LAUNCHES}; bytes moved over the least "
            f"{statistics.median(ratios):.2f} in the median, most {ratios[-1]:.2f}, "
            f"{sum(one <= WANTED_BYTES for one in ratios)} within {WANTED_BYTES}"
        )
    return lines
