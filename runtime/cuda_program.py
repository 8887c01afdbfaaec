"""One set of shapes on a CUDA device: frozen arguments, the captured graph, and the runs of it."""

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.bound_launch import Address
from mlirt.runtime.caller_memory import CallerGraphs, CallerMemory, Placed
from mlirt.runtime.conditional_graphs import DeviceGraph, Queue, setting
from mlirt.runtime.cuda_control import HostDecisions, RunStretch, is_straight, stretches
from mlirt.runtime.cuda_graph import capture, queue_in_lanes
from mlirt.runtime.cuda_memory import DeviceBlock, DeviceState, PinnedBlock
from mlirt.runtime.current_device import on_its_device
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.device import NONE_KEPT, Around, DeviceTensor, WrongSize, no_ranges
from mlirt.runtime.driver_interface import DeviceError, Handle
from mlirt.runtime.frozen_launches import FrozenLaunches
from mlirt.runtime.joined_arrays import JoinedArrays
from mlirt.runtime.memory_planning import aligned
from mlirt.runtime.pinned_memory import sources_of
from mlirt.runtime.program import Place, Program
from mlirt.runtime.shape_binding import ShapeBinding
from mlirt.runtime.stop_request import StopRequest

if TYPE_CHECKING:
    from mlirt.runtime.cuda import CudaSession

_WORD = 8
_BYTES_OF_A_LAUNCH = 8192
TIMES = 5
"""The first events of a session keep times, the last two order its stream and a caller's."""
NOT_CAPTURED = (
    "a loop, a branch or a check of the network is decided while it runs, which cannot be captured by a CUDA graph "
    "(cudaErrorStreamCaptureUnsupported): queue the run on a stream that is not being captured"
)
"""Why a run is refused on a stream that is captured (tensorrt-features.md#7.20)."""
PartsOf = Callable[[int], Sequence[tuple[int, int]]]
"""The parts of so many bytes: where each starts, and its size."""


