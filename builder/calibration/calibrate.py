"""`mlirt.calibrate`: sample data in, the scales of a network's tensors out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from mlirt.builder.calibration.batches import Batches, Data, batches_of
from mlirt.builder.calibration.calibration import Calibration, Samples, as_scale
from mlirt.builder.calibration.channel_collection import ChannelCollection
from mlirt.builder.calibration.collection import Collection, Progress
from mlirt.builder.calibration.histogram import Histogram
from mlirt.builder.calibration.method_choice import checked, chosen, warn_of_error
from mlirt.builder.calibration.methods import Method, method_of
from mlirt.builder.calibration.observed_network import cleaned
from mlirt.builder.calibration.pictures import PixelScaling
from mlirt.builder.config.build_config import network_settings
from mlirt.builder.input_descriptions import input_descriptions
from mlirt.builder.model_network import imported
from mlirt.builder.progress_bar import shown
from mlirt.dialects.context import RtContext
from mlirt.dialects.pass_plugins import using
from mlirt.errors import InvalidInputError, reports_shortage

if TYPE_CHECKING:
    from mlirt.builder.calibration.histogram import Array
    from mlirt.builder.config.build_config import BuildConfig
    from mlirt.builder.model_network import ModelSource
    from mlirt.frontend.onnx.graph_inputs import Shapes

_KEPT_ELEMENTS = 1 << 22  # of the batches that a report runs again


@reports_shortage("the calibration")
def calibrate(
    model: ModelSource,
    data: Data,
    method: str = "auto",
    *,
    percentile: float = 0.9999,
    batch_size: int = 1,
    limit: int | None = None,
    target: str = "auto",
    before_fusion: bool | None = None,
    measure: bool = True,
    channels: bool = True,
    input_shapes: Shapes | None = None,
    progress: Progress | bool = True,
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    scale: float = 1 / 255,
    config: BuildConfig | None = None,
) -> Calibration:
    """Find how far the numbers of each tensor reach, for `mlirt.compile(model, precision="int8", calibration=...)`.

    data: an array, or a dictionary of them, with the samples along the first axis; an iterable of batches or samples;
        a `.npy` or `.npz` file; or a folder of such files or of pictures.
    method: "entropy", "minmax", "percentile", "mse" or "legacy", which is the percentile after fusion; "auto": of the
        first four that which loses least on the first batches; the last two are tried where the others lose over 1 %.
    percentile: the part of the elements that "percentile" and "legacy" do not clip.
    batch_size: samples in a batch of a network whose first dimension is dynamic.
    limit: at most so many batches.
    target: where the network runs meanwhile, "cpu", "cuda" or "auto".
    before_fusion: count every tensor, so that the scales fit every target; False leaves out those that exist only
        inside of a fused layer. None: as TensorRT's calibrator of this algorithm does.
    measure: run some batches in int8, and warn where the outputs are more than 5 % off; False: "auto" is "entropy".
    channels: look at the channels of what products read too, so that each is rounded as finely as its numbers need, and
        the mean of what is computed stays. False: one scale for each tensor and no more, as TensorRT has it.
    input_shapes: other dimensions for inputs, as for `compile`.
    progress: called with a text, the batches done and all of them, 0 where nobody knows. True draws a bar on standard
        error where that is a terminal, False does not.
    mean, std, scale: pictures become (pixel * scale - mean) / std.
    config: its target, input_shapes and plugins count, where `target` and `input_shapes` do not say else.

    The result is the same to the bit for the same batches in the same order on the same machine; another order may
    give slightly other thresholds. Raises `InvalidInputError` for no data, for data that do not fit, and for NaN.
    """
    is_open = method == "auto"
    used = method_of("entropy" if is_open else method, percentile)
    fusion = used.before_fusion if before_fusion is None else before_fusion
    settings = network_settings(config, target, input_shapes)
    with using(settings.plugins), shown(progress) as report:
        ctx, place = RtContext(), settings.chosen_target()
        module = imported(model, ctx, None, settings.input_shapes, None)
        batches = batches_of(data, input_descriptions(module), batch_size, PixelScaling(mean, std, scale))
        collection = Collection(cleaned(module, ctx, place), ctx, place, fusion, report)
        if channels:
            collection.of_channels = ChannelCollection.of(collection.module)
        kept = collect(collection, batches, limit)
        found = calibration_of(used, collection, Samples(model, kept, settings.input_shapes, place))
        found.first_batch = kept[0]
        if measure:
            found = chosen(collection, found, kept) if is_open else checked(collection, found, method, kept)
            warn_of_error(collection, found, kept)
    return found


def collect(collection: Collection, batches: Batches, limit: int | None = None) -> list[dict[str, Array]]:
    """Count all batches; the first few, of which the sum of elements is limited, are returned."""
    kept: list[dict[str, Array]] = []
    room, done = _KEPT_ELEMENTS, 0
    total = batches.count if limit is None else min(limit, batches.count or limit)
    collection.expected = total or 0
    for feeds in islice(batches.feeds, limit):
        collection.add(feeds)
        done += 1
        room -= sum(array.size for array in feeds.values())
        if room > 0 or not kept:
            kept.append({name: array.copy() for name, array in feeds.items()})
        if collection.progress is not None:
            collection.progress("calibrating", done, total or 0)
    if not done:
        raise InvalidInputError(
            "Calibration failure: no batch of calibration data came, so that every distribution is all zero; "
            "give at least one batch"
        )
    collection.warn()
    return kept


def calibration_of(method: Method, collection: Collection, samples: Samples | None = None) -> Calibration:
    """The scales that a method finds in counted histograms."""
    found = {name: as_scale(method.threshold(one)) for name, one in _seen(collection).items()}
    known = collection.of_channels.statistics()
    return Calibration(method.algorithm, found, dict(collection.histograms), known, samples)


def _seen(collection: Collection) -> dict[str, Histogram]:
    return {name: histogram for name, histogram in collection.histograms.items() if histogram.elements}
