"""Finds the tactics of a family of fused ops: the files in its folder, imported when its first op is met."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from mlirt.dialects.target import Target

if TYPE_CHECKING:
    from mlirt.passes.lowering.lowering import Lowering

# The attribute of an op that names the tactic to take.
TACTIC = "fused.tactic"
_HERE = Path(__file__).parent


class Tactic(Protocol):
    """A way to lower some fused ops to kernels on some targets."""

    OPS: tuple[type[Operation], ...]
    TARGETS: frozenset[str]
    PRIORITY: int

    def lower(self, op: Operation, lowering: Lowering) -> bool: ...


@cache
def tactics_of(family: str, only: str = "") -> dict[str, Tactic]:
    """The tactics in the folder of a family by name, the ones to try first in front; those whose name starts with
    `only`.
    """
    modules: dict[str, Tactic] = {}
    for path in sorted((_HERE / family).glob(f"{only or '[a-z]'}*.py")):
        module = import_module(f"mlirt.passes.lowering.{family}.{path.stem}")
        if hasattr(module, "OPS"):
            modules[path.stem] = cast("Tactic", module)
    return dict(sorted(modules.items(), key=lambda item: -item[1].PRIORITY))


def tactics_for(op: Operation, target: Target, only: str = "") -> Iterator[Tactic]:
    """The tactics that may take an op on a target, in the order in which they are tried.

    The attribute `fused.tactic` of an op names the one to take; `only` restricts all ops to names that start with it.
    """
    kind = "cpu" if target.kind == "reference" else target.kind
    chosen = op.attributes.get(TACTIC)
    for name, tactic in tactics_of(op.name.partition(".")[2], "" if chosen else only).items():
        wanted = not isinstance(chosen, StringAttr) or name == chosen.data
        if wanted and isinstance(op, tactic.OPS) and kind in tactic.TARGETS:
            yield tactic
