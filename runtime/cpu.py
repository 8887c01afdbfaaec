"""Runs a plan on the CPU: links its object code, fills the table of kernels and parameters, runs it on all threads."""

import struct
import time
from collections.abc import Mapping, Sequence
from functools import partial
from math import prod

import numpy as np

from mlirt.errors import PlanError, UnmetConditionError
from mlirt.runtime.control_rows import HostRow, JumpRow, KernelRow, RequireRow, Row, SizeRow, rows_of
from mlirt.runtime.cpu_arena import Arena, GuardedArena, PlannedArena
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.device import DeviceTensor, WrongSize
from mlirt.runtime.guarded_memory import GuardedBlock, GuardedOutput, Side, guarded_side
from mlirt.runtime.host_cpu import allow_matrix_unit, refuse_foreign_code, spin_seconds, thread_count
from mlirt.runtime.host_memory import ALIGNMENT, HostBlock, OutputMemory, address_of, aligned_empty
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.object_linker import LinkedCode
from mlirt.runtime.plan_file import Plan
from mlirt.runtime.plugin_launches import EnginePlugins
from mlirt.runtime.shape_binding import Address, BoundArgument, BoundLaunch, ShapeBinding, TensorMap
from mlirt.runtime.worker_pool import SYMBOLS, WorkerPool, shared_pool

_ROW_WORDS = 3
_PARAMETER_LINE = 8
_NO_BARRIER, _SERIAL, _JUMP, _SIZE, _REQUIRE = 1, 2, 4, 8, 16
_TINY_BYTES = 4096
_BYTES_OF_A_RECORD = 64
_STOP_WORDS = 2  # of a row that may stop a run: what it looks at, and a number
_TARGET_WORD = 1  # of row 0, where that is a jump


class CpuDevice:
    """The linked code and the weights of one plan."""

    def __init__(self, plan: Plan, spin_ms: float | None = None) -> None:
        self.manifest = plan.manifest
        self._spin_seconds = spin_seconds(spin_ms)
        refuse_foreign_code(self.manifest.target.triple, self.manifest.target.features)
        allow_matrix_unit(self.manifest.target.features)
        self.threads = thread_count()
        self._main_section = self.manifest.main or ""
        self._code, self.kernel_addresses = self._link(plan)
        self.guarded: Side | None = guarded_side()
        self.weights = _weights(self.manifest, plan.weights, self.guarded)
        self.plugins = EnginePlugins(self.manifest, plan.weights)

    def _link(self, plan: Plan) -> tuple[LinkedCode | None, list[int]]:
        if not self.manifest.program:
            return None, []
        arch = self.manifest.target.arch
        homes: list[tuple[str, str]] = []
        for kernel in self.manifest.kernels:
            if kernel.plugin is not None:
                continue
            if arch not in kernel.objects:
                raise PlanError(f"plan manifest: kernel {kernel.name[:80]!r} has no object code for the CPU")
            homes.append((kernel.objects[arch], kernel.symbol))
        needed = [(self._main_section, symbol) for symbol in SYMBOLS] + homes
        objects = {section: memoryview(plan.sections[section]) for section in {section for section, _ in needed}}
        code = LinkedCode(dict(sorted(objects.items())), needed)
        places = iter([code.addresses[home] for home in homes])
        return code, [0 if kernel.plugin is not None else next(places) for kernel in self.manifest.kernels]

    def run(self, table: int, rows: int) -> int:
        """Run rows of the table at address `table` with all threads; the number of the row that stopped it, or 0."""
        if self._code is None:
            return 0
        pool: WorkerPool = shared_pool(self._code, self._main_section, self.threads)
        return pool.run(table, rows, self._spin_seconds)

    @property
    def decides(self) -> bool:
        """Branches and loops are rows of the table, which the workers follow."""
        return True

    def session(self) -> "CpuSession":
        """A new context's memory."""
        return CpuSession(self)


def _weights(manifest: Manifest, weights: Mapping[str, np.ndarray], guarded: Side | None) -> dict[int, np.ndarray]:
    """The bytes of each weight buffer, where kernels read them."""
    if guarded is None:
        return _resident_weights(manifest, weights)
    owners = {i: b for i, b in enumerate(manifest.buffers) if b.kind == "weight" and b.view_of is None}
    whole = {i: np.ascontiguousarray(weights[str(b.weight)]).reshape(-1).view(np.uint8) for i, b in owners.items()}
    # What a buffer is larger in the file than in the manifest, no kernel may read.
    declared = {i: whole[i][: b.size] for i, b in owners.items() if isinstance(b.size, int)}
    return {i: GuardedBlock(given.nbytes, guarded).holding(given) for i, given in declared.items()}


