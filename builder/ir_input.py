"""Reads IR text of any phase as the network of a build, with the weights beside it."""

from __future__ import annotations

import os
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.weights_file import read_weights, weights_beside, weights_in
from mlirt.errors import InvalidInputError, InvalidModelError
from mlirt.passes.phases import find_phase
from mlirt.passes.pipeline import check_ir
from mlirt.passes.starting_phase import check_start, check_target, starting_phase, target_of_dump

_GIVE = "name their file: --weights=FILE.safetensors, or weights= in Python"


def read_ir(
    path: Path, ctx: RtContext, weights: str | os.PathLike[str] | None = None, first: str | None = None
) -> tuple[ModuleOp, str, str]:
    """The module of a file, the first phase that it has to go through, and its text.

    `weights` is the file of its weights, else the one beside it is read; `first` is the phase, else the IR tells.
    Raises `InvalidInputError` or `InvalidModelError` for a file that cannot be read, or that lacks weights.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot read the file: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidModelError(f"{path}: expected IR text, but byte {error.start} is no text") from error
    register_dialects(ctx)
    file = weights_beside(path) if weights is None else Path(weights)
    if file is not None:
        read_weights(ctx, file)
    module, _ = parse_source(ctx, text, str(path))
    check_ir(module)
    known = dict(ctx.weights.items())
    missing = sorted(weights_in(module).keys() - known.keys())
    if missing:
        where = f"{file} lacks them" if file is not None else f"there is no {path.with_suffix('.safetensors').name}"
        raise InvalidInputError(f"{path}: the IR names weights {missing[0]!r}, but {where}; {_GIVE}")
    name_entry(module, None)
    if first is None:
        return module, starting_phase(module, text), text
    check_start(module, find_phase(first).name)
    return module, first, text


def refuse_other_target(text: str, first: str, target: str, asked: str) -> str:
    """The target to build for: that of the dump where none was asked for."""
    made_for = target_of_dump(text)
    if asked == "auto" and made_for is not None:
        target = made_for
    if target != "reference":
        check_target(text, first, target)
    return target


def name_entry(module: ModuleOp, wanted: str | None) -> None:
    """Let the function of this name, or the only one, be `main`, as the entry of a network is called.

    Raises `InvalidInputError` where there is none, or nobody says which.
    """
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    names = [op.sym_name.data for op in functions]
    if wanted is None and (len(functions) == 1 or "main" in names):
        wanted = names[0] if len(functions) == 1 else "main"
    if not names:
        raise InvalidInputError("the IR has no function with a body")
    if wanted not in names:
        why = f"no function {wanted!r}" if wanted is not None else "no function main"
        raise InvalidInputError(f"the IR has {why}; its functions are: {', '.join(names)}")
    for op in functions:
        if op.sym_name.data == wanted:
            op.properties["sym_name"] = StringAttr("main")
        elif op.sym_name.data == "main":
            op.properties["sym_name"] = StringAttr("main_of_before")
