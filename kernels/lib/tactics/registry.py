"""Finds the tactics of a family of fused ops: the files in its folders, imported when its first op is met."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from mlirt.dialects.pass_plugins import PassPlugin, active
from mlirt.dialects.target import Target
from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    from mlirt.kernels.lib.tactics.lowering import Lowering

# The attribute of an op that names the tactic to take: `cuda_tiles`, or with one of its choices `cuda_tiles:64x64p2`.
TACTIC = "fused.tactic"
TARGETS = ("cpu", "cuda")
_DEFINES_OPS = re.compile(r"^OPS\b", re.MULTILINE)
_KERNELS = Path(__file__).parents[2]


class Tactic(Protocol):
    """A way to lower some fused ops to kernels on some targets; it is asked about ops of the classes `OPS` alone."""

    OPS: tuple[type[Operation], ...]
    TARGETS: frozenset[str]
    PRIORITY: int

    def lower(self, op: Any, lowering: Lowering) -> bool:
        """Launch what computes the op; False, with nothing done, where the tactic does not apply."""
        ...


class TacticWithChoices(Tactic, Protocol):
    """A tactic that has several ways to lower an op."""

    def estimates(self, op: Any, lowering: Lowering) -> Mapping[str, float]:
        """About how many microseconds the op takes in each way that applies, by its name, such as `128x256s4`."""
        ...


@dataclass(frozen=True)
class Candidate:
    """One way to lower one op; `cost` is its estimated time in microseconds, where the tactic has an estimate."""

    tactic: Tactic
    file: str
    choice: str = ""
    cost: float | None = None

    @property
    def name(self) -> str:
        """What the attribute `fused.tactic` says to take it."""
        return f"{self.file}:{self.choice}" if self.choice else self.file


def families() -> tuple[str, ...]:
    """The families of kernels, sorted: folders with a tactic that fits all shapes, types and layouts."""
    return tuple(sorted(path.parent.name for path in _KERNELS.glob("*/generic.py")))


@cache
def tactics_of(family: str, only: str = "", kind: str = "") -> dict[str, Tactic]:
    """The tactics of a family by name, the ones to try first in front; those whose name starts with `only`.

    `matmul/cpu/tiles.py` is `cpu_tiles`, a tactic for CPUs; `matmul/generic.py` is `generic`, one for both targets.
    Files that define no `OPS` are code that tactics share. For one `kind` of target nothing of the other is imported.
    """
    folder = _KERNELS / family
    files = {path.stem: path for path in folder.glob("*.py")}
    for target in (kind,) if kind else TARGETS:
        files |= {f"{target}_{path.stem}": path for path in (folder / target).glob("*.py")}
    modules: dict[str, Tactic] = {}
    for name, path in sorted(files.items()):
        if name.startswith(only) and _DEFINES_OPS.search(path.read_text(encoding="utf-8")):
            parts = path.relative_to(_KERNELS).with_suffix("").parts
            modules[name] = cast("Tactic", import_module(".".join(("mlirt.kernels", *parts))))
    return dict(sorted(modules.items(), key=lambda item: -item[1].PRIORITY))


def _with_plugins(family: str, only: str, kind: str) -> dict[str, Tactic]:
    """The tactics of a family with those of the plugins that count now."""
    own = tactics_of(family, only, kind)
    brought = {
        name: tactic
        for plugin in active()
        for name, tactic in plugin_tactics(plugin).items()
        if name.startswith(only) and any(_is_of(op, family) for op in tactic.OPS)
    }
    for name in brought:
        if name in own:
            raise InvalidInputError(f"there is another tactic {name!r} of {family}; name the file otherwise")
    return dict(sorted((own | brought).items(), key=lambda item: -item[1].PRIORITY)) if brought else own


def plugin_tactics(plugin: PassPlugin) -> dict[str, Tactic]:
    """A plugin's file is a tactic as files of a family are, by its own name; so is each of its classes with `OPS`."""
    holders: dict[str, Any] = {plugin.path.stem: plugin.module}
    for one in plugin.classes(object):
        holders[re.sub(r"(?<!^)(?=[A-Z])", "_", one.__name__).lower()] = one
    found = {name: one for name, one in holders.items() if "OPS" in vars(one) and hasattr(one, "lower")}
    for name, one in found.items():
        if wrong := _wrong(one):
            raise InvalidInputError(f"{plugin.path}: tactic {name}: {wrong}")
    return cast("dict[str, Tactic]", found)


