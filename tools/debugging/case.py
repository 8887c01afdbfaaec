"""A network and its inputs, and what it computes after some of the passes, interpreted or compiled."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.build import BuildOptions, build
from mlirt.builder.ir_input import read_ir
from mlirt.builder.model_kinds import is_ir
from mlirt.builder.reference_engine import ReferenceEngine
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import entry_function, input_names
from mlirt.errors import InvalidInputError
from mlirt.passes.phases import phase_names
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.passes.pipeline_edits import Pipeline
from mlirt.passes.pipeline_text import parse_pipeline
from mlirt.tools.debugging.apart import apart
from mlirt.tools.input_files import InputFile, load_network
from mlirt.tools.run_inputs import InputSpec, arrays_for

if TYPE_CHECKING:
    import numpy as np

    from mlirt.runtime.engine import Engine

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

T = TypeVar("T")
LAST = "layout"
"""The last phase whose IR is interpreted on NumPy, for every target."""


@dataclass
class Case:
    """What the flags of rt-debug name."""

    module: ModuleOp
    ctx: RtContext
    feeds: Mapping[str, Array]
    target: str
    precision: str
    pipeline: Pipeline
    first: str | None
    in_children: bool = False
    """Whether candidates run in processes of their own, as they may crash."""

    @classmethod
    def of(cls, arguments: Namespace, used: set[str] | None = None) -> Case:
        """Read the model and make its inputs: random ones for those that no flag gives.

        With `used` shapes may be those of inputs of other models; the names of this one's inputs are added to it.
        """
        ctx, first = RtContext(), None
        if is_ir(arguments.model):
            module, first, _ = read_ir(Path(arguments.model), ctx, arguments.weights)
        else:
            module = load_network(ctx, InputFile(arguments.model))
        if first is not None and _is_later(first, LAST):
            raise InvalidInputError(f"this IR starts at {first}: expected that of a phase up to fusion")
        function = entry_function(module)
        specs = [InputSpec.parse(text) for text in arguments.input_arrays]
        named = {spec.name for spec in specs}
        if "" not in named:
            names = [name for name in input_names(function) if name not in named]
            specs += [InputSpec(name, f"random:{seed}") for seed, name in enumerate(names)]
        pipeline = Pipeline.parse(arguments.pipeline_edit)
        pipeline.check(arguments.target, arguments.precision, first)
        sizes = arguments.shapes
        if used is not None:
            used.update(input_names(function))
            sizes = {name: shape for name, shape in sizes.items() if name in input_names(function)}
        feeds = arrays_for(function, specs, sizes)
        in_children = getattr(arguments, "in_children", False)
        return cls(module, ctx, feeds, arguments.target, arguments.precision, pipeline, first, in_children)

    def apart(self, run: Callable[[], T]) -> T:
        """What a candidate gives; raises `CrashedError` where candidates run in children and this one crashes."""
        return apart(run) if self.in_children else run()

    def phases(self) -> list[tuple[str, str]]:
        """Each pass up to the layouts, with its phase, in order."""
        phases = self.pipeline.between(self.first, LAST, self.target, self.precision)
        return [
            (phase.name, str(one.pipeline_pass_spec()))
            for phase, specs in phases
            for one in parse_pipeline(",".join(specs))
        ]

    def after(self, count: int | None, last: str = LAST) -> ModuleOp:
        """The IR after so many passes, or after a phase."""
        module = self.module.clone()
        if self.first is not None and _is_later(self.first, last):
            return module
        options = PipelineOptions(self.target, self.precision, pipeline=self.pipeline, pass_limit=count)
        run_phases(module, self.ctx, self.first, last, options)
        return module

    def interpreted(self, module: ModuleOp) -> dict[str, Array]:
        """What IR computes on the reference interpreter."""
        return ReferenceEngine(module, self.ctx).run(self.feeds)

    def compiled(self, module: ModuleOp, first: str | None) -> dict[str, Array]:
        """What IR computes on the target, from a phase on."""
        return dict(self.engine(module, first).run(self.feeds))

    def engine(self, module: ModuleOp, first: str | None) -> Engine:
        """IR, compiled for the target from a phase on."""
        options = BuildOptions(self.precision, first=first, pipeline=self.pipeline, temporary=True)
        return build(module.clone(), self.ctx, self.target, options)


def _is_later(phase: str, other: str) -> bool:
    return phase_names().index(phase) > phase_names().index(other)
