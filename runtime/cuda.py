"""Runs plans on a CUDA device: cubins and weights once, a stream and one block of memory for each context."""

import logging
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from mlirt.errors import OutOfMemoryError, PlanError
from mlirt.runtime.cuda_architectures import choose_architecture, is_ptx, refuse_device, starts_early
from mlirt.runtime.cuda_driver import open_driver
from mlirt.runtime.cuda_graph import Lanes
from mlirt.runtime.cuda_memory import DeviceBlock, PinnedBlock
from mlirt.runtime.cuda_program import TIMES, CudaProgram
from mlirt.runtime.current_device import on_its_device
from mlirt.runtime.driver_interface import DeviceError, Driver, Handle
from mlirt.runtime.host_memory import address_of
from mlirt.runtime.kept_ptx import ptx_text
from mlirt.runtime.lent_memory import AllocatedBlock, Allocator, ContextMemory, LentBlock
from mlirt.runtime.manifest import Kernel, Manifest
from mlirt.runtime.memory_planning import aligned
from mlirt.runtime.pinned_memory import PinnedMemory
from mlirt.runtime.plan_file import Plan
from mlirt.runtime.plugin_launches import EnginePlugins
from mlirt.runtime.shape_binding import ShapeBinder, ShapeBinding
from mlirt.runtime.symbol_values import Shape


