"""Finds the tactics of a family of fused ops: the files in its folder, imported when its first op is met."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from xdsl.ir import Operation

from mlirt.dialects.target import Target

if TYPE_CHECKING:
    from mlirt.passes.lowering.lowering import Lowering

_HERE = Path(__file__).parent


class Tactic(Protocol):
    """A way to lower some fused ops to kernels on some targets."""

    OPS: tuple[type[Operation], ...]
    TARGETS: frozenset[str]
    PRIORITY: int

    def lower(self, op: Operation, lowering: Lowering) -> bool: ...


@cache
def tactics_of(family: str) -> dict[str, Tactic]:
    """The tactics in the folder of a family by name, the ones to try first in front."""
    modules: dict[str, Tactic] = {}
    for path in sorted((_HERE / family).glob("[a-z]*.py")):
        module = import_module(f"mlirt.passes.lowering.{family}.{path.stem}")
        if hasattr(module, "OPS"):
            modules[path.stem] = cast("Tactic", module)
    return dict(sorted(modules.items(), key=lambda item: -item[1].PRIORITY))


def tactics_for(op: Operation, target: Target, only: str = "") -> Iterator[Tactic]:
    """The tactics that may take an op on a target; with `only` those whose name starts with it."""
    family = op.name.partition(".")[2]
    kind = "cpu" if target.kind == "reference" else target.kind
    for name, tactic in tactics_of(family).items():
        if isinstance(op, tactic.OPS) and kind in tactic.TARGETS and name.startswith(only):
            yield tactic
