"""One network at every level of the compiler, as texts: what docs/architecture.md shows excerpts of."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import cast

from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.plan_writer.manifest import manifest_of
from mlirt.dialects.xdsl_compat import module_text
from mlirt.errors import InvalidInputError
from mlirt.passes.phases import phase_names
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.tools.input_files import new_context
from mlirt.tools.kernel_text import kernel_text


class NetworkStages:
    """The network that a file of examples/ makes; nothing in the texts depends on the machine."""

    def __init__(self, example: Path) -> None:
        self._example = example
        self._texts: dict[str, str] = {}

    @cached_property
    def _makers(self) -> Mapping[str, Callable[[], str]]:
        makers: dict[str, Callable[[], str]] = {
            "python cpu": lambda: kernel_text(self._module("cpu", "memory"), "numba-cpu"),
            "python cuda": lambda: kernel_text(self._module("cuda", "memory"), "numba-cuda"),
            "manifest": lambda: manifest_text(manifest_of(self._module("cpu", "memory"), "small")),
        }
        for target in ("cpu", "cuda"):
            for phase in phase_names():
                name = phase if target == "cpu" else f"{phase} cuda"
                makers[name] = lambda target=target, phase=phase: module_text(self._module(target, phase))
        return makers

    def text(self, stage: str) -> str:
        """The text of a stage: a phase (`fusion`, `lowering cuda`), `python cpu`, `python cuda` or `manifest`."""
        if stage not in self._makers:
            raise InvalidInputError(f"there is no stage {stage!r}: expected one of {', '.join(self._makers)}")
        if stage not in self._texts:
            self._texts[stage] = self._makers[stage]()
        return self._texts[stage]

    def _module(self, target: str, phase: str) -> ModuleOp:
        from mlirt.frontend.onnx.importer import import_model

        ctx = new_context()
        module = import_model(runpy.run_path(str(self._example))["small_network"](), ctx)
        run_phases(module, ctx, None, phase, PipelineOptions(target))
        return module


def manifest_text(manifest: Mapping[str, object]) -> str:
    """A manifest as JSON with one record a line."""
    return "{\n" + ",\n".join(_fields(manifest)) + "\n}\n"


def _fields(manifest: Mapping[str, object]) -> Iterator[str]:
    for key, value in manifest.items():
        if isinstance(value, list) and value:
            records = ",\n".join(f"    {json.dumps(record)}" for record in cast("list[object]", value))
            yield f'  "{key}": [\n{records}\n  ]'
        else:
            yield f'  "{key}": {json.dumps(value)}'
