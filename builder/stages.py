"""Engines for the stages of a network, each for a device of its own (pipeline parallelism)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlirt.builder.compile import compile

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.builder.model_network import ModelSource
    from mlirt.builder.profiles import Profiles
    from mlirt.dialects.context import RtContext
    from mlirt.frontend.onnx.model_reader import Model
    from mlirt.runtime.engine_interface import EngineLike


def compile_stages(
    model: ModelSource,
    stages: int,
    target: str | None = None,
    *,
    state: Mapping[str, str] | None = None,
    **settings: Any,
) -> list[EngineLike]:
    """Build one engine for each of `stages` parts of an ONNX model, in the order in which they run.

    The parts have weights of about one size each, so that a network that does not fit one GPU fits several.
    `mlirt.serve.pipeline.Pipeline` runs them, each on a GPU of its own, and passes tensors on through NCCL.

    state: inputs with the outputs that they are in the next run, such as a decoder's caches; both come to one stage.
    settings: as for `mlirt.compile`. Raises `InvalidInputError` for more stages than nodes, `UnsupportedError` where
    the rank of a tensor between two stages is not known, and what `mlirt.compile` raises.
    """
    from mlirt.frontend.onnx.stages import split_model

    shapes, profiles = settings.pop("input_shapes", {}), settings.pop("profiles", None)
    engines: list[EngineLike] = []
    for model_of_stage in split_model(model, stages, state):
        network = _Stage(model_of_stage, shapes)
        engines.append(compile(network, target, profiles=_of_inputs(profiles, network.inputs), **settings))
    return engines


@dataclass(frozen=True)
class _Stage:
    """A network that knows how it is read."""

    model: Model
    shapes: Mapping[str, Sequence[int | str]]

    @property
    def name(self) -> str:
        return self.model.proto.graph.name

    @property
    def inputs(self) -> set[str]:
        return {one.name for one in self.model.proto.graph.input}

    def import_into(self, ctx: RtContext, *, keeps_weights: bool) -> ModuleOp:
        from mlirt.frontend.onnx.importer import import_model

        shapes = {name: shape for name, shape in self.shapes.items() if name in self.inputs}
        return import_model(self.model, ctx, shapes, keeps_weights=keeps_weights)


def _of_inputs(profiles: Profiles | None, names: set[str]) -> Profiles | None:
    """What profiles say of a stage's own inputs; of tensors between stages they say nothing."""
    if profiles is None:
        return None
    given = [profiles] if isinstance(profiles, Mapping) else profiles
    return [{name: shapes for name, shapes in one.items() if name in names} for one in given]
