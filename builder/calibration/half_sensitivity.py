"""What each layer alone costs in half precision, found by running the network in NumPy: no GPU is needed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.separate_context import apart
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.layer_precisions import LayerPrecisions, set_layer_precisions
from mlirt.dialects.locations import names
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_of, is_float
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.pipeline import PipelineOptions, run_passes, run_phases

if TYPE_CHECKING:
    from mlirt.builder.calibration.collection import Progress
    from mlirt.builder.calibration.histogram import Array

Outputs: TypeAlias = "Sequence[Mapping[str, Array]]"
Metric: TypeAlias = Callable[[Outputs, Outputs], float]
"""How good outputs are, the exact ones beside them; 1 is perfect."""
FORMATS = {"fp16": "f16", "bf16": "bf16"}


@dataclass
class HalfTrial:
    """Runs a network on samples with some of its layers in half precision, as a build converts them.

    `layers`: the names of what computes with floating-point numbers and is not asked for float32 by the network itself.
    A layer that a build keeps in float32 by what it computes loses nothing here either.
    """

    module: ModuleOp
    ctx: RtContext
    precision: str
    feeds: Sequence[Mapping[str, Array]]
    score: Metric
    layers: list[str] = field(default_factory=list[str])
    exact: Outputs = ()

    @classmethod
    def of(
        cls, module: ModuleOp, ctx: RtContext, precision: str, feeds: Sequence[Mapping[str, Array]], score: Metric
    ) -> HalfTrial:
        """The trial of a network just imported, which is left as it is."""
        cleaned, ctx = module.clone(), apart(ctx)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the build says it
            run_phases(cleaned, ctx, last="quantization", options=PipelineOptions("cuda", "fp16"))
        trial = cls(cleaned, ctx, precision, feeds, score, _layers(cleaned))
        trial.exact = trial.outputs(())
        return trial

    def outputs(self, in_half: Collection[str]) -> Outputs:
        """Those of each sample with these layers in half precision."""
        trial = self.module.clone()
        set_layer_precisions(trial, {name: "fp32" for name in self.layers if name not in in_half})
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # numbers beyond the range are what is measured
            run_passes(trial, self.ctx, f"convert-precision{{to={FORMATS[self.precision]}}}")
            return [interpret(trial, self.ctx, dict(one)) for one in self.feeds]

    def accuracy(self, in_half: Collection[str]) -> float:
        """1 where nothing is lost; minus infinity where outputs are no numbers."""
        with np.errstate(all="ignore"):
            found = self.score(self.outputs(in_half), self.exact)
        return -math.inf if math.isnan(found) else found

    def losses(self, progress: Progress | None) -> dict[str, float]:
        """What each layer loses alone."""
        found: dict[str, float] = {}
        for layer in self.layers:
            found[layer] = 1 - self.accuracy((layer,))
            if progress is not None:
                progress("ranking layers", len(found), len(self.layers))
        return found


def _layers(module: ModuleOp) -> list[str]:
    asked, found = LayerPrecisions(module), dict[str, None]()
    for op in module.walk():
        is_layer = isinstance(op, TensorOp) and not isinstance(op, ConstantOp)
        if is_layer and asked.of(op) is None and any(is_float(element_of(one.type)) for one in op.results):
            found |= dict.fromkeys(names(op.location))
    return list(found)
