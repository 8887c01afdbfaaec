"""The network that a build begins with: a model is read, and its configuration written on it, before any pass runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import UnitAttr

from mlirt.builder.inner_outputs import InnerOutputs
from mlirt.builder.inner_tensors import give_outputs
from mlirt.builder.ir_input import read_ir, refuse_other_target
from mlirt.builder.kept_state import KeptState, chosen_state
from mlirt.builder.model_kinds import is_ir
from mlirt.builder.model_network import asked_precisions, imported
from mlirt.builder.profiles import Profile, read_profiles, widest
from mlirt.builder.usual_sizes import name_usual_sizes
from mlirt.counted_warnings import warn
from mlirt.dialects.layer_precisions import OBEYED, set_layer_precisions
from mlirt.errors import InvalidInputError
from mlirt.passes.phases import phase_names
from mlirt.passes.pipeline_edits import Pipeline

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.builder.config.build_config import BuildConfig
    from mlirt.builder.model_kinds import SourceNetwork
    from mlirt.builder.model_network import ModelSource
    from mlirt.dialects.context import RtContext


@dataclass(frozen=True)
class ModelNetwork:
    """A network, and what the model says of its build: IR tells its first phase, and may be for one target alone."""

    module: ModuleOp
    target: str
    first: str | None
    pipeline: Pipeline
    profiles: Sequence[Mapping[str, Profile]]
    state: Sequence[KeptState]


def read_model_network(
    model: ModelSource | SourceNetwork, ctx: RtContext, config: BuildConfig, target: str, inner: InnerOutputs
) -> ModelNetwork:
    """The network for `target`, with `inner` tensors among its outputs."""
    profiles = read_profiles(config.profiles)
    covered = widest(profiles)
    first: str | None = None
    if is_ir(model):
        _refuse_for_ir(config)
        module, first, text = read_ir(Path(cast("str", model)), ctx, config.weights, config.from_phase)
        target = refuse_other_target(text, first, target, config.target)
        _check_later_phase(module, config, target, first)
        pipeline = _checked(config, target, first)
    else:
        if config.weights is not None or config.from_phase is not None:
            raise InvalidInputError("weights and from_phase are for IR, a file whose name ends in .mlir")
        pipeline = _checked(config, target, None)
        module = imported(
            model, ctx, covered, config.input_shapes, config.constants, inner, keeps_weights=config.refittable
        )
    give_outputs(module, inner)
    set_layer_precisions(module, asked_precisions(module, config.layer_precisions))
    if config.obey_layer_precisions:
        module.attributes[OBEYED] = UnitAttr()
    _quantize(module, ctx, config, target, first, covered)
    state = chosen_state(module, config.state, config.initial_state)
    name_usual_sizes(module, covered)
    if config.input_formats or config.output_formats or config.direct_io:
        from mlirt.builder.io_formats import give_types

        give_types(module, ctx, target, config.input_formats, config.output_formats, direct=config.direct_io)
    return ModelNetwork(module, target, first, pipeline, profiles, state)


def _refuse_for_ir(config: BuildConfig) -> None:
    for name in ("input_shapes", "constants"):
        if getattr(config, name):
            raise InvalidInputError(f"{name} is for ONNX models; the inputs of IR are those that it says")


def _check_later_phase(module: ModuleOp, config: BuildConfig, target: str, first: str) -> None:
    """Refuse what is said of layers, and warn of precisions that are chosen by earlier phases than the first one."""
    names = phase_names()
    if names.index(first) <= names.index("fusion"):
        return
    for name in ("input_formats", "output_formats", "direct_io", "layer_precisions"):
        if getattr(config, name):
            raise InvalidInputError(f"{name} is for networks before the phase fusion, and this IR starts at {first}")
    precisions = config.precision.split("+")
    types = [value.type for op in module.walk() for value in (*op.operands, *op.results)]
    held = {str(getattr(type_, "element_type", "")) for type_ in types}
    if target == "cuda" and "fp16" in precisions and "f16" not in held:
        warn(f"fp16 changes nothing: half precision is chosen in the phase fusion, and this IR starts at {first}")
    if "int8" in precisions and not held & {"i8", "ui8"}:
        warn(f"int8 changes nothing: it is chosen in the phase quantization, and this IR starts at {first}")


def _checked(config: BuildConfig, target: str, first: str | None) -> Pipeline:
    """The pipeline to run; raises `InvalidInputError` where it cannot be, before anything is read."""
    if config.pipeline is None or not config.pipeline.edits:
        return Pipeline()
    config.pipeline.check(target, config.precision, first)
    return config.pipeline


def _quantize(
    module: ModuleOp,
    ctx: RtContext,
    config: BuildConfig,
    target: str,
    first: str | None,
    covered: Mapping[str, Profile],
) -> None:
    """Let the network carry the ranges of its tensors where bytes stand for them, unless it has been quantised."""
    if "int8" not in config.precision:
        return
    if first not in (None, "import", "cleanup"):
        if config.calibration is not None or config.dynamic_ranges:
            raise InvalidInputError(
                f"calibration and ranges are for networks before the phase quantization, not {first}"
            )
        return
    from mlirt.builder.calibration.ranges_for_build import Int8Choice, prepare_int8

    choice = Int8Choice(config.calibration, config.dynamic_ranges)
    half = target == "cuda" and "fp16" in config.precision
    prepare_int8(module, ctx, target, choice, covered, config.progress, half=half)
