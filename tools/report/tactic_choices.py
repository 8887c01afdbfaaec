"""The ways in which each fused op could have been computed, with their estimated or measured times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr

from mlirt.builder.host import cpu_target, cuda_target
from mlirt.builder.tactics.sites import find_sites
from mlirt.dialects.context import RtContext
from mlirt.dialects.locations import names
from mlirt.errors import MlirtError
from mlirt.kernels.lib.tactics.registry import TACTIC


@dataclass(frozen=True)
class TacticChoice:
    """Layers that have the same choice: the tactics in the order of lowering, and the best of those measured.

    `estimates` has microseconds, None where a tactic has no estimate: it is taken where it applies. `measured` has
    those of the tactics that were measured on the device.
    """

    layers: tuple[tuple[str, ...], ...]
    op: str
    estimates: tuple[tuple[str, float | None], ...]
    chosen: str
    measured: Mapping[str, float]

    def text(self, name: str, estimate: float | None) -> str:
        """What is known of a tactic's time: `estimated 4.6 µs, measured 5.1 µs`."""
        parts = [] if estimate is None else [f"estimated {estimate:.1f} µs"]
        if name in self.measured:
            parts.append(f"measured {self.measured[name]:.1f} µs")
        return ", ".join(parts)


def tactic_choices(
    module: ModuleOp, ctx: RtContext, target: str, times: Mapping[tuple[str, ...], Mapping[str, float]]
) -> list[TacticChoice]:
    """The choices of a network after the phase `layout`; none where they cannot be told."""
    copy = module.clone()
    taken: dict[object, str] = {}
    for op in copy.walk():
        named = op.attributes.pop(TACTIC, None)
        if isinstance(named, StringAttr):
            taken[op] = named.data
    try:
        sites = find_sites(copy, ctx, cuda_target() if target == "cuda" else cpu_target(), 1)
    except (MlirtError, LookupError):
        return []
    return [
        TacticChoice(
            tuple(dict.fromkeys(tuple(names(op.location)) for op in site.ops)),
            site.ops[0].name,
            tuple((one.name, one.cost) for one in site.candidates),
            taken.get(site.ops[0]) or min(measured, key=measured.__getitem__, default=""),
            measured,
        )
        for site in sites
        for measured in [times.get((site.ops[0].name, *names(site.ops[0].location)), {})]
        if not site.free
    ]
