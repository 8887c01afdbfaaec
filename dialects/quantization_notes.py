"""What became of a network's quantisation, layer by layer: notes that a module carries from the passes to the plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

NOTES = "trt.quantization"


def set_notes(module: ModuleOp, notes: Mapping[str, str]) -> None:
    """Let a module carry a note for each layer name; it carries nothing where there are none."""
    if notes:
        pairs = [ArrayAttr([StringAttr(name), StringAttr(note)]) for name, note in notes.items()]
        module.attributes[NOTES] = ArrayAttr(pairs)
    else:
        module.attributes.pop(NOTES, None)


def notes_in(module: ModuleOp) -> dict[str, str]:
    """The notes that a module carries: layer names joined by ` + `, and what became of them."""
    found = module.attributes.get(NOTES)
    if not isinstance(found, ArrayAttr):
        return {}
    pairs = cast("ArrayAttr[ArrayAttr[StringAttr]]", found)
    return {name.data: note.data for name, note in (pair.data for pair in pairs)}


def notes_about(notes: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """The notes on layers all of whose names are among `names`, which are those of one launch."""
    own = set(names)
    return [f"{name}: {note}" for name, note in notes.items() if set(name.split(" + ")) <= own]
