"""Where IR stands in the pipeline of phases, and which of them still have to run."""

from __future__ import annotations

import re

from xdsl.dialects.builtin import ModuleOp, NoneAttr
from xdsl.ir import Attribute

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.errors import InvalidInputError
from mlirt.passes.phases import CHECKS, find_phase, phase_names
from mlirt.passes.plugin_layers import level_of

# The first lines of a dump (passes/phase_dumps.py).
_DUMPED = re.compile(r"\A(?P<head>(//[^\n]*\n)+)")
_PHASE = re.compile(r"^// phase (?P<name>\w+):", re.MULTILINE)
_TARGET = re.compile(r"^// target: (?P<name>\w+)$", re.MULTILINE)
_ANYWHERE = CHECKS | {"trt.constant"}


def starting_phase(module: ModuleOp, text: str = "") -> str:
    """The first phase that has to run on IR, from its dialects; in its text the head of a dump says it more exactly.

    Layers start at `cleanup`, layers beside launches at `fusion`, launches at `layout`, or at `lowering` where their
    tensors have layouts, and kernels at `memory`. What a dump says counts as long as the IR is what its phase leaves.
    """
    found = _by_dialects(module)
    dumped = phase_of_dump(text)
    if dumped is None or not _leaves(dumped, module):
        return found
    names = phase_names()
    after = names[min(names.index(dumped) + 1, len(names) - 1)]
    return after if names.index(after) >= names.index(found) else found


def check_start(module: ModuleOp, phase: str) -> None:
    """Raise `InvalidInputError` where IR is beyond the ops that a phase works on, or not yet there."""
    least, names = _by_dialects(module), phase_names()
    if least in ("layout", "lowering"):
        least = "fusion"  # whose passes leave launches alone that are there already
    if names.index(phase) < names.index(least):
        held = "kernels" if least == "memory" else "launches"
        raise InvalidInputError(
            f"this IR holds {held}, and cannot start at {phase}: the first phase is {least} or later"
        )
    if phase == "memory" != least and _holds_work(module):
        raise InvalidInputError("this IR holds no kernels, and cannot start at memory: the first phase is earlier")


def _holds_work(module: ModuleOp) -> bool:
    return any(level_of(op) in ("trt", "fused") and op.name not in _ANYWHERE for op in module.walk())


def phase_of_dump(text: str) -> str | None:
    """The phase that left a text, where it is a dump."""
    return _in_head(text, _PHASE, phase_names())


def target_of_dump(text: str) -> str | None:
    """The target that a dump was made for."""
    return _in_head(text, _TARGET, ("cpu", "cuda"))


def check_target(text: str, phase: str, target: str) -> None:
    """Raise `InvalidInputError` where IR with layouts or kernels was made for another target."""
    names, made_for = phase_names(), target_of_dump(text)
    if made_for not in (None, target) and names.index(phase) > names.index("layout"):
        raise InvalidInputError(f"this IR was made for {made_for}, and cannot be built for {target} from {phase} on")


def _in_head(text: str, pattern: re.Pattern[str], known: tuple[str, ...]) -> str | None:
    head = _DUMPED.match(text)
    found = pattern.search(head["head"]) if head is not None else None
    return found["name"] if found is not None and found["name"] in known else None


def _leaves(phase: str, module: ModuleOp) -> bool:
    legal = find_phase(phase).legal
    return all(op.name in legal or level_of(op) in legal for op in module.walk())


def _by_dialects(module: ModuleOp) -> str:
    ops = [op for op in module.walk() if op.name not in _ANYWHERE]
    held = {level_of(op) for op in ops}
    if held & {"plan", "kernel"}:
        if held & {"trt", "fused"}:
            names = sorted(held & {"plan", "kernel", "trt", "fused"})
            raise InvalidInputError(f"the IR holds ops of {', '.join(names)}: no phase starts at such a mixture")
        return "memory"
    if "fused" not in held:
        return "cleanup"
    if "trt" in held:
        return "fusion"
    types = [value.type for op in ops if op.dialect_name() == "fused" for value in op.results]
    return "lowering" if any(map(_has_layout, types)) else "layout"


def _has_layout(of: Attribute) -> bool:
    encoding = getattr(of, "encoding", None)
    if not isinstance(encoding, DimsAttr):
        return False
    return bool(encoding.order.data or encoding.row.data or encoding.halo.data) or not isinstance(
        encoding.channels, NoneAttr
    )
