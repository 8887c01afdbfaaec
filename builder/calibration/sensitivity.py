"""`mlirt.sensitivity`: what each layer alone costs in int8 or half precision, and which to keep in float for a wanted
accuracy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from mlirt.builder.build import BuildOptions, build
from mlirt.builder.calibration.batches import Data, batches_of
from mlirt.builder.calibration.comparison import relative_error
from mlirt.builder.calibration.half_sensitivity import FORMATS, HalfTrial, Metric, Outputs
from mlirt.builder.calibration.observed_network import cleaned_with_ranges
from mlirt.builder.calibration.ranges_for_build import Int8Choice, prepare_int8
from mlirt.builder.calibration.switched_network import switched
from mlirt.builder.config.build_config import network_settings
from mlirt.builder.input_descriptions import input_descriptions
from mlirt.builder.model_network import imported
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import entry_function, input_names
from mlirt.dialects.pass_plugins import using
from mlirt.dialects.tensor_types import rank
from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.builder.calibration.collection import Progress
    from mlirt.builder.calibration.histogram import Array
    from mlirt.builder.calibration.ranges_for_build import CalibrationLike
    from mlirt.builder.config.build_config import BuildConfig
    from mlirt.builder.model_network import ModelSource
    from mlirt.frontend.onnx.graph_inputs import Shapes
    from mlirt.runtime.engine import Engine


def closeness(found: Outputs, exact: Outputs) -> float:
    """1 less the root mean squared difference of the outputs over their root mean square."""
    return 1 - relative_error(found, exact)


def same_answers(found: Outputs, exact: Outputs) -> float:
    """The part of the samples whose largest output along the last axis stands in the same place."""
    pairs = [
        (ours[name].argmax(-1), theirs[name].argmax(-1))
        for ours, theirs in zip(found, exact, strict=True)
        for name in theirs
        if theirs[name].ndim
    ]
    return float(np.mean(np.concatenate([(a == b).reshape(-1) for a, b in pairs])))


METRICS: Mapping[str, Metric] = {"closeness": closeness, "same_answers": same_answers}


@dataclass
class Sensitivity:
    """`losses`: what each layer alone in int8 or half precision loses of the accuracy 1, the worst first.

    `accuracy` is that with all of them so, or, where a target was given, with those in `kept` in float.
    """

    losses: dict[str, float]
    accuracy: float
    kept: list[str] = field(default_factory=list[str])

    @property
    def layer_precisions(self) -> dict[str, str]:
        """For `mlirt.compile`: the layers that stay in float."""
        return dict.fromkeys((part for name in self.kept for part in name.split(" + ")), "fp32")

    def lines(self) -> list[str]:
        """The ranking as text."""
        width = max(map(len, self.losses), default=0)
        marks = {name: "  stays in float" for name in self.kept}
        listed = [f"{name:{width}}  {loss:9.3e}{marks.get(name, '')}" for name, loss in self.losses.items()]
        return [f"{'layer':{width}}  loss alone", *listed, f"accuracy: {self.accuracy:.4%}"]


def sensitivity(
    model: ModelSource,
    calibration: CalibrationLike | None,
    data: Data,
    *,
    precision: str = "int8",
    accuracy_target: float | None = None,
    metric: str | Metric = "closeness",
    limit: int = 4,
    batch_size: int = 1,
    target: str = "auto",
    input_shapes: Shapes | None = None,
    progress: Progress | None = None,
    config: BuildConfig | None = None,
) -> Sensitivity:
    """Rank a network's layers by what they lose in int8, and keep the worst in float until a target is met.

    precision: "int8", or "fp16" or "bf16": then the network runs in NumPy as a GPU would round, on any machine.
    calibration: as for `compile`; None for half precision. data: as for `calibrate`; `limit` batches of it are run.
    accuracy_target: between 0 and 1; None only ranks.
    metric: "closeness", "same_answers", or a function of the outputs and the exact ones, for each batch by name.
    config: its target, input_shapes and plugins count, where `target` and `input_shapes` do not say else.
    """
    score = METRICS.get(metric) if isinstance(metric, str) else metric
    if score is None:
        raise InvalidInputError(f"metric {metric!r} is not known; expected one of {', '.join(METRICS)}, or a function")
    if precision != "int8" and precision not in FORMATS:
        raise InvalidInputError(f"precision {precision!r}: expected int8, {' or '.join(FORMATS)}")
    if precision == "int8" and calibration is None:
        raise InvalidInputError("int8 needs a calibration; give precision='fp16' to rank layers in half precision")
    settings = network_settings(config, target, input_shapes)
    with using(settings.plugins):
        ctx, place = RtContext(), settings.chosen_target()
        module = imported(model, ctx, None, settings.input_shapes, None)
        feeds = list(islice(batches_of(data, input_descriptions(module), batch_size).feeds, limit))
        if precision in FORMATS or calibration is None:
            trial = HalfTrial.of(module, ctx, precision, feeds, score)
        else:
            prepare_int8(module, ctx, place, Int8Choice(calibration), {}, progress)
            trial = _Trial.of(cleaned_with_ranges(module, ctx, place), ctx, place, feeds, score, progress)
        losses = trial.losses(progress)
        ranked = dict(sorted(losses.items(), key=lambda item: -item[1]))
        kept, accuracy = _search(trial, list(ranked), accuracy_target)
        return Sensitivity(ranked, accuracy, kept)


def _search(trial: HalfTrial | _Trial, ranked: Sequence[str], wanted: float | None) -> tuple[list[str], float]:
    """The first few of the ranked layers in float, as many as the wanted accuracy takes, and the accuracy."""
    for count in range(len(ranked) + 1):
        accuracy = trial.accuracy(set(ranked[count:]))
        if wanted is None or accuracy >= wanted:
            return list(ranked[:count]), accuracy
    return list(ranked), 1.0


def losses_of_layers(
    module: ModuleOp, ctx: RtContext, target: str, feeds: Sequence[Mapping[str, Array]], progress: Progress | None
) -> dict[str, float]:
    """What each layer of a cleaned network with ranges loses alone, the worst first."""
    losses = _Trial.of(module, ctx, target, feeds, closeness, progress).losses(progress)
    return dict(sorted(losses.items(), key=lambda item: -item[1]))


@dataclass
class _Trial:
    """Runs the switched network on the samples with some of its layers in int8."""

    engine: Engine
    switches: Mapping[str, str]
    ranks: Mapping[str, int]
    feeds: Sequence[Mapping[str, Array]]
    score: Metric
    exact: Outputs = ()

    @classmethod
    def of(
        cls,
        module: ModuleOp,
        ctx: RtContext,
        target: str,
        feeds: Sequence[Mapping[str, Array]],
        score: Metric,
        progress: Progress | None,
    ) -> _Trial:
        network, switches = switched(module, ctx)
        function = entry_function(network)
        named = zip(input_names(function), function.body.block.args, strict=True)
        ranks = {name: rank(argument.type) for name, argument in named}
        options = BuildOptions("int8", progress, name="sensitivity", first="quantization", temporary=True)
        trial = cls(build(network, ctx, target, options), switches, ranks, feeds, score)
        trial.exact = trial.outputs(())
        return trial

    def outputs(self, in_int8: Collection[str]) -> Outputs:
        flags = {switch: np.full([1] * self.ranks[switch], layer in in_int8) for layer, switch in self.switches.items()}
        return [self.engine.run({**feeds, **flags}) for feeds in self.feeds]

    def accuracy(self, in_int8: Collection[str]) -> float:
        return self.score(self.outputs(in_int8), self.exact)

    def losses(self, progress: Progress | None) -> dict[str, float]:
        """What each layer loses alone."""
        found: dict[str, float] = {}
        for layer in self.switches:
            found[layer] = 1 - self.accuracy((layer,))
            if progress is not None:
                progress("ranking layers", len(found), len(self.switches))
        return found