class CudaProgram:
    """Frozen arguments and the captured graph for one set of shapes; inputs and outputs lie beside the arena."""

    def __init__(self, session: "CudaSession", binding: ShapeBinding) -> None:
        self.timed = False
        self.stop: StopRequest | None = None
        self._tenancy = object()  # the session remembers this, not the program: a cycle would keep memory
        self._session = session
        self.driver = self._driver = session.device.driver
        self._manifest = session.device.manifest
        self._binding = binding
        self.output_shapes = binding.output_shapes
        self._bases = self._place()
        driver = self._driver
        self._plugins = session.plugins.bound(binding, lambda size: DeviceBlock(driver, size))
        self._launches = FrozenLaunches(session.device, binding, self._bases, frozenset(self._plugins))
        self._dtypes = [numpy_dtype(tensor.dtype) for tensor in self._manifest.outputs]
        self._input_sizes = [binding.sizes[tensor.buffer] for tensor in self._manifest.inputs]
        self._output_sizes = [
            dtype.itemsize * int(np.prod(shape, dtype=np.int64))
            for dtype, shape in zip(self._dtypes, binding.output_shapes, strict=True)
        ]
        self._staged = sum(map(aligned, [*self._input_sizes, *self._output_sizes]))
        self._kept_staging: PinnedBlock | None = None
        self._decisions = self._host_decisions()
        self._wrong_size: WrongSize | None = None
        self._graphs = self._captured()
        self._callers = CallerMemory(self._manifest, binding, self._bases, self._output_sizes)
        self._caller_graphs = CallerGraphs()

    @property
    def _staging(self) -> PinnedBlock:
        """Pinned memory of the host for inputs and outputs on their way, and a word behind them.

        Programs whose tensors all lie on the device never make it.
        """
        if self._kept_staging is None:
            self._kept_staging = self._session.staging_of(self._staged + _WORD)
        return self._kept_staging

    @property
    def held_bytes(self) -> int:
        """The arguments and the graph, of which a driver does not say what they take; memory is the context's."""
        return _BYTES_OF_A_LAUNCH * len(self._manifest.launches) * (1 + len(self._caller_graphs))

    def __del__(self) -> None:
        with suppress(DeviceError, AttributeError):
            self._free()

    @on_its_device
    def _free(self) -> None:
        for graph in filter(None, [*self._graphs.values(), *self._caller_graphs]):
            self._driver.free_graph(graph)

    def _place(self) -> dict[int, int]:
        """The device address of every buffer that owns memory: arena, then inputs and outputs, then (apart) weights."""
        binding, buffers = self._binding, self._manifest.buffers
        offsets = dict(binding.offsets)
        arena = top = aligned(binding.arena_bytes)
        for i, buffer in enumerate(buffers):
            if buffer.view_of is None and buffer.kind in ("input", "output"):
                offsets[i] = top
                top += aligned(binding.sizes[i])
        self._arena = self._session.lent_arena(arena)
        if self._arena is None:
            self._block = self._session.block_of(top)
            self._arena_address = behind = self._block.address
        else:
            self._block = self._session.block_of(top - arena)
            self._arena_address, behind = self._arena.address, self._block.address - arena
        starts = {i: behind if offset >= arena else self._arena_address for i, offset in offsets.items()}
        return {i: starts[i] + offset for i, offset in offsets.items()} | self._session.device.weights

    def _address(self, place: Address) -> int:
        return self._bases[place.root] + place.offset

    def _host_decisions(self) -> HostDecisions | None:
        """What runs the program where it has branches, loops or checks, which it reads by the word of the staging."""
        manifest, driver, session, bases = self._manifest, self._driver, self._session, self._bases
        if is_straight(self._binding.program, manifest.launches) and not self._plugins:
            return None
        word = session.staging_of(self._staged + _WORD)
        self._kept_staging, at = word, self._staged

        def look(place: Address, size: int) -> int:
            driver.copy_to_host(word.address + at, bases[place.root] + place.offset, size, session.stream)
            driver.synchronize(session.stream)
            return int.from_bytes(word.bytes[at : at + size].tobytes(), "little")

        on_device, hosted = session.device.setter is not None, frozenset(self._plugins)
        return HostDecisions(self._binding.program, self._binding, look, on_device=on_device, hosted=hosted)

    def _captured(self) -> dict[Program, Handle]:
        """The graph of each stretch; where the driver refuses one with decisions in it, the host makes them."""
        if self._decisions is None:
            whole = tuple(range(len(self._manifest.launches)))
            return {whole: self._capture(whole)}
        graphs: dict[Program, Handle] = {}
        try:
            on_device, hosted = self._decisions.on_device, self._decisions.hosted
            for stretch in stretches(self._binding.program, on_device=on_device, hosted=hosted):
                graphs[stretch] = self._capture(stretch)
        except DeviceError:
            for graph in filter(None, graphs.values()):
                self._driver.free_graph(graph)
            if not self._decisions.on_device:
                raise
            self._decisions.on_device = False
            return self._captured()
        return graphs

    def _capture(self, stretch: Program) -> Handle:
        if not all(isinstance(step, int) for step in stretch):
            return self._deciding_graph(stretch)
        return capture(*self._launches.ordered(stretch), self._session.lanes)

    def _deciding_graph(self, stretch: Program) -> Handle:
        """A graph whose branches and loops the device decides about."""
        session, driver, places = self._session, self._driver, self._binding.places
        function, maker = session.device.setter, driver.conditional_graphs()
        assert function is not None
        assert maker is not None
        queues = {launch.index: queue for launch, queue in self._launches.queues}

        def queue(index: int) -> Queue | None:
            launch = queues.get(index)
            return None if launch is None else lambda stream: launch(stream, follows=False)

        def setter(condition: Handle, place: Place, holds: bool) -> Queue:
            return setting(driver, function, condition, self._address(places[place]), holds)

        return DeviceGraph(maker, session.stream, queue, setter).build(stretch)

    def _replay(self, stretch: Program) -> None:
        graph = self._graphs[stretch]
        if graph:
            self._driver.replay(graph, self._session.stream)

    def _call(self, index: int) -> None:
        """Let a plugin queue its work behind what is on the stream, where the next graph follows it."""
        places = [place for place in self._binding.launches[index].args if isinstance(place, Address)]
        self._plugins[index].enqueue([self._address(place) for place in places], self._session.stream)

    def _run(self, run_stretch: RunStretch) -> None:
        if self._decisions is None:
            for stretch in self._graphs:
                run_stretch(stretch)
        else:
            self._wrong_size = self._decisions.run(run_stretch, self._call)

    def accept(self, given: Mapping[int, np.ndarray]) -> None:
        """Nothing: outputs come by way of pinned memory."""

    @property
    def inputs(self) -> Sequence[np.ndarray]:
        """None: kernels read the device's memory."""
        return []

    def short_cut(self) -> None:
        """None: a run goes by the device's queue."""

    @property
    def copied_outputs(self) -> int:
        """All: kernels write the device's memory."""
        return len(self._output_sizes)

    @on_its_device
    def upload(self, inputs: Sequence[np.ndarray | DeviceState | JoinedArrays], *, stays: bool = False) -> None:
        """Copy the inputs to pinned memory and queue the way to the device; what stayed there is copied there.

        Pinned memory of the caller is read where it lies where it `stays` as it is until the run is over.
        """
        driver, stream = self._driver, self._session.stream
        self._session.runs_on(None)
        if self._session.is_busy:  # the copies of the run before may still read the staging memory
            driver.synchronize(stream)
        self._session.is_busy = True
        self._mark(0)
        at = 0
        for array, size, tensor in zip(inputs, self._input_sizes, self._manifest.inputs, strict=True):
            if isinstance(array, DeviceState):
                if size:
                    driver.copy_on_device(self._bases[tensor.buffer], array.address, size, stream)
            elif size:
                for offset, source, count in sources_of(driver, array, size, self._staging, at, stays=stays):
                    driver.copy_pinned_to_device(self._bases[tensor.buffer] + offset, source, count, stream)
            at += aligned(size)
        self._mark(1)
        if self._session.consumed is not None:
            driver.record(self._session.consumed, stream)

    def _enter(self, stream: Handle | None = None) -> None:
        """Restore the borders where another shape has used the memory since; `stream` is one of a caller."""
        self._session.runs_on(stream)
        own = self._session.stream if stream is None else stream
        is_other = self._session.tenant is not self._tenancy
        if is_other or self._session.is_in_graphs:  # which runs have been made since then nobody knows
            for offset, size, byte in self._binding.halos:
                self._driver.fill(self._arena_address + offset, size, byte, own)
        if is_other:
            for launch in self._plugins.values():
                launch.others_have_run()
            self._session.tenant = self._tenancy

    @on_its_device
    def execute(self) -> None:
        """Queue the kernels."""
        self._execute(self._replay)

    def _execute(self, run_stretch: RunStretch) -> None:
        if self.stop is not None:
            self.stop.check()
        self._enter()
        self._session.is_busy = True
        self._mark(2)
        self._run(run_stretch)
        self._mark(3)

    @on_its_device
    def run_at(self, inputs: Sequence[int], outputs: Sequence[int], stream: Handle, number: int | None) -> bool:
        """Run on a caller's device memory, after what is on the caller's stream and before what comes on it next.

        Where the stream is captured, the run becomes part of the caller's graph; `caller_memory` says what is copied.
        """
        session = self._session
        is_captured = stream != 0 and self._driver.is_captured(stream)
        if is_captured:
            self._become_captured()
        # The caller is told when the inputs are copied, which are read to the end where they are not.
        is_plain = self._decisions is None and number is None and session.consumed is None and not self.timed
        placed = self._callers.placed(inputs, outputs, in_place=is_plain)
        if is_captured:
            launches = self._launches_at(placed.bases)
            session.keep_for_graphs([launches])
            # A caller's graph has no place for one of ours.
            lanes = session.lanes
            self._run_between(placed, stream, number, lambda one: queue_in_lanes(*launches.ordered(one), lanes))
        elif placed.bases and (graph := self._graph_at(placed.bases)) is not None:
            self._run_in_place(graph, placed, stream)
        else:
            everything = self._callers.placed(inputs, outputs, in_place=False)
            self._run_between(everything, stream, number, self._replay)
        return True

    def _run_between(self, placed: Placed, stream: Handle, number: int | None, run_stretch: RunStretch) -> None:
        """Run on the context's stream, between what the caller's has and what comes there next."""
        driver, session = self._driver, self._session
        arrival, departure = session.events[TIMES:]
        driver.record(arrival, stream)
        driver.wait(session.stream, arrival)
        for copy in placed.before:
            driver.copy_on_device(*copy, session.stream)
        if number is not None:
            self._write_number(number)
        if session.consumed is not None:
            driver.record(session.consumed, session.stream)
        self._execute(run_stretch)
        for copy in placed.after:
            driver.copy_on_device(*copy, session.stream)
        driver.record(departure, session.stream)
        driver.wait(stream, departure)

    def _run_in_place(self, graph: Handle, placed: Placed, stream: Handle) -> None:
        """Queue a graph on the caller's stream; the context's own goes on behind it."""
        driver, session = self._driver, self._session
        if self.stop is not None:
            self.stop.check()
        arrival, departure = session.events[TIMES:]
        if not session.has_run_on(stream):
            driver.record(arrival, session.stream)
            driver.wait(stream, arrival)
        for copy in placed.before:
            driver.copy_on_device(*copy, stream)
        self._enter(stream)
        session.is_busy = True
        driver.replay(graph, stream)
        for copy in placed.after:
            driver.copy_on_device(*copy, stream)
        driver.record(departure, stream)
        driver.wait(session.stream, departure)

    def _graph_at(self, bases: Mapping[int, int]) -> Handle | None:
        """The graph on a caller's memory; None where its addresses are new."""
        whole = tuple(range(len(self._manifest.launches)))

        def capture_at(bases: Mapping[int, int]) -> tuple[Handle, FrozenLaunches]:
            launches = self._launches_at(bases)
            return capture(*launches.ordered(whole), self._session.lanes), launches

        return self._caller_graphs.graph_at(bases, capture_at, self._driver.free_graph)

    def _launches_at(self, bases: Mapping[int, int]) -> FrozenLaunches:
        """The launches with other addresses of some buffers."""
        if not bases:
            return self._launches
        return FrozenLaunches(self._session.device, self._binding, {**self._bases, **bases}, frozenset(self._plugins))

    def _become_captured(self) -> None:
        """Let the run be noted for a graph of the caller; raises `InvalidInputError` where it cannot be."""
        if any(not isinstance(step, int) for step in self._binding.program):
            raise InvalidInputError(NOT_CAPTURED)
        self._session.keep_for_graphs([self._block, self._arena, *self._plugins.values()])

    def _write_number(self, number: int) -> None:
        """Queue the number of the run byte by byte: a copy from the host would read what a later run has written."""
        place = self._bases[self._manifest.inputs[-1].buffer]
        for k, byte in enumerate(number.to_bytes(_WORD, "little")):
            self._driver.fill(place + k, 1, byte, self._session.stream)

    def wrong_size(self) -> WrongSize | None:
        """The size that the last run found to be another than it was taken for."""
        return self._wrong_size

    @on_its_device
    def download(self, kept: Mapping[int, Any] = NONE_KEPT) -> list[Any]:
        """Queue the way back, wait, and return the outputs; those that are kept are copied on the device."""
        stay = {number: self._stays(number, before) for number, before in kept.items()}
        flat = self.download_parts(lambda size: [(0, size)], kept)
        shapes = self.output_shapes
        return [
            stay[number] if number in stay else array.reshape(shape)
            for number, (array, shape) in enumerate(zip(flat, shapes, strict=True))
        ]

    def _stays(self, number: int, before: object) -> DeviceState:
        """Queue the copy of an output to memory of its own, which outlives the program."""
        driver, size = self._driver, self._output_sizes[number]
        shape = tuple(map(int, self.output_shapes[number]))
        is_free = isinstance(before, DeviceState) and before.block.size == max(size, 1)
        block = before.block if is_free and isinstance(before, DeviceState) else DeviceBlock(driver, max(size, 1))
        if size:
            place = self._binding.outputs[number]
            driver.copy_on_device(block.address, self._address(place), size, self._session.stream)
        return DeviceState(driver, shape, self._dtypes[number], block)

    @on_its_device
    def download_parts(self, parts: PartsOf, without: Container[int] = ()) -> list[np.ndarray]:
        """As `download`, but only some bytes of each output, one after the other in an array of one dimension.

        `parts` gives, for an output of so many bytes, the start and the size of each part, in multiples of the size of
        an element; together they are no longer than the output.
        """
        wanted = self._queue_parts(parts, without)
        self.wait()
        outputs: list[np.ndarray] = []
        at = sum(map(aligned, self._input_sizes))
        for of_output, dtype in zip(wanted, self._dtypes, strict=True):
            size = sum(size for _, size in of_output)
            outputs.append(self._staging.bytes[at : at + size].copy().view(dtype))
            at += aligned(size)
        return outputs

    @on_its_device
    def queue_download(self) -> None:
        """Queue the way back of all outputs to pinned memory, and do not wait."""
        self._queue_parts(lambda size: [(0, size)])

    def _queue_parts(self, parts: PartsOf, without: Container[int] = ()) -> list[list[tuple[int, int]]]:
        """Queue copies of parts of the outputs; returns which of each output."""
        sizes = enumerate(self._output_sizes)
        wanted = [list(parts(size)) if size and number not in without else [] for number, size in sizes]
        at = self._staging.address + sum(map(aligned, self._input_sizes))
        for place, of_output in zip(self._binding.outputs, wanted, strict=True):
            end = at
            for first, size in of_output:
                self._driver.copy_to_host(end, self._address(place) + first, size, self._session.stream)
                end += size
            at += aligned(end - at)
        self._mark(4)
        return wanted

    @on_its_device
    def follow(self, other: "CudaProgram") -> None:
        """Let the kernels of the next run wait for those of the last timed run of another context."""
        self._driver.wait(self._session.stream, other.computed)

    @property
    def computed(self) -> Handle:
        """The event behind the kernels of a timed run."""
        return self._session.events[3]

    def outputs_in_place(self) -> list[DeviceTensor]:
        """The outputs of the last run where the kernels wrote them, once they have."""
        self.wait()
        outputs = zip(self._binding.outputs, self.output_shapes, strict=True)
        return [DeviceTensor(self._address(place), tuple(map(int, shape))) for place, shape in outputs]

    @on_its_device
    def wait(self) -> None:
        """Return when the stream is empty."""
        self._driver.synchronize(self._session.stream)
        self._session.is_busy = False

    def _mark(self, event: int) -> None:
        if self.timed:
            self._driver.record(self._session.events[event], self._session.stream)

    @on_its_device
    def device_times(self) -> tuple[float, float, float, float, float, float] | None:
        """Start and end of h2d, compute and d2h, in milliseconds since the first; d2h is 0 long before a download."""
        if not self.timed:
            return None
        first, *others = self._session.events[:TIMES]
        uploaded, begun, computed = (self._driver.elapsed_ms(first, event) for event in others[:3])
        with suppress(DeviceError):
            return 0.0, uploaded, begun, computed, computed, max(computed, self._driver.elapsed_ms(first, others[3]))
        return 0.0, uploaded, begun, computed, computed, computed

    def memory(self) -> tuple[int, int]:
        """The address and the bytes of what launches write: the arena, the inputs and the outputs; not the weights."""
        ends = [self._bases[place] + self._binding.sizes[place] for place in self._bases]
        inside = [end for end in ends if self._block.address <= end <= self._block.address + self._block.size]
        return self._block.address, max(inside, default=self._block.address) - self._block.address

    @on_its_device
    def single_launches(self) -> list[tuple[int, Callable[[Handle], None]]]:
        """The number of each launch, and what queues it alone on a stream; those of plugins are left out.

        Each is there once, also where it stands in a branch or a loop.
        """
        self._enter()
        self.wait()
        return [
            (launch.index, lambda stream, queue=queue: queue(stream, follows=False))
            for launch, queue in self._launches.queues
        ]

    @on_its_device
    def profile(self, around: Around = no_ranges) -> list[float]:
        """Run the launches one by one, each between two events; one in a loop has the time of all its iterations."""
        self._enter()
        start, end = self._session.events[2:4]
        times = {launch.index: 0.0 for launch in self._binding.launches}
        queues = {launch.index: queue for launch, queue in self._launches.queues}

        def run(stretch: Program) -> None:
            for index in stretch:
                if isinstance(index, int) and index in queues:
                    measure(index, lambda index=index: queues[index](self._session.stream, follows=False))

        def measure(index: int, queue: Callable[[], None]) -> None:
            with around(index):
                self._driver.record(start, self._session.stream)
                queue()
                self._driver.record(end, self._session.stream)
                self._driver.synchronize(self._session.stream)
            times[index] += self._driver.elapsed_ms(start, end)

        if self._decisions is None:
            self._run(run)
        else:
            decisions = replace(self._decisions, on_device=False)
            decisions.run(run, lambda index: measure(index, lambda: self._call(index)))
        return list(times.values())