def _wrong(tactic: Any) -> str | None:
    """What is wrong with the tables of a tactic that a user wrote."""
    ops, targets = cast("object", tactic.OPS), cast("object", getattr(tactic, "TARGETS", None))
    classes = cast("tuple[object, ...]", ops) if isinstance(ops, tuple) else ()
    if not classes or not all(isinstance(op, type) and issubclass(op, Operation) for op in classes):
        return "OPS: expected a tuple of classes of ops, such as (MatmulOp,)"
    if not isinstance(targets, set | frozenset) or not targets or not targets <= set(TARGETS):
        return "TARGETS: expected a set of 'cpu' and 'cuda'"
    if isinstance(getattr(tactic, "PRIORITY", None), int | float):
        return None
    return "PRIORITY: expected a number; tactics with a higher one are asked first, and generic ones have 0"


def tactics_for(op: Operation, target: Target, only: str = "") -> Iterator[tuple[str, Tactic]]:
    """The tactics, with their names, that may take an op on a target, in the order in which they are tried.

    The attribute `fused.tactic` of an op names the one to take; `only` restricts all ops to names that start with it.
    """
    kind = "cpu" if target.kind == "reference" else target.kind
    chosen = op.attributes.get(TACTIC)
    wanted = chosen.data.partition(":")[0] if isinstance(chosen, StringAttr) else None
    for name, tactic in _with_plugins(family_of(op), "" if wanted else only, kind).items():
        if wanted in (None, name) and isinstance(op, tactic.OPS) and kind in tactic.TARGETS and _pools(tactic, op):
            yield name, tactic


def _is_of(op: type[Operation], family: str) -> bool:
    return family in (getattr(op, "FAMILY", ""), op.name.partition(".")[2])


def family_of(op: Operation) -> str:
    """The folder of the kernels that compute an op: its own, or the one that its class names."""
    return getattr(op, "FAMILY", "") or op.name.partition(".")[2]


def _pools(tactic: Tactic, op: Operation) -> bool:
    """Whether a tactic pools the results of an op, and adds them up, where they are to be."""
    pools = "pooling" not in op.properties or getattr(tactic, "POOLS", False)
    return pools and ("totals" not in op.properties or getattr(tactic, "ADDS_UP", False))


def candidates(op: Operation, lowering: Lowering) -> list[Candidate]:
    """The ways to lower an op, the ones to try first in front.

    Those with an estimate are ordered by it and stand where the first tactic among them stands by its priority.
    """
    found: list[Candidate] = []
    for name, tactic in tactics_for(op, lowering.target, lowering.only):
        found += _candidates_of(name, tactic, op, lowering)
    estimated = sorted((one for one in found if one.cost is not None), key=lambda one: (one.cost or 0.0, one.name))
    first = min((place for place, one in enumerate(found) if one.cost is not None), default=0)
    return [
        *[one for one in found[:first] if one.cost is None],
        *estimated,
        *[one for one in found[first:] if one.cost is None],
    ]


def _candidates_of(name: str, tactic: Tactic, op: Operation, lowering: Lowering) -> list[Candidate]:
    if not hasattr(tactic, "estimates"):
        return [Candidate(tactic, name)]
    chosen = op.attributes.get(TACTIC)
    forced = chosen.data.partition(":")[2] if isinstance(chosen, StringAttr) else ""
    if forced:
        return [Candidate(tactic, name, forced)]
    estimates = cast("TacticWithChoices", tactic).estimates(op, lowering)
    return [Candidate(tactic, name, choice, cost) for choice, cost in estimates.items()]
