"""Builds a network again and again so that each tactic that is offered for a layer is used in one of the builds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mlirt.builder.tactics.sites import find_sites
from mlirt.builder.tactics.trial import trials
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.target import Target
from mlirt.dialects.typical_sizes import typical_values
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_phases


@dataclass(frozen=True)
class Rotation:
    """The tactics that are offered for each fused op of a network, in the network's order; none where there is one."""

    offered: list[list[str]]

    @classmethod
    def of(cls, network: ModuleOp, ctx: RtContext, target: Target, precision: str) -> Self:
        """Those of a network just imported, which is left as it is; nothing is compiled."""
        module = network.clone()
        options = PipelineOptions("cuda", precision, TargetMachine.of(target))
        run_phases(module, ctx, last="layout", options=options)
        names: dict[Operation, list[str]] = {}
        known = typical_values(entry_function(module).body.block)
        for site in find_sites(module, ctx, target):
            offered = [] if site.free else [one.name for one in site.candidates]
            own = [trial.candidate for trial in trials(site.ops[0], offered, ctx, target, known)]  # others decline it
            names |= {op: own for op in site.ops}
        return cls([names.get(op, []) for op in module.walk() if isinstance(op, FusedOp)])

    @property
    def builds(self) -> int:
        """How many builds use each of them: as many as the op with the most tactics has."""
        return max(map(len, self.offered), default=0) or 1

    def tactics(self, number: int) -> list[str]:
        """The tactics of a build, one for each fused op, as `Tuning.replay` takes them."""
        return [names[number % len(names)] if names else "" for names in self.offered]

    def record(self, number: int) -> dict[str, Any]:
        """What a row of results says of a build: `builds` there are in all, `offered` and `used` tactics."""
        names = sorted({name for names in self.offered for name in names})
        return {"builds": self.builds, "offered": names, "used": [name for name in self.tactics(number) if name]}

    def save(self, path: Path) -> None:
        """For the other builds of the network."""
        path.write_text(json.dumps(self.offered), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """What `save` wrote."""
        return cls(json.loads(path.read_text(encoding="utf-8")))


def coverage(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each file of tactics how many are offered, how many of them no build used, and how many builds were wrong."""
    offered = {name for row in rows for name in row.get("offered", ())}
    used = Counter(name for row in rows for name in row.get("used", ()))
    wrong = Counter(name for row in rows if row["verdict"] != "right" for name in row.get("used", ()))
    files: dict[str, list[str]] = {}
    for name in sorted(offered | used.keys()):
        files.setdefault(name.partition(":")[0], []).append(name)
    return [
        f"{file}: {len(names)} tactics, {sum(not used[one] for one in names)} of them in no build; "
        f"{sum(used[one] for one in names)} layers, {sum(wrong[one] for one in names)} in builds that are not right"
        for file, names in files.items()
    ]
