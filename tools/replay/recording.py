"""Follows a network through the compiler and keeps each text on its way: IR, estimates of tactics, kernels."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.tactics.sites import find_sites
from mlirt.dialects.context import RtContext
from mlirt.dialects.locations import name_of, names
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.target import Target, TargetKind
from mlirt.dialects.xdsl_compat import module_text
from mlirt.errors import InvalidInputError, MlirtError
from mlirt.passes.phases import PRECISIONS, TARGETS
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.passes.pipeline_edits import Pipeline
from mlirt.tools.replay.corpus import CorpusNetwork, networks_of
from mlirt.tools.replay.record_file import Record

_WEIGHTS = re.compile(r'(#trt\.weights<"(?:[^"\\]|\\.)*"), "[0-9a-f]*">')


def check_builds(builds: list[str]) -> None:
    """Raise `InvalidInputError` for what is no `TARGET` or `TARGET:PRECISION`."""
    for build in builds:
        target, colon, precision = build.partition(":")
        if target not in TARGETS or (colon and precision not in PRECISIONS):
            raise InvalidInputError(
                f"--target={build}: expected {' or '.join(TARGETS)}, alone or with one of "
                f"{', '.join(f':{one}' for one in PRECISIONS)}"
            )


def record_networks(record: Record, folder: Path) -> Record:
    """A record of the same models, builds and changes, made now; their paths are from a folder.

    Plugins have been loaded. Raises `InvalidInputError` where a network cannot be built, with its name.
    """
    pipeline = Pipeline.parse(record.edits)
    made = Record(record.models, record.builds, record.plugins, record.edits)
    for network in networks_of(record.models, folder):
        for build in record.builds:
            name = f"{network.name} for {build}"
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # those of weights and accuracy are for who builds the network
                    made.add(name, dict(_labelled(_texts(network, build, pipeline))))
            except MlirtError as error:
                raise InvalidInputError(f"{name}: {error}") from error
    return made


def _labelled(texts: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each text with a label of its own: the second one of a label is number 2."""
    seen = Counter[str]()
    for label, text in texts:
        seen[label] += 1
        yield label if seen[label] == 1 else f"{label} #{seen[label]}", text


def _texts(network: CorpusNetwork, build: str, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    """Each text of a network's way, with its label.

    The machine is always the same one (that of rt-opt), so that a record is the same wherever it is made.
    """
    target, _, precision = build.partition(":")
    options = PipelineOptions(target, precision or "fp32", pipeline=pipeline)
    started = network.start()
    module, ctx = started.module, started.ctx
    for phase, _ in pipeline.between(started.first, None, target, options.precision):
        run_phases(module, ctx, phase.name, phase.name, options)
        yield f"phase {phase.name}", _without_digests(module_text(module, debuginfo=True))
        if phase.name == "layout":
            yield from _estimates(module, ctx, options)
    yield from _kernels(module, target)


def _without_digests(text: str) -> str:
    """IR without the digests of weights: which numbers they are, down to the last bit, follows from the machine that
    folded them, and decides about no kernel.
    """
    return _WEIGHTS.sub(r"\1>", text)


def _estimates(module: ModuleOp, ctx: RtContext, options: PipelineOptions) -> Iterator[tuple[str, str]]:
    """For each layer the ways to compute it, the one to try first in front, with their estimated microseconds."""
    kinds: dict[str, TargetKind] = {"cpu": "cpu", "cuda": "cuda"}
    machine = options.machine
    target = Target(kinds[options.target], machine.vector_bits, frozenset(), machine.arch, machine.threads)
    for site in find_sites(module, ctx, target):
        lines = [
            f"{one.name} {'' if one.cost is None else format(one.cost, '.4g')}".rstrip() for one in site.candidates
        ]
        yield f"estimates of {name_of(site.ops[0])}", "".join(f"{line}\n" for line in lines)


def _kernels(module: ModuleOp, target: str) -> Iterator[tuple[str, str]]:
    """The source of the kernel of each launch, by the layers that it is launched for."""
    made = import_module(f"mlirt.codegen.numba_{target}" + (".kernel_source" if target == "cuda" else ""))
    sources: dict[str, object] = made.sources_of(module)
    for op in module.walk():
        if isinstance(op, LaunchOp):
            source = sources.get(op.kernel.string_value())
            if source is not None:  # a library's or a plugin's kernel has no text here
                text = source if isinstance(source, str) else str(getattr(source, "text"))
                yield f"kernel of {' + '.join(names(op.location)) or 'a layer without a name'}", text