class CudaDevice:
    """The loaded cubins and the uploaded weights of one plan, on one device: the current one unless one is given."""

    parts = 1

    def __init__(
        self,
        plan: Plan,
        driver: Driver | None = None,
        allocator: Allocator | None = None,
        ordinal: int | None = None,
    ) -> None:
        """`ordinal`: the number of the device where it is not the current one."""
        self.driver = driver or open_driver(ordinal)
        self._open(plan, allocator)

    @on_its_device
    def _open(self, plan: Plan, allocator: Allocator | None) -> None:
        self.manifest = plan.manifest
        self._allocator = allocator
        self._plan = plan
        self._modules: dict[str, Handle] = {}
        self._functions: dict[int, Handle] = {}
        self._loading = threading.Lock()
        self._pinned = PinnedMemory(self.driver)
        self._capability, self._compiles = self.driver.compute_capability(), False
        wanted = {kernel.call.library for kernel in self.manifest.kernels if kernel.call is not None}
        self.libraries = {name: self.driver.library(name) for name in sorted(wanted)}
        self._codes = [self._code(kernel) for kernel in self.manifest.kernels]
        self._check_shared_memory()
        if not self.driver.loads_lazily():
            for number in range(len(self._codes)):
                self.function(number)
        self.setter = self._load_setter(plan)
        """The kernel that sets a condition of a graph; None where the host decides."""
        self._weight_block, self.weights = self._upload(self.manifest, plan.weights)
        self.plugins = EnginePlugins(self.manifest, plan.weights)

    def _code(self, kernel: Kernel) -> str | None:
        """Which of a kernel's codes runs on the device; None for one that a library or a plugin computes."""
        if kernel.call is not None or kernel.plugin is not None:
            return None
        arch = choose_architecture(sorted(kernel.objects), self._capability)
        if arch is None:
            raise refuse_device(list(kernel.objects), self._capability)
        return arch

    def _check_shared_memory(self) -> None:
        """Refuse code of another device of its kind whose blocks have more shared memory than this device's."""
        most = self.driver.figures()["shared_bytes"]
        for kernel in self.manifest.kernels:
            if most and kernel.shared_bytes > most:
                device = f"this device (sm_{self._capability[0]}{self._capability[1]})"
                raise PlanError(
                    f"kernel {kernel.name[:80]!r} needs {kernel.shared_bytes} bytes of shared memory, and a block of "
                    f"{device} has {most:.0f}; rebuild the plan for this device"
                )

    def starts_early(self, number: int) -> bool:
        """Whether a kernel, by its number, may begin before the launch before it has ended: its code waits for that."""
        arch = self._codes[number]
        is_asked = self.manifest.kernels[number].dependent_launch
        return is_asked and arch is not None and starts_early(arch, self._capability)

    def function(self, number: int) -> Handle:
        """The code of a kernel by its number, loaded when it is first asked for; 0 for one that has none."""
        arch = self._codes[number]
        if arch is None:
            return 0
        with self._loading:
            if number not in self._functions:
                self._functions[number] = self._load(self.manifest.kernels[number], arch)
            return self._functions[number]

    def _load(self, kernel: Kernel, arch: str) -> Handle:
        section = kernel.objects[arch]
        try:
            if section not in self._modules:
                code = bytes(self._plan.sections[section])
                if is_ptx(arch):
                    code = ptx_text(code, section)
                    self._tell_of_ptx(arch)
                elif code[:4] != b"\x7fELF":
                    raise PlanError(f"damaged object code {section!r}: not a cubin")
                self._modules[section] = self.driver.load_module(code)
            return self.driver.function(self._modules[section], kernel.symbol, kernel.shared_bytes)
        except DeviceError as error:
            raise PlanError(f"kernel {kernel.name[:80]!r} cannot be loaded: {error}") from error

    def _tell_of_ptx(self, arch: str) -> None:
        """One line of the log `mlirt` for all kernels that the driver compiles."""
        if not self._compiles:
            self._compiles = True
            logging.getLogger("mlirt").info(
                "mlirt: the plan has no machine code for sm_%d%d: the driver compiles PTX of %s and keeps the result",
                *self._capability,
                arch,
            )

    @property
    def loaded_modules(self) -> int:
        """How many pieces of code are on the device."""
        return len(self._modules)

    def _load_setter(self, plan: Plan) -> Handle | None:
        arch = choose_architecture(sorted(self.manifest.conditions), self._capability)
        if arch is None or self.driver.conditional_graphs() is None:
            return None
        section = self.manifest.conditions[arch]
        self._modules[section] = self.driver.load_module(bytes(plan.sections[section]))
        return self.driver.function(self._modules[section], "set_condition", 0)

    def __del__(self) -> None:
        with suppress(DeviceError, AttributeError):
            self._unload()

    @on_its_device
    def _unload(self) -> None:
        for module in self._modules.values():
            self.driver.unload_module(module)

    def _upload(
        self, manifest: Manifest, weights: Mapping[str, np.ndarray]
    ) -> tuple[DeviceBlock | LentBlock, dict[int, int]]:
        """One block with all weights, and the address of each weight buffer in it."""
        places: list[tuple[int, str, int]] = []
        total = 0
        for i, buffer in enumerate(manifest.buffers):
            if buffer.kind == "weight" and buffer.view_of is None and buffer.weight is not None:
                places.append((i, buffer.weight, total))
                total += aligned(weights[buffer.weight].nbytes)
        block = self._block_of_weights(total)
        stream = self.driver.new_stream()
        # The driver has read ordinary memory when a copy from it returns.
        for _, key, offset in places:
            array = np.ascontiguousarray(weights[key])
            self.driver.copy_to_device(block.address + offset, address_of(array), array.nbytes, stream)
        self.driver.synchronize(stream)
        self.driver.free_stream(stream)
        return block, {i: block.address + offset for i, _, offset in places}

    def _block_of_weights(self, size: int) -> DeviceBlock | LentBlock:
        if self._allocator is None or not size:
            return DeviceBlock(self.driver, size)
        try:
            return AllocatedBlock(self._allocator, size)
        except OutOfMemoryError as error:
            raise OutOfMemoryError(f"Allocation failed during deserialization of weights. {error}") from error

    def enter(self) -> Handle | None:
        """Make the device current; what is returned tells `leave` which one was."""
        return self.driver.enter()

    def leave(self, before: Handle | None) -> None:
        """Make the device current again that was."""
        self.driver.leave(before)

    @on_its_device
    def host_array(self, shape: Sequence[int], dtype: np.dtype[np.generic]) -> np.ndarray:
        """An uninitialised array in pinned memory, from which runs copy without a copy on the host."""
        return self._pinned.array(shape, dtype)

    @property
    def decides(self) -> bool:
        """Whether branches and loops without checks are nodes of graphs."""
        return self.setter is not None

    def session(self, memory: ContextMemory | None = None, stream: Handle | None = None) -> "CudaSession":
        """A new context's memory, working on `stream` or on a stream of its own."""
        return CudaSession(self, stream, memory)


