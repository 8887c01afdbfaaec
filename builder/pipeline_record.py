"""What a plan says of the pipeline that built it, where that was not the compiler's own, and how it is had again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mlirt.dialects.pass_plugins import active
from mlirt.errors import InvalidInputError
from mlirt.passes.pipeline import PipelineOptions
from mlirt.passes.pipeline_edits import Pipeline

# Its place in `info` of the manifest.
PIPELINE = "pipeline"


def pipeline_record(pipeline: Pipeline, options: PipelineOptions) -> dict[str, object]:
    """The changes, the whole text with them, and the plugins by file name and digest."""
    phases = pipeline.phases(options.target, options.precision, options.machine)
    return {
        "edits": [str(edit) for edit in pipeline.edits],
        "text": [f"{phase.name}: {','.join(specs)}" for phase, specs in phases],
        "plugins": _digests(),
    }


def _digests() -> dict[str, str]:
    """The plugins that count now by file name; those of one name in several folders have their digests in a row."""
    found: dict[str, list[str]] = {}
    for plugin in active():
        found.setdefault(plugin.path.name, []).append(plugin.digest)
    return {name: ",".join(digests) for name, digests in found.items()}


def recorded_pipeline(info: Mapping[str, Any]) -> Pipeline:
    """The pipeline that a plan was built with.

    Raises `InvalidInputError` where the plugins that count now are not those of the plan.
    """
    record = cast("Mapping[str, Any]", info.get(PIPELINE, {}))
    needed = cast("Mapping[str, str]", record.get("plugins", {}))
    here = _digests()
    for name, digest in needed.items():
        if here.get(name) != digest:
            why = "that file has changed since" if name in here else f"give it as plugins=[{name!r}]"
            raise InvalidInputError(f"the engine was built with the pass plugin {name}: {why}")
    return Pipeline.parse(list(record.get("edits", [])))
