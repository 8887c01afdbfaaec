"""What rt-lab tries: the passes of a file at their place in the pipeline, or one of the compiler's own, left out."""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from xdsl.ir import Dialect, Operation

from mlirt.dialects.pass_plugins import PassPlugin, load, using
from mlirt.errors import InvalidInputError
from mlirt.kernels.lib.tactics.registry import plugin_tactics
from mlirt.passes import registry
from mlirt.passes.pipeline_edits import Pipeline
from mlirt.passes.pipeline_text import parse_specs

Side = Literal["with", "without"]

PLACES = {"trt": "after=cleanup", "fused": "before=eliminate-dead-layers#2", "kernel": "after=lowering"}
"""Where a pass goes whose file says nothing, by the dialect that it works on: layers when the network is as small as it
gets, launches behind the package's own fusions, kernels when they are written.
"""
PLACE_NAME = "PIPELINE"
"""The global of a file that says where its passes go: one edit of the pipeline, or several."""


@dataclass(frozen=True)
class Experiment:
    """Two pipelines that are compared. `file` brings what is new; the baseline has it only for what reads networks."""

    name: str
    passes: tuple[str, ...]
    pipelines: dict[Side, Pipeline]
    file: Path | None = None
    needed: bool = False
    """Whether networks cannot be read without the file: it brings ops or ONNX handlers."""
    place: str = ""
    """Where the passes go, and who says so."""

    @contextmanager
    def side(self, side: Side) -> Generator[Pipeline]:
        """The pipeline of a side; meanwhile the file counts where that side has it."""
        counts = self.file is not None and (side == "with" or self.needed)
        with using([self.file] if counts and self.file is not None else [], "PASS_FILE"):
            yield self.pipelines[side]


def experiment_of(subject: str, edits: Sequence[str]) -> Experiment:
    """The experiment with a file of passes or tactics, or with the name of one of the compiler's passes.

    `edits` are those of --pipeline-edit, in place of what the file says.
    """
    if subject.endswith(".py"):
        return _of_file(Path(subject), edits)
    if Path(subject).is_file():
        raise InvalidInputError(
            f"{subject}: expected a Python file of passes, whose name ends in .py, or a pass's name"
        )
    registry.load(subject)
    if edits:
        raise InvalidInputError(f"--pipeline-edit is for a file of passes; {subject} is measured where it runs")
    without = Pipeline.default().without(subject)
    place = "where the compiler has it; the other side is without it"
    return Experiment(subject, (subject,), {"with": Pipeline(), "without": without}, place=place)


def _of_file(path: Path, edits: Sequence[str]) -> Experiment:
    plugin = load(path, "PASS_FILE")
    passes = tuple(one.name for one in registry.passes_of(plugin))
    tactics = plugin_tactics(plugin)
    if not passes and not tactics:
        raise InvalidInputError(f"{path} brings no pass and no tactic: expected a class of ModulePass with a name")
    if tactics and _is_needed(plugin):
        raise InvalidInputError(f"{path} brings tactics beside ops or ONNX handlers: put the tactics in another file")
    with using([path], "PASS_FILE"):
        registry.plugin_passes()
        place, chosen = _placed(plugin, passes, edits)
        pipeline = Pipeline.parse(chosen)
        unplaced = [one for one in passes if one not in _names_in(pipeline)]
        if unplaced:
            raise InvalidInputError(
                f"{place} leaves {unplaced[0]} out: expected a place for each of {', '.join(passes)}"
            )
    said = "; ".join(filter(None, [f"{', '.join(chosen)} ({place})" if chosen else "", ", ".join(tactics)]))
    pipelines: dict[Side, Pipeline] = {"with": pipeline, "without": Pipeline()}
    return Experiment(path.name, passes, pipelines, path, _is_needed(plugin), said)


def _placed(plugin: PassPlugin, passes: Sequence[str], edits: Sequence[str]) -> tuple[str, list[str]]:
    """Who says where the passes go, and the edits that put them there."""
    if edits:
        return "--pipeline-edit", list(edits)
    said: Any = getattr(plugin.module, PLACE_NAME, None)
    if said is not None:
        wanted: list[Any] = [said] if isinstance(said, str) else list(said)
        if not all(isinstance(one, str) for one in wanted):
            raise InvalidInputError(
                f"{plugin.path}: {PLACE_NAME} is {said!r}: expected edits such as 'after=cse#1:my-pass'"
            )
        return f"{PLACE_NAME} of the file", wanted
    level = level_of(plugin.path)
    hint = f"a pass for {level} ops goes there unless {PLACE_NAME} of the file or --pipeline-edit says otherwise"
    return hint, [f"{PLACES[level]}:{','.join(passes)}"] if passes else []


def level_of(path: Path) -> str:
    """The dialect that the passes of a file work on: the lowest one that it imports ops of, else that of layers."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module)
        elif isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
    for level in ("kernel", "fused"):
        if any(f"{name}.".startswith(f"mlirt.dialects.{level}.") for name in imported):
            return level
    return "trt"


def _names_in(pipeline: Pipeline) -> set[str]:
    return {spec.name for edit in pipeline.edits if edit.passes for spec in parse_specs(edit.passes)}


def _is_needed(plugin: PassPlugin) -> bool:
    return bool(
        plugin.handlers
        or hasattr(plugin.module, "CONVERSIONS")
        or any(True for _ in plugin.classes(Operation))
        or any(True for _ in plugin.objects(Dialect))
    )
