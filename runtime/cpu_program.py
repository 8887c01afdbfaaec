"""The program of one set of shapes on a CPU: its table of rows, and the caller's arrays that it runs on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirt.errors import UnmetConditionError
from mlirt.runtime.bound_launch import Address
from mlirt.runtime.caller_arrays import InputPlace, OutputPlace, separate, stage
from mlirt.runtime.control_rows import HostRow, JumpRow, KernelRow, RequireRow, Row, SizeRow
from mlirt.runtime.cpu_job import Job, ShortCut, follower
from mlirt.runtime.cpu_table import ROW_WORDS, STOP_WORDS, Patch
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.device import NONE_KEPT, Around, DeviceTensor, WrongSize, no_ranges
from mlirt.runtime.growing_run import Growth
from mlirt.runtime.guarded_memory import GuardedBlock, GuardedOutput, Side
from mlirt.runtime.host_memory import HostBlock, OutputMemory, address_of
from mlirt.runtime.manifest import Tensor
from mlirt.runtime.plan_lengths import PlanLengths
from mlirt.runtime.shape_binding import ShapeBinding
from mlirt.runtime.stop_request import StopRequest
from mlirt.runtime.worker_choice import WorkerChoice

if TYPE_CHECKING:
    from mlirt.runtime.cpu import CpuSession

_BYTES_OF_RECORDS = 10240  # about what a program takes besides arrays
_TARGET_WORD = 1  # of row 0, where that is a jump


class CpuProgram:
    """The kernel table and parameters for one set of shapes; inputs and outputs are patched in at each run."""

    def __init__(self, session: CpuSession, binding: ShapeBinding, *, copies_small: bool) -> None:
        self.timed = False
        self.stop: StopRequest | None = None
        self._tenancy = object()  # the session remembers this, not the program: a cycle would keep memory
        self._session = session
        self._device = session.device
        self._output_places, self.output_shapes = binding.outputs, binding.output_shapes
        self._input_shapes = binding.input_shapes
        self._guarded: Side | None = session.device.guarded
        self._arena = session.arena_of(binding)
        manifest = self._device.manifest
        self._dtypes = [numpy_dtype(tensor.dtype) for tensor in manifest.outputs]
        self._bound_outputs = self._choose_bound_outputs()
        loose = [i for i in self._device.output_owners if i not in self._bound_outputs]
        # Memory for output buffers of which only views are outputs.
        self._scratch = {i: _block(int(binding.size_array[i]), self._guarded) for i in loose}
        # Not a method of this object: the plugins would hold what holds them.
        self._plugins = session.plugins.bound(binding, partial(_block, guarded=self._guarded))
        self._layout = self._device.layout(binding, self._plugins)
        self._rows = self._layout.rows
        self._stopped = 0
        bases = np.where(self._device.is_arena, self._arena.addresses(), self._device.weight_addresses)
        for i, block in self._scratch.items():
            bases[i] = block.address
        device, rewritten = self._device, self._arena.rewritten
        filled = self._layout.filled(binding, device.kernel_array, bases, device.bordered, rewritten)
        self._table, self._parameters, self.workers = filled
        self._job = Job(address_of(self._table), len(self._rows), device.door)
        self._choice = self._choose_workers()
        copies_small = copies_small and self._guarded is None
        # The number of the run, which no caller gives, comes behind the inputs that have shapes.
        shapes = (*binding.input_shapes, *[()] * (len(manifest.inputs) - len(binding.input_shapes)))
        self._places_of_inputs = [
            self._place_of_input(tensor, shape, copies_small)
            for tensor, shape in zip(manifest.inputs, shapes, strict=True)
        ]
        self._places_of_outputs = [self._place_of_output(i, copies_small) for i in range(len(self._dtypes))]
        self._loose_outputs = [
            (place, output)
            for place, output in zip(self._output_places, self._places_of_outputs, strict=True)
            if not output.is_written_by_kernels
        ]
        self._given: Mapping[int, np.ndarray] = {}
        self._inputs: list[np.ndarray] = []
        self._input_blocks = [
            _block(int(binding.size_array[one.buffer]), self._guarded) for one in manifest.inputs if self._guarded
        ]

    @property
    def held_bytes(self) -> int:
        """What the program keeps besides the context's arena; records of Python are estimated."""
        kinds = zip(self._dtypes, self.output_shapes, self._places_of_outputs, strict=True)
        outputs = sum(dtype.itemsize * prod(shape) for dtype, shape, place in kinds if place.staged is None)
        blocks = sum(block.size for block in (*self._scratch.values(), *self._input_blocks))
        patches = sum(place.nbytes for place in (*self._places_of_inputs, *self._places_of_outputs))
        records = _BYTES_OF_RECORDS + (0 if self._layout.is_shared else self._layout.nbytes)
        own = self._table.nbytes + self._parameters.nbytes + patches + records
        return own + outputs + blocks + self._arena.held_bytes

    def _choose_bound_outputs(self) -> dict[int, int]:
        """For each output buffer the output whose returned array is that memory."""
        bound: dict[int, int] = {}
        for i, (place, tensor) in enumerate(zip(self._output_places, self._device.manifest.outputs, strict=True)):
            owner = self._device.manifest.buffers[place.root]
            if owner.kind == "output" and tensor.buffer == place.root:
                bound.setdefault(place.root, i)
        return bound

    def _place_of_input(self, tensor: Tensor, shape: tuple[int, ...], copies_small: bool) -> InputPlace:
        align = max(self._device.manifest.buffers[tensor.buffer].align, 1) if self._guarded is None else 1
        staged = stage(shape, numpy_dtype(tensor.dtype)) if copies_small else None
        return InputPlace(self._patch_of(tensor.buffer), align, staged)

    def _place_of_output(self, number: int, copies_small: bool) -> OutputPlace:
        shape, dtype, guarded = self.output_shapes[number], self._dtypes[number], self._guarded
        memory = OutputMemory(shape, dtype) if guarded is None else GuardedOutput(shape, dtype, guarded)
        root = self._output_places[number].root
        patch = self._patch_of(root) if self._bound_outputs.get(root) == number else None
        align = max(self._device.manifest.buffers[root].align, 1)
        return OutputPlace(shape, dtype, memory, patch, align, stage(shape, dtype) if copies_small else None)

    def _patch_of(self, root: int) -> Patch:
        return Patch(self._parameters, self._layout.pointers[self._layout.roots == root])

    def accept(self, given: Mapping[int, np.ndarray]) -> None:
        """Let the next upload have outputs written where the caller wants them, by number, as far as that can be."""
        self._given = given

    def upload(self, inputs: Sequence[np.ndarray], *, stays: bool = False) -> None:
        """Point the parameters at the caller's arrays (or at aligned copies) and at the arrays for outputs."""
        self._inputs = []
        inputs = self._between_guards(inputs)
        self._inputs = [place.take(array) for place, array in zip(self._places_of_inputs, inputs, strict=True)]
        given = self._placeable() if self._given else self._given
        for number, place in enumerate(self._places_of_outputs):
            place.begin(given.get(number))

    def _placeable(self) -> Mapping[int, np.ndarray]:
        """The arrays of the caller that may be written while kernels run; none unless all fit."""
        given, self._given = self._given, {}
        places = self._places_of_outputs
        if not all(places[number].fits(array) for number, array in given.items()):
            return {}
        large = {number: array for number, array in given.items() if places[number].staged is None}
        return separate(large, self._inputs)

    @property
    def inputs(self) -> Sequence[np.ndarray]:
        """The arrays that kernels read, since the last upload."""
        return self._inputs if self._guarded is None else []

    def _between_guards(self, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """The inputs themselves, or copies between guard pages."""
        blocks = [block for block in self._input_blocks if isinstance(block, GuardedBlock)]
        return [block.holding(array) for block, array in zip(blocks, inputs, strict=True)] if blocks else inputs

    def _check_guards(self) -> None:
        """Raise `PlanError` where what lies next to guarded memory was written."""
        self._arena.check()
        outputs = [place.memory for place in self._places_of_outputs]
        for what, blocks in (("input", self._input_blocks), ("output", outputs)):
            for i, block in enumerate(blocks):
                if isinstance(block, GuardedBlock | GuardedOutput):
                    block.check(f"{what} {i}")

    def _enter(self) -> None:
        """Follow the arena to where it lies now, and restore the borders where another shape has used it since."""
        if distance := self._arena.moved():
            self._parameters[self._layout.pointers[self._device.is_arena[self._layout.roots]]] += distance
        if self._session.tenant is not self._tenancy:
            self._arena.restore_halos()
            for launch in self._plugins.values():
                launch.others_have_run()
            self._session.tenant = self._tenancy

    def execute(self) -> None:
        """Run all rows; returns when they are done, or when one stopped the run."""
        self._enter()
        self._stopped = self._run_from(1)
        while self._stopped > 0 and isinstance(row := self._rows[self._stopped - 1], HostRow):
            if self.stop is not None:
                self.stop.check()
            self._call(row, self._stopped - 1)
            self._stopped = self._run_from(self._stopped)
        if self._stopped < 0 and self.stop is not None:
            raise self.stop.error(self._stopped)
        if self._guarded is not None:
            self._check_guards()

    def _run_from(self, row: int) -> int:
        """Run until a row stops it; its number from 1 on, or 0. Where rows need the host, row 0 jumps to the first."""
        if self._plugins:
            self._parameters[_TARGET_WORD] = row
        if self.workers.needs_one:
            return self._device.on_caller.run(self._job, self.stop, is_brief=self.workers.is_brief)
        if self._choice is None:
            return self._device.run(self._job, self.stop)
        if self.stop is None:
            return self._choice()
        return (self._device.on_caller if self._choice.is_alone else self._device).run(self._job, self.stop)

    def _choose_workers(self) -> WorkerChoice | None:
        """Trials of who runs it; None where one worker is enough, or none helps, or the host has a part in it."""
        device, job = self._device, self._job
        if self.workers.needs_one or device.choice.each == 1 or self._guarded is not None or self._plugins:
            return None
        on_caller = device.on_caller
        return WorkerChoice(
            partial(device.run, job),
            partial(on_caller.native, job.address),
            partial(on_caller.brief, job.brief_address),
            self.workers.touched,
            device.outcomes,
        )

    def short_cut(self) -> ShortCut | None:
        """What a run comes down to where no row puts an end to it, and kernels write all outputs."""
        if self._guarded is not None or self._loose_outputs or not self._rows:
            return None
        if self._plugins or len(self._rows) > len(self._layout.launch_rows):
            return None
        device, job = self._device, self._job
        execute: Callable[[], int] = self._choice or partial(device.run, job)
        brief: Callable[[], int] | None = None
        if self.workers.needs_one or device.choice.each == 1:
            brief = partial(device.on_caller.brief, job.brief_address)
        beside = partial(device.on_caller.native, job.address) if self.workers.needs_one else execute
        if self.workers.needs_one:
            execute = brief if brief and self.workers.is_brief else beside
        shapes, session = self._input_shapes, self._session
        places = self._places_of_inputs, self._places_of_outputs
        return ShortCut(execute, beside, brief, self._choice, session, self._tenancy, self._enter, shapes, *places)

    def growth(self, lengths: PlanLengths, room: np.ndarray) -> Growth | None:
        """The program as one for lengths that grow, whose parameters they write; it is for nothing else then."""
        cut = self.short_cut()
        if cut is None:
            return None
        device, arena = self._device, self._arena
        bases = np.where(device.is_arena, arena.addresses(), device.weight_addresses)
        native, stoppable = follower(device.follows_lengths), partial(device.run, self._job)
        return Growth(lengths, native, cut, stoppable, self._parameters, arena.addresses, device.is_arena, bases, room)

    @property
    def copied_outputs(self) -> int:
        """The outputs that kernels do not write where the caller finds them."""
        places = self._places_of_outputs
        if self._guarded is not None:
            return len(places)
        return sum(not place.is_written_by_kernels or place.staged is not None for place in places)

    def _call(self, row: HostRow, number: int) -> None:
        """Let a plugin compute, on the tensors whose addresses its row has."""
        launch = self._plugins[row.launch]
        start = (int(self._table[number, 1]) - address_of(self._parameters)) // 8 + STOP_WORDS
        launch.enqueue(self._parameters[start : start + launch.tensors].tolist(), 0)

    def run_at(self, inputs: Sequence[int], outputs: Sequence[int], stream: int, number: int | None) -> bool:
        """Nothing: a CPU has no streams."""
        return False

    def wrong_size(self) -> WrongSize | None:
        """The size that the last run found to be another than it was taken for; raises where an input is at fault."""
        if not self._stopped:
            return None
        row = self._rows[self._stopped - 1]
        if isinstance(row, RequireRow):
            raise UnmetConditionError(row.message)
        assert isinstance(row, SizeRow)
        return row.symbol, row.expected if row.place is None else int(self._bytes_at(row.place, 8).view(np.int64)[0])

    def download(self, kept: Mapping[int, Any] = NONE_KEPT) -> list[np.ndarray]:
        """Write the outputs that kernels have not written where they belong; return all."""
        self._complete()
        found = [place.array if place.staged is None else place.staged.copy() for place in self._places_of_outputs]
        return found if self._guarded is None else [output.copy() for output in found]

    def _complete(self) -> None:
        for place, output in self._loose_outputs:
            if output.array.nbytes:
                output.array.reshape(-1).view(np.uint8)[...] = self._bytes_at(place, output.array.nbytes)

    def outputs_in_place(self) -> list[DeviceTensor]:
        """The outputs in the host's memory, which is the device's."""
        self._complete()
        return [DeviceTensor(one.array.ctypes.data, one.array.shape) for one in self._places_of_outputs]

    def _bytes_at(self, place: Address, size: int) -> np.ndarray:
        manifest = self._device.manifest
        kind = manifest.buffers[place.root].kind
        if kind == "arena":
            return self._arena.bytes_at(place.root, place.offset, size)
        if kind == "weight":
            whole = self._device.weights[place.root]
        elif kind == "input":
            which = [tensor.buffer for tensor in manifest.inputs].index(place.root)
            whole = self._inputs[which].reshape(-1).view(np.uint8)
        elif place.root in self._scratch:
            return self._scratch[place.root].bytes_at(place.offset, size)
        else:
            whole = self._places_of_outputs[self._bound_outputs[place.root]].array.reshape(-1).view(np.uint8)
        return whole[place.offset : place.offset + size]

    def wait(self) -> None:
        """Nothing to wait for: `execute` is synchronous."""

    def device_times(self) -> None:
        """The host's clock counts."""

    def profile(self, around: Around = no_ranges) -> list[float]:
        """Run row by row; a launch in a loop has the time of all its iterations."""
        self._enter()
        times = [0.0] * len(self._device.manifest.launches)
        number = 0
        while number < len(self._rows):
            row = self._rows[number]
            if isinstance(row, HostRow | KernelRow):
                with around(row.launch):
                    start = time.perf_counter()
                    if isinstance(row, HostRow):
                        self._call(row, number)
                    else:
                        self._device.run(Job(self._job.table + number * ROW_WORDS * 8, 1))
                    times[row.launch] += (time.perf_counter() - start) * 1e3
            number = self._after(row, number)
        return times

    def _after(self, row: Row, number: int) -> int:
        """The row that follows a row."""
        if not isinstance(row, JumpRow):
            return number + 1
        holds = row.place is not None and bool(self._bytes_at(row.place, 1)[0])
        return number + 1 if holds else row.target


def _block(size: int, guarded: Side | None) -> HostBlock | GuardedBlock:
    return HostBlock(size) if guarded is None else GuardedBlock(size, guarded)
