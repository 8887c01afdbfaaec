"""`mlirt.check_range`: which layers leave the range of half precision, found by running the network in float32."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue

from mlirt.builder.config.build_config import BuildConfig
from mlirt.builder.model_network import asked_precisions, imported
from mlirt.builder.number_range.half_values import HalfValue, own_halves, widened
from mlirt.builder.number_range.range_report import Departure, RangeIssue, RangeReport
from mlirt.builder.profiles import read_profiles, widest
from mlirt.builder.separate_context import apart
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import entry_function, input_names, interpret
from mlirt.dialects.layer_precisions import set_layer_precisions
from mlirt.dialects.pass_plugins import using
from mlirt.dialects.tensor_types import element_of
from mlirt.errors import AccuracyWarning, InvalidInputError, reports_shortage
from mlirt.passes.pipeline import PipelineOptions, run_passes, run_phases
from mlirt.runtime.random_inputs import random_input

if TYPE_CHECKING:
    from mlirt.builder.model_network import ModelSource
    from mlirt.builder.profiles import Profiles
    from mlirt.frontend.onnx.graph_inputs import Shapes

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
    Feeds: TypeAlias = Mapping[str, Array]

_FORMATS = {"fp16": "f16", "bf16": "bf16"}


@reports_shortage("the check of the range")
def check_range(
    model: ModelSource,
    feeds: Feeds | Sequence[Feeds] = (),
    precision: str = "fp16",
    profiles: Profiles | None = None,
    *,
    layer_precisions: Mapping[str, str] | None = None,
    input_shapes: Shapes | None = None,
    constants: Mapping[str, Array] | None = None,
    config: BuildConfig | None = None,
) -> RangeReport:
    """Find the layers whose results half precision cannot hold: they overflow, or are so small that they vanish.

    The network runs in float32 (in NumPy; it needs no GPU), as it is before layers are fused. A result counts that a
    build with `precision` would store in half precision: it overflows if any finite number becomes infinite, and
    underflows if rounding takes more than 1 % of its norm. What a fused layer keeps in float32 is counted as well.

    model: as for `compile`.
    feeds: arrays by input for one run, or several such mappings. Inputs without an array get random numbers: floats in
        [-1, 1], whole numbers 0 or 1; their dynamic dimensions are 1.
    precision: "fp16" or "bf16"; "int8+fp16" is checked as if no layer computed in int8.
    profiles, layer_precisions, input_shapes, constants: settings of `config`, as for `compile`.

    Raises `InvalidInputError` for feeds that do not fit the inputs, and `UnsupportedError` for a network with a plugin
    that takes half precision.
    """
    half = [part for part in precision.split("+") if part in _FORMATS]
    if not half:
        raise InvalidInputError(f"precision {precision!r} has no half precision to check; expected fp16 or bf16")
    given = {
        "profiles": profiles,
        "layer_precisions": layer_precisions,
        "input_shapes": input_shapes,
        "constants": constants,
    }
    settings = BuildConfig.of(config, {name: value for name, value in given.items() if value is not None})
    with using(settings.plugins):
        ctx = RtContext()
        covered = widest(read_profiles(settings.profiles))
        module = imported(model, ctx, covered, settings.input_shapes, settings.constants)
        set_layer_precisions(module, asked_precisions(module, settings.layer_precisions))
        return ranges_of(module, ctx, [feeds] if isinstance(feeds, Mapping) else list(feeds), half[0])


def ranges_of(module: ModuleOp, ctx: RtContext, feeds: Sequence[Feeds], precision: str = "fp16") -> RangeReport:
    """The same for a network just imported, which is left as it is; one run with random numbers without feeds."""
    copy, own = module.clone(), own_halves(module)
    ctx = apart(ctx)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the build says it
        run_phases(copy, ctx, last="quantization", options=PipelineOptions("cuda", "fp16"))
        run_passes(copy, ctx, f"convert-precision{{to={_FORMATS[precision]}}}")
    values = widened(copy, ctx, own)
    worst: dict[SSAValue, Departure] = {}
    for one in feeds or [{}]:
        _look(copy, ctx, one, values, worst)
    issues = [RangeIssue.found(values[value], what) for value, what in worst.items()]
    return RangeReport([one for one in issues if one is not None], len(values))


def _look(
    module: ModuleOp,
    ctx: RtContext,
    feeds: Feeds,
    values: Mapping[SSAValue, HalfValue],
    worst: dict[SSAValue, Departure],
) -> None:
    """Run once; the worst that was seen of each tensor is kept."""

    def observe(op: Operation, results: Sequence[Array]) -> None:
        for value, array in zip(op.results, results, strict=True):
            if value in values:
                found = Departure.of(array, values[value].dtype, values[value].masks)
                worst[value] = max(worst.get(value, found), found, key=lambda one: (one.beyond, one.lost))

    interpret(module, ctx, _fitted(module, feeds), observe=observe)


def _fitted(module: ModuleOp, feeds: Feeds) -> dict[str, Array]:
    """The feeds as a widened network takes them, with random numbers for inputs that have none."""
    from mlirt.builder.input_descriptions import input_descriptions

    function = entry_function(module)
    unknown = feeds.keys() - set(input_names(function))
    if unknown:
        raise InvalidInputError(f"the network has no input {min(unknown)!r}; its inputs are {input_names(function)}")
    found: dict[str, Array] = {}
    for seed, (tensor, argument) in enumerate(zip(input_descriptions(module), function.body.block.args, strict=True)):
        shape = [dim if isinstance(dim, int) else 1 for dim in tensor.shape]
        array = np.asarray(feeds[tensor.name]) if tensor.name in feeds else random_input(tensor.dtype, shape, seed)
        is_float = element_of(argument.type) == f32 and array.dtype.kind in "fV"
        found[tensor.name] = array.astype(np.float32) if is_float else array
    return found


def warn_of_range(report: RangeReport, stacklevel: int = 2) -> None:
    """Warn where anything leaves the range."""
    if report:
        warnings.warn(f"FP16: {report.summary()}", AccuracyWarning, stacklevel=stacklevel + 1)
