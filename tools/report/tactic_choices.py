"""The ways in which each fused op could have been computed, with their estimated or measured times."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr

from mlirt.builder.host import cpu_target, cuda_target
from mlirt.builder.tactics.sites import find_sites
from mlirt.dialects.context import RtContext
from mlirt.dialects.locations import names
from mlirt.errors import MlirtError
from mlirt.passes.lowering.tactics import TACTIC


@dataclass(frozen=True)
class TacticChoice:
    """Layers that have the same choice: the tactics in the order of lowering, and the best of those measured.

    `estimates` has microseconds, None where a tactic has no estimate: it is taken where it applies.
    """

    layers: tuple[tuple[str, ...], ...]
    op: str
    estimates: tuple[tuple[str, float | None], ...]
    chosen: str


def tactic_choices(module: ModuleOp, ctx: RtContext, target: str) -> list[TacticChoice]:
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
            taken.get(site.ops[0], "" if site.candidates[0].cost is None else site.candidates[0].name),
        )
        for site in sites
        if not site.free
    ]
