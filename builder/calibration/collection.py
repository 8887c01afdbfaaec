"""Runs a network on sample data and counts the magnitudes of its tensors, one batch at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.build import BuildOptions, build
from mlirt.builder.calibration.channel_collection import ChannelCollection
from mlirt.builder.calibration.device_histograms import DeviceHistograms
from mlirt.builder.calibration.histogram import Array, Histogram
from mlirt.builder.calibration.observed_network import element_counts, observed_names, with_outputs
from mlirt.builder.host import cuda_target
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import entry_function, input_names, output_names
from mlirt.runtime.engine import Engine

Feeds = Mapping[str, Array]
Progress = Callable[[str, int, int], None]

LARGEST_BYTES = 1 << 30
"""What the observed tensors of one run may take; a network with more is run several times for each batch."""


@dataclass
class Collection:
    """The histograms of a cleaned network's tensors, by name; `add` counts a batch.

    Only one batch's tensors are in memory, and the histograms, whose size does not depend on the data.
    """

    module: ModuleOp
    ctx: RtContext
    target: str = "cpu"
    before_fusion: bool = True
    progress: Progress | None = None
    histograms: dict[str, Histogram] = field(default_factory=dict[str, Histogram])
    outputs: dict[str, Array] = field(default_factory=dict[str, Array])
    of_channels: ChannelCollection | None = None
    _groups: list[_Group] | None = None

    def __post_init__(self) -> None:
        wanted = observed_names(self.module, self.before_fusion)
        self.histograms = {name: Histogram(name) for name in wanted}

    @property
    def inputs(self) -> list[str]:
        return input_names(entry_function(self.module))

    def add(self, feeds: Feeds) -> None:
        """Run the network on a batch and count; raises `InvalidInputError` for NaN, naming the tensor."""
        if self._groups is None:
            self._groups = self._built(feeds)
        for name, array in feeds.items():
            if name in self.histograms:
                self.histograms[name].add(array)
        for group in self._groups:
            group.count(feeds, self.histograms)
        if self.of_channels is not None:
            self.of_channels.add(feeds)

    def outputs_of(self, feeds: Feeds) -> dict[str, Array]:
        """The network's own outputs in float32, for a batch like those that were added."""
        if self._groups is None:
            self._groups = self._built(feeds)
        found = self._groups[0].engine.run(feeds)
        return {name: found[name] for name in output_names(entry_function(self.module))}

    def warn(self) -> None:
        """Say which tensors were 0 in all samples (feature 9.22)."""
        for name, histogram in self.histograms.items():
            if histogram.elements and histogram.is_zero:
                warnings.warn(f"Tensor {name} is uniformly zero.", stacklevel=2)

    def _built(self, feeds: Feeds) -> list[_Group]:
        inputs = set(self.inputs)
        wanted = [name for name in self.histograms if name not in inputs]
        counts = element_counts(self.module, {name: array.shape for name, array in feeds.items()})
        return [self._group(names) for names in grouped(wanted, counts, LARGEST_BYTES // 4)]

    def _group(self, names: Sequence[str]) -> _Group:
        module, outputs = with_outputs(self.module, names)
        own = [cuda_target().arch]  # nobody takes this engine to another machine
        options = BuildOptions(progress=self.progress, name="calibration", first="quantization", architectures=own)
        return _Group(build(module, self.ctx, self.target, options), outputs)


@dataclass
class _Group:
    """An engine that gives some of the tensors; `outputs` says by which output each. A GPU counts them itself."""

    engine: Engine
    outputs: Mapping[str, str]
    _device: DeviceHistograms | None = None

    def count(self, feeds: Feeds, histograms: Mapping[str, Histogram]) -> None:
        """Run on a batch and add to the histograms."""
        places = self.engine.context.run_in_place(feeds)
        if places is None:
            arrays = self.engine.run(feeds)
            for name, output in self.outputs.items():
                histograms[name].add(arrays[output])
            return
        if self._device is None:
            self._device = DeviceHistograms.on_this_machine()
        self._device.add({name: places[output] for name, output in self.outputs.items()}, histograms)


def grouped(names: Iterable[str], counts: Mapping[str, int], most: int) -> list[list[str]]:
    """The names in order, in groups of at most `most` elements; a larger tensor is a group of its own."""
    groups: list[list[str]] = []
    room = 0
    for name in names:
        if not groups or counts[name] > room:
            groups.append([])
            room = most
        groups[-1].append(name)
        room -= counts[name]
    return groups