class CudaSession:
    """The memory and the stream of one context; programs for several shapes take turns in it."""

    def __init__(self, device: CudaDevice, stream: Handle | None, memory: ContextMemory | None = None) -> None:
        self.device, self.driver = device, device.driver
        self._memory = memory
        self._owns_stream = stream is None
        self._begin(stream)
        self.block: DeviceBlock | LentBlock | None = None
        self._arena: LentBlock | None = None
        self.staging: PinnedBlock | None = None
        self._outgrown: list[weakref.ref[DeviceBlock | LentBlock | PinnedBlock]] = []
        self.is_busy = False
        """Whether copies on the stream may still use the staging memory."""
        self.tenant: object = None
        self.plugins = device.plugins.for_context()
        self.consumed: Handle | None = None
        """An event of the caller that is recorded when the inputs of a run are on the device."""
        self.is_in_graphs = False
        """Whether a graph of a caller may run at any time, which writes the memory as its run did."""
        self._in_graphs: list[object] = []
        self._last_stream: Handle | None = None
        """The caller's stream that has done all that the context's has to wait for, and nothing came on it since."""

    @on_its_device
    def _begin(self, stream: Handle | None) -> None:
        self.stream = self.driver.new_stream() if stream is None else stream
        self.lanes = Lanes(self.driver, self.stream)
        self.events = [self.driver.new_event() for _ in range(TIMES + 2)]

    def __del__(self) -> None:
        with suppress(DeviceError, AttributeError):
            self._end()

    @on_its_device
    def _end(self) -> None:
        for event in self.events:
            self.driver.free_event(event)
        self.lanes.close()
        if self._owns_stream:
            self.driver.free_stream(self.stream)

    def runs_on(self, stream: Handle | None) -> None:
        """Note that the memory is used next on a stream of a caller; None for the context's own."""
        self._last_stream = stream

    def has_run_on(self, stream: Handle) -> bool:
        """Whether all that uses the memory has been queued on this stream of a caller."""
        return self._last_stream == stream

    def keep_for_graphs(self, owners: Iterable[object]) -> None:
        """Keep owners of memory as long as the context: a caller's graph has its addresses."""
        self.is_in_graphs = True
        self._in_graphs += [owner for owner in owners if all(owner is not one for one in self._in_graphs)]

    def set_input_consumed_event(self, event: Handle | None) -> bool:
        """Record an event in each run once its inputs are copied; None for none."""
        self.consumed = event
        return True

    @on_its_device
    def prepare(self, binding: ShapeBinding, *, copies_small: bool = True) -> CudaProgram:
        """Make the program for one set of shapes; more memory is got where needed (older programs keep theirs)."""
        return CudaProgram(self, binding)

    def lent_arena(self, size: int) -> LentBlock | None:
        """Memory that is given to the context for an arena of at least `size` bytes; None where it has its own."""
        if self._memory is not None and size and (self._arena is None or self._arena.size < size):
            fresh = self._memory.arena(size)
            self._retire(self._arena)
            self._arena = fresh
        return self._arena

    def block_of(self, size: int) -> DeviceBlock | LentBlock:
        """The context's block of device memory, of at least `size` bytes."""
        if self.block is None or self.block.size < size:
            lender = None if self._memory is None or not size else self._memory.other
            fresh = DeviceBlock(self.device.driver, size) if lender is None else lender(size)
            self._retire(self.block)
            self.block = fresh
        return self.block

    def staging_of(self, size: int) -> PinnedBlock:
        """The context's memory of the host for inputs and outputs on their way, of at least `size` bytes."""
        if self.staging is None or self.staging.size < size:
            if self.is_busy:
                self.device.driver.synchronize(self.stream)
                self.is_busy = False
            fresh = PinnedBlock(self.device.driver, size)
            self._retire(self.staging)
            self.staging = fresh
        return self.staging

    def _retire(self, block: DeviceBlock | LentBlock | PinnedBlock | None) -> None:
        self._outgrown = [one for one in self._outgrown if one() is not None]
        if block is not None:
            self._outgrown.append(weakref.ref(block))

    def growth(self, binder: ShapeBinder, shapes: Sequence[Shape], before: Sequence[Shape]) -> None:
        """None: graphs are made for shapes."""

    def outgrown_bytes(self) -> int:
        """The blocks that older programs keep."""
        return sum(block.size for one in self._outgrown if (block := one()) is not None)
