"""Which level of IR a pass works on: one for launches does nothing to layers, and a user is told so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.passes.phases import CHECKS, PHASES
from mlirt.passes.plugin_layers import level_of

_BORDERS = {"convert-trt-to-fused": "fused", "convert-fused-to-kernel": "kernel"}
_BEFORE = {"fused": "trt", "kernel": "fused"}
_NO_LAYERS = CHECKS | {"trt.constant"}


@cache
def levels() -> dict[str, str]:
    """`trt`, `fused` or `kernel` for each pass of the pipeline that runs on one of them alone."""
    level, found = "trt", dict[str, set[str]]()
    for step in (step for phase in PHASES for step in phase.steps):
        found.setdefault(step.pass_name, set()).add(level)
        level = _BORDERS.get(step.pass_name, level)
    return {name: next(iter(of)) for name, of in found.items() if len(of) == 1}


def unsuitable(pass_: ModulePass, module: ModuleOp) -> str | None:
    """Why a pass for lower IR has nothing to do on this one; None where it may have."""
    wanted = levels().get(pass_.name)
    if wanted is None or wanted not in _BEFORE:
        return None
    held = {level_of(op) for op in module.walk() if op.name not in _NO_LAYERS}
    if wanted in held or (wanted == "kernel" and "plan" in held):
        return None
    higher = [one for one in ("fused", "trt") if one in held and one != wanted]
    if not higher:
        return None
    (needed,) = [border for border, after in _BORDERS.items() if after == wanted]
    return f"pass {pass_.name} works on {wanted} ops, but the IR holds {higher[0]} ops: run {needed} before it"


@dataclass
class LevelWarnings:
    """An instrument that warns once for each pass that can do nothing."""

    warn: Callable[[str], None]
    _told: set[str] = field(default_factory=set[str])

    def before_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        if pass_.name in levels() and pass_.name not in self._told:
            text = unsuitable(pass_, module)
            if text is not None:
                self._told.add(pass_.name)
                self.warn(text)

    def after_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Nothing to say."""
