"""What a plan says of itself: its names, inputs, outputs, states, profiles and layers; no device is asked."""

from collections.abc import Mapping
from typing import cast

from mlirt.runtime.debug_tensors import debug_names
from mlirt.runtime.engine_interface import TensorDescription, description_of
from mlirt.runtime.known_profiles import known_ranges
from mlirt.runtime.plan_file import Plan
from mlirt.runtime.profile_ranges import ShapeRange


class DescribedPlan:
    """The description of a plan, as an engine gives it."""

    plan: Plan

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, tensors)) for tensors in (self.inputs, self.outputs))
        return f"<Engine {self.name!r} for {self.target}: {inputs} -> {outputs}>"

    @property
    def name(self) -> str:
        """The network's name."""
        return self.plan.manifest.name

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines that the plan has code for, where it was built for several; the first is `machine`."""
        found = self.plan.variants
        return () if found is None else (found.chosen, *(name for name in found.names if name != found.chosen))

    @property
    def target(self) -> str:
        """ "cpu" or "cuda"."""
        return self.plan.manifest.target.kind

    @property
    def inputs(self) -> tuple[TensorDescription, ...]:
        """The inputs in the order of the network."""
        manifest = self.plan.manifest
        kept = {pair.input for pair in manifest.state}
        return tuple(description_of(one) for number, one in enumerate(manifest.given_inputs) if number not in kept)

    @property
    def outputs(self) -> tuple[TensorDescription, ...]:
        """The outputs in the order of the network."""
        kept = {pair.output for pair in self.plan.manifest.state}
        return tuple(description_of(one) for number, one in enumerate(self.plan.manifest.outputs) if number not in kept)

    @property
    def states(self) -> tuple[tuple[TensorDescription, str], ...]:
        """The inputs that the engine keeps from run to run, each with the output of the run before that it is."""
        manifest = self.plan.manifest
        return tuple(
            (description_of(manifest.inputs[pair.input]), manifest.outputs[pair.output].name) for pair in manifest.state
        )

    @property
    def debug_tensors(self) -> tuple[str, ...]:
        """The inner tensors that a second engine computes beside this one (`compile(debug=..)`)."""
        return debug_names(self.plan)

    @property
    def profiles(self) -> tuple[Mapping[str, ShapeRange], ...]:
        """The optimization profiles by input: a run's shapes are within one of them, where there are any."""
        return known_ranges(self.plan.manifest)

    @property
    def layers(self) -> tuple[Mapping[str, object], ...]:
        """What the builder made of the network, one record per layer (name, family, inputs, outputs, kernel)."""
        return self.plan.manifest.layers

    @property
    def pipeline(self) -> str:
        """The passes of each phase, a line each, where the engine was built with others than usual; else nothing."""
        record = self.plan.manifest.info.get("pipeline")
        lines = cast("Mapping[str, object]", record).get("text") if isinstance(record, Mapping) else None
        return "\n".join(map(str, cast("list[object]", lines))) if isinstance(lines, list) else ""