def _resident_weights(manifest: Manifest, weights: Mapping[str, np.ndarray]) -> dict[int, np.ndarray]:
    """The bytes of each weight buffer at an aligned address: in place (as in a mapped file) or moved."""
    resident: dict[int, np.ndarray] = {}
    moving: list[int] = []
    for i, buffer in enumerate(manifest.buffers):
        if buffer.kind == "weight" and buffer.view_of is None and buffer.weight is not None:
            resident[i] = np.ascontiguousarray(weights[buffer.weight]).reshape(-1).view(np.uint8)
            if address_of(resident[i]) % max(buffer.align, ALIGNMENT):
                moving.append(i)
    starts: list[int] = []
    end = 0
    for i in moving:
        align = max(manifest.buffers[i].align, ALIGNMENT)
        starts.append(-(-end // align) * align)
        end = starts[-1] + resident[i].nbytes
    block = HostBlock(end)
    for i, start in zip(moving, starts, strict=True):
        moved = block.bytes_at(start, resident[i].nbytes)
        moved[...] = resident[i]
        resident[i] = moved
    return resident


class CpuSession:
    """The arena of one context; programs for several shapes take turns in it."""

    def __init__(self, device: CpuDevice) -> None:
        self.device = device
        self.arena = HostBlock(0)
        self.tenant: object = None
        self.plugins = device.plugins.for_context()

    def prepare(self, binding: ShapeBinding) -> "CpuProgram":
        """Make the program for one set of shapes; a larger arena is got where needed, which older programs move to."""
        return CpuProgram(self, binding)

    def outgrown_bytes(self) -> int:
        """None: programs move to the largest arena."""
        return 0

    def arena_of(self, binding: ShapeBinding) -> Arena:
        """Where the arena buffers of a program for one set of shapes lie."""
        if self.device.guarded is not None:
            return GuardedArena(self.device.manifest, binding, self.device.guarded)
        if binding.arena_bytes > self.arena.size:
            self.arena = HostBlock(binding.arena_bytes)
            self.tenant = None
        return PlannedArena(lambda: self.arena, binding)

    def set_input_consumed_event(self, event: int | None) -> bool:
        """There are no events here: a run has read its inputs when it returns."""
        return False


class CpuProgram:
    """The kernel table and parameters for one set of shapes; inputs and outputs are patched in at each run."""

    def __init__(self, session: CpuSession, binding: ShapeBinding) -> None:
        self.timed = False
        self._tenancy = object()  # the session remembers this, not the program: a cycle would keep memory
        self._session = session
        self._device = session.device
        self._binding = binding
        self._guarded: Side | None = session.device.guarded
        self._arena = session.arena_of(binding)
        manifest = self._device.manifest
        self._dtypes = [numpy_dtype(tensor.dtype) for tensor in manifest.outputs]
        self._aligns = [max(manifest.buffers[tensor.buffer].align, 1) for tensor in manifest.inputs]
        self._bound_outputs = self._choose_bound_outputs()
        self._scratch = self._make_scratch()
        self._patches: dict[int, list[tuple[int, int]]] = {}
        self._arena_words: list[int] = []
        # Not a method of this object: the plugins would hold what holds them.
        self._plugins = session.plugins.bound(binding.launches, partial(_block, guarded=self._guarded))
        self._rows = rows_of(binding.program, binding, self._plugins)
        self._stopped = 0
        self._table, self._parameters = self._fill()
        self._table_address = address_of(self._table)
        self._words_in_arena = np.array(self._arena_words, np.intp)
        self._input_patches = [self._patch_of(tensor.buffer) for tensor in manifest.inputs]
        self._output_patches = {i: self._patch_of(root) for root, i in self._bound_outputs.items()}
        self._inputs: list[np.ndarray] = []
        self._outputs: list[np.ndarray] = []
        kinds = zip(binding.output_shapes, self._dtypes, strict=True)
        self._output_memory = [self._memory_of_output(shape, dtype) for shape, dtype in kinds]
        self._input_blocks = [
            _block(binding.sizes[one.buffer], self._guarded) for one in manifest.inputs if self._guarded
        ]

    @property
    def held_bytes(self) -> int:
        """What the program keeps besides the context's arena; records of Python are estimated."""
        outputs = sum(dtype.itemsize * prod(shape) for dtype, shape in zip(self._dtypes, self._binding.output_shapes))
        blocks = sum(block.size for block in (*self._scratch.values(), *self._input_blocks))
        records = _BYTES_OF_A_RECORD * (len(self._parameters) + 2 * len(self._binding.sizes))
        return self._table.nbytes + self._parameters.nbytes + records + outputs + blocks + self._arena.held_bytes

    def _choose_bound_outputs(self) -> dict[int, int]:
        """For each output buffer the output whose returned array is that memory."""
        bound: dict[int, int] = {}
        for i, (place, tensor) in enumerate(zip(self._binding.outputs, self._device.manifest.outputs, strict=True)):
            owner = self._device.manifest.buffers[place.root]
            if owner.kind == "output" and tensor.buffer == place.root:
                bound.setdefault(place.root, i)
        return bound

    def _memory_of_output(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> OutputMemory | GuardedOutput:
        return OutputMemory(shape, dtype) if self._guarded is None else GuardedOutput(shape, dtype, self._guarded)

    def _make_scratch(self) -> dict[int, HostBlock | GuardedBlock]:
        """Memory for output buffers of which only views are outputs."""
        owners = [(i, b) for i, b in enumerate(self._device.manifest.buffers) if b.view_of is None]
        loose = [i for i, buffer in owners if buffer.kind == "output" and i not in self._bound_outputs]
        return {i: _block(self._binding.sizes[i], self._guarded) for i in loose}

    def _fill(self) -> tuple[np.ndarray, np.ndarray]:
        lines = [-(-max(_parameter_count(row), 1) // _PARAMETER_LINE) * _PARAMETER_LINE for row in self._rows]
        parameters = aligned_empty((sum(lines) + 1,), np.dtype(np.int64))
        parameters[-1] = 0  # what an unconditional jump looks at
        table = aligned_empty((max(len(self._rows), 1), _ROW_WORDS), np.dtype(np.int64))
        base, start = address_of(parameters), 0
        zero = base + (len(parameters) - 1) * 8
        for number, (row, line) in enumerate(zip(self._rows, lines, strict=True)):
            code, flags, words = self._row(row, start, zero)
            table[number] = code, base + start * 8, flags
            parameters[start : start + len(words)] = words
            start += line
        return table, parameters

    def _row(self, row: Row, start: int, zero: int) -> tuple[int, int, list[int]]:
        """The kernel, the flags and the parameters of a row; `zero` is the address of a word that is 0."""
        if isinstance(row, KernelRow):
            entry = self._device.manifest.launches[row.launch.index]
            flags = _NO_BARRIER * entry.no_barrier + _SERIAL * (entry.serial or self._is_tiny(row.launch))
            words = [self._word(argument, start + k) for k, argument in enumerate(row.launch.args)]
            return self._device.kernel_addresses[entry.kernel], flags, words
        if isinstance(row, HostRow):
            words = [self._word(argument, start + _STOP_WORDS + k) for k, argument in enumerate(row.launch.args)]
            return 0, _REQUIRE, [zero, 0, *words]
        looked_at = zero if row.place is None else self._word(row.place, start)
        if isinstance(row, JumpRow):
            return 0, _JUMP, [looked_at, row.target]
        if isinstance(row, SizeRow):
            return 0, _SIZE, [looked_at, row.expected if row.place is not None else -1]
        return 0, _REQUIRE, [looked_at, 0]

    def _is_tiny(self, launch: BoundLaunch) -> bool:
        """Whether one worker is done before others could have taken their parts."""
        places = [argument for argument in launch.args if isinstance(argument, Address)]
        return sum(self._binding.sizes[place.root] for place in places) <= _TINY_BYTES

    def _word(self, argument: BoundArgument, at: int) -> int:
        """The parameter word of one argument; those in the caller's arrays are noted to be patched."""
        if isinstance(argument, int):
            return argument
        if isinstance(argument, float):
            return int(struct.unpack("<q", struct.pack("<d", argument))[0])
        if isinstance(argument, TensorMap):
            raise PlanError("the plan is damaged: only kernels of CUDA devices take maps of tensors")
        kind = self._device.manifest.buffers[argument.root].kind
        if kind == "arena":
            self._arena_words.append(at)
            return self._arena.address(argument.root) + argument.offset
        if kind == "weight":
            return address_of(self._device.weights[argument.root]) + argument.offset
        if argument.root in self._scratch:
            return self._scratch[argument.root].address + argument.offset
        self._patches.setdefault(argument.root, []).append((at, argument.offset))
        return 0

    def _patch_of(self, root: int) -> "Patch":
        return Patch(self._parameters, self._patches.get(root, []))

    def upload(self, inputs: Sequence[np.ndarray]) -> None:
        """Point the parameters at the caller's arrays (or at aligned copies) and at fresh output arrays."""
        self._inputs = []
        inputs = self._between_guards(inputs)
        for array, align, patch in zip(inputs, self._aligns, self._input_patches, strict=True):
            address = address_of(array)
            if self._guarded is None and address % align:
                array = _aligned_copy(array, align)
                address = address_of(array)
            patch.point_at(address)
            self._inputs.append(array)
        self._outputs = []
        self._outputs = [memory.array() for memory in self._output_memory]
        for i, patch in self._output_patches.items():
            patch.point_at(self._output_memory[i].address)

    def _between_guards(self, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """The inputs themselves, or copies between guard pages."""
        blocks = [block for block in self._input_blocks if isinstance(block, GuardedBlock)]
        return [block.holding(array) for block, array in zip(blocks, inputs, strict=True)] if blocks else inputs

    def _check_guards(self) -> None:
        """Raise `PlanError` where what lies next to guarded memory was written."""
        self._arena.check()
        for what, blocks in (("input", self._input_blocks), ("output", self._output_memory)):
            for i, block in enumerate(blocks):
                if isinstance(block, GuardedBlock | GuardedOutput):
                    block.check(f"{what} {i}")

    def _enter(self) -> None:
        """Follow the arena to where it lies now, and restore the borders where another shape has used it since."""
        if distance := self._arena.moved():
            self._parameters[self._words_in_arena] += distance
        if self._session.tenant is not self._tenancy:
            self._arena.restore_halos()
            for launch in self._plugins.values():
                launch.others_have_run()
            self._session.tenant = self._tenancy

    def execute(self) -> None:
        """Run all rows; returns when they are done, or when one stopped the run."""
        self._enter()
        self._stopped = self._run_from(1)
        while self._stopped and isinstance(row := self._rows[self._stopped - 1], HostRow):
            self._call(row, self._stopped - 1)
            self._stopped = self._run_from(self._stopped)
        if self._guarded is not None:
            self._check_guards()

    def _run_from(self, row: int) -> int:
        """Run until a row stops it; its number from 1 on, or 0. Where rows need the host, row 0 jumps to the first."""
        if self._plugins:
            self._parameters[_TARGET_WORD] = row
        return self._device.run(self._table_address, len(self._rows))

    def _call(self, row: HostRow, number: int) -> None:
        """Let a plugin compute, on the tensors whose addresses its row has."""
        launch = self._plugins[row.launch.index]
        start = (int(self._table[number, 1]) - address_of(self._parameters)) // 8 + _STOP_WORDS
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

    def download(self) -> list[np.ndarray]:
        """Copy the outputs that do not lie in a returned array already; return them all."""
        for i, (place, output) in enumerate(zip(self._binding.outputs, self._outputs, strict=True)):
            if self._bound_outputs.get(place.root) != i and output.nbytes:
                output.reshape(-1).view(np.uint8)[...] = self._bytes_at(place, output.nbytes)
        return self._outputs if self._guarded is None else [output.copy() for output in self._outputs]

    def outputs_in_place(self) -> list[DeviceTensor]:
        """The outputs in the host's memory, which is the device's."""
        return [DeviceTensor(output.ctypes.data, output.shape) for output in self.download()]

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
            whole = self._outputs[self._bound_outputs[place.root]].reshape(-1).view(np.uint8)
        return whole[place.offset : place.offset + size]

    def wait(self) -> None:
        """Nothing to wait for: `execute` is synchronous."""

    def device_times(self) -> None:
        """The host's clock counts."""

    def profile(self) -> list[float]:
        """Run row by row; a launch in a loop has the time of all its trips."""
        self._enter()
        times = [0.0] * len(self._binding.launches)
        number = 0
        while number < len(self._rows):
            row = self._rows[number]
            start = time.perf_counter()
            if isinstance(row, HostRow):
                self._call(row, number)
            elif isinstance(row, KernelRow):
                self._device.run(self._table_address + number * _ROW_WORDS * 8, 1)
            if isinstance(row, HostRow | KernelRow):
                times[row.launch.index] += (time.perf_counter() - start) * 1e3
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


def _parameter_count(row: Row) -> int:
    if isinstance(row, HostRow):
        return _STOP_WORDS + len(row.launch.args)
    return len(row.launch.args) if isinstance(row, KernelRow) else _STOP_WORDS


class Patch:
    """The parameter words that depend on where one array of the caller lies."""

    def __init__(self, parameters: np.ndarray, places: Sequence[tuple[int, int]]) -> None:
        self._parameters = parameters
        self._places = np.array([at for at, _ in places], np.intp)
        self._offsets = np.array([offset for _, offset in places], np.int64)
        self._address = 0

    def point_at(self, address: int) -> None:
        """Let the words point to an array; most callers give the same memory again and again."""
        if address != self._address:
            self._parameters[self._places] = self._offsets + address
            self._address = address


def _aligned_copy(array: np.ndarray, align: int) -> np.ndarray:
    copy = aligned_empty(array.shape, array.dtype, max(align, ALIGNMENT))
    copy[...] = array
    return copy
