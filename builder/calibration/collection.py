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
from mlirt.builder.calibration.observed_network import (
    element_counts,
    observed_names,
    rectified_names,
    with_outputs,
)
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import entry_function, input_names, interpret, output_names
from mlirt.dialects.trt.plugin import PluginOp
from mlirt.runtime.device import DeviceTensor
from mlirt.runtime.engine import Engine

Feeds = Mapping[str, Array]
Progress = Callable[[str, int, int], None]

INTERPRETED = 1 << 26
"""How many elements of tensors the interpreter computes before an engine is built, which takes longer than that."""

MAX_BYTES = 1 << 30
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
    expected: int = 0
    """How many batches are known to come."""
    of_channels: ChannelCollection = field(default_factory=lambda: ChannelCollection({}))
    _observed: tuple[ModuleOp, Mapping[str, str]] | None = None
    _interpreted: int = 0
    _groups: list[_Group] | None = None
    _device: DeviceHistograms | None = None

    def __post_init__(self) -> None:
        wanted = observed_names(self.module, self.before_fusion)
        self.histograms = {name: Histogram(name) for name in wanted}

    @property
    def inputs(self) -> list[str]:
        return input_names(entry_function(self.module))

    def add(self, feeds: Feeds) -> None:
        """Run the network on a batch and count; raises `InvalidInputError` for NaN, naming the tensor."""
        self._count(feeds)
        if self._is_interpreted(feeds):
            if self._observed is None:
                self._observed = with_outputs(self.module, self._wanted())
            network, outputs = self._observed
            found = interpret(network, self.ctx, feeds)
            self._count({name: found[output] for name, output in outputs.items()})
            return
        if self._groups is None:
            self._groups = self._built(feeds)
        for group in self._groups:
            places = group.engine.context.run_in_place(feeds)
            if places is None:
                found = group.engine.run(feeds)
                self._count({name: found[output] for name, output in group.outputs.items()})
            else:
                self._count_in_place({name: places[output] for name, output in group.outputs.items()})

    def _is_interpreted(self, feeds: Feeds) -> bool:
        """Whether a batch is one of a few, which are not worth an engine. It depends on sizes alone."""
        if self._groups is not None or any(isinstance(op, PluginOp) for op in self.module.walk()):
            return False
        counts = element_counts(self.module, {name: array.shape for name, array in feeds.items()})
        size = sum(counts.values())
        self._interpreted += size
        return max(self._interpreted, size * self.expected) <= INTERPRETED

    def _count(self, arrays: Feeds) -> None:
        for name, array in arrays.items():
            if name in self.histograms:
                self.histograms[name].add(array)
            if name in self.of_channels.axes:
                self.of_channels.add(name, array)

    def _count_in_place(self, tensors: Mapping[str, DeviceTensor]) -> None:
        if self._device is None:
            self._device = DeviceHistograms.on_this_machine()
        self._device.add({name: one for name, one in tensors.items() if name in self.histograms}, self.histograms)
        axes = self.of_channels.axes
        with_channels = {name: one for name, one in tensors.items() if name in axes and one.elements}
        for name, reduced in self._device.channels(with_channels, axes).items():
            self.of_channels.add_reduced(name, reduced, with_channels[name].elements)

    def outputs_of(self, feeds: Feeds) -> dict[str, Array]:
        """The network's own outputs in float32, for a batch like those that were added."""
        found = interpret(self.module, self.ctx, feeds) if self._groups is None else self._groups[0].engine.run(feeds)
        return {name: found[name] for name in output_names(entry_function(self.module))}

    def warn(self) -> None:
        """Say which tensors were 0 in all samples, unless a rectifier made them so of negative numbers
        (tensorrt-features.md#9.22).
        """
        rectified = rectified_names(self.module)
        zero = {name for name, histogram in self.histograms.items() if histogram.elements and histogram.is_zero}
        for name in self.histograms:
            if name in zero and rectified.get(name, name) in zero:
                warnings.warn(f"Tensor {name} is uniformly zero.", stacklevel=2)

    def _built(self, feeds: Feeds) -> list[_Group]:
        counts = element_counts(self.module, {name: array.shape for name, array in feeds.items()})
        return [self._group(names) for names in grouped(self._wanted(), counts, MAX_BYTES // 4)]

    def _wanted(self) -> list[str]:
        inputs = set(self.inputs)
        return [name for name in {**self.histograms, **self.of_channels.axes} if name not in inputs]

    def _group(self, names: Sequence[str]) -> _Group:
        module, outputs = with_outputs(self.module, names)
        options = BuildOptions(progress=self.progress, name="calibration", first="quantization", temporary=True)
        return _Group(build(module, self.ctx, self.target, options), outputs)


@dataclass
class _Group:
    """An engine that gives some of the tensors; `outputs` says by which output each."""

    engine: Engine
    outputs: Mapping[str, str]


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
