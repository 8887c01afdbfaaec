"""The CPU as a device of plans: links their object code, and runs it by groups of workers or by the caller."""

from collections.abc import Collection, Sequence

import numpy as np

from mlirt.errors import PlanError
from mlirt.runtime.control_rows import rows_of
from mlirt.runtime.cpu_arena import Arena, GuardedArena, PlannedArena
from mlirt.runtime.cpu_job import Job, caller_code
from mlirt.runtime.cpu_program import CpuProgram
from mlirt.runtime.cpu_table import TableLayout
from mlirt.runtime.cpu_weights import move_weights, readable_weights
from mlirt.runtime.growing_run import Growth
from mlirt.runtime.guarded_memory import Side, guarded_side
from mlirt.runtime.host_cpu import allow_matrix_unit, refuse_foreign_code, spin_seconds
from mlirt.runtime.host_memory import HostBlock, address_of, aligned_empty
from mlirt.runtime.interpreter_door import interpreter_door
from mlirt.runtime.lent_memory import Allocator, ContextMemory, LentBlock
from mlirt.runtime.object_linker import LinkedCode
from mlirt.runtime.plan_file import Plan
from mlirt.runtime.plugin_launches import EnginePlugins
from mlirt.runtime.shape_binding import ShapeBinder, ShapeBinding
from mlirt.runtime.stop_request import StopRequest
from mlirt.runtime.worker_choice import Outcomes
from mlirt.runtime.worker_groups import ThreadChoice, WorkerGroups, shared_groups, thread_choice
from mlirt.runtime.worker_pool import BORDERED, LENGTHS, SYMBOLS, most_parts, pauses_per_second


class CpuDevice:
    """The linked code and the weights of one plan."""

    def __init__(
        self,
        plan: Plan,
        spin_ms: float | None = None,
        choice: ThreadChoice | None = None,
        allocator: Allocator | None = None,
    ) -> None:
        """`choice`: the threads that run it, and the groups that they are divided among.

        Weights are copied into memory of the `allocator`, where there is one.
        """
        self.manifest = plan.manifest
        self._spin_seconds = spin_seconds(spin_ms)
        refuse_foreign_code(self.manifest.target.triple, self.manifest.target.features)
        allow_matrix_unit(self.manifest.target.features)
        self.choice = choice or thread_choice()
        self.parts = most_parts(self.choice.each)
        self._groups: WorkerGroups | None = None
        self._main_section = self.manifest.main or ""
        self.bordered = self.follows_lengths = 0
        self._code, self.kernel_addresses = self._link(plan)
        main = None if self._code is None else self._code.addresses[self._main_section, "mlirt_alone"]
        self.on_caller = caller_code(main)
        self.door = 0 if self._code is None else interpreter_door(self._pauses_per_second)
        self.guarded: Side | None = guarded_side()
        self.weights = readable_weights(self.manifest, plan.weights, self.guarded)
        self._weight_block = None if allocator is None else move_weights(self.weights, self.manifest, allocator)
        self.plugins = EnginePlugins(self.manifest, plan.weights)
        buffers = self.manifest.buffers
        self.kernel_array = np.array(self.kernel_addresses, np.int64)
        self.is_arena = np.array([buffer.kind == "arena" for buffer in buffers], bool)
        self.weight_addresses = np.zeros(len(buffers), np.int64)
        for i, weight in self.weights.items():
            self.weight_addresses[i] = address_of(weight)
        self.output_owners = [i for i, one in enumerate(buffers) if one.view_of is None and one.kind == "output"]
        self.straight: TableLayout | None = None
        """Where the rows of programs stand that make all launches in a row, once there is one."""
        self.outcomes = Outcomes()

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
        has_borders = any(buffer.border for buffer in self.manifest.buffers)
        needed = [(self._main_section, symbol) for symbol in (*SYMBOLS, *[BORDERED] * has_borders)] + homes
        objects = {section: memoryview(plan.sections[section]) for section in {section for section, _ in needed}}
        code = LinkedCode(dict(sorted(objects.items())), needed, [(self._main_section, LENGTHS)])
        self.bordered = code.addresses.get((self._main_section, BORDERED), 0)
        self.follows_lengths = code.addresses.get((self._main_section, LENGTHS), 0)
        places = iter([code.addresses[home] for home in homes])
        return code, [0 if kernel.plugin is not None else next(places) for kernel in self.manifest.kernels]

    def _pauses_per_second(self) -> float:
        return 0.0 if self._code is None else pauses_per_second(self._code.addresses[self._main_section, "mlirt_spin"])

    @property
    def groups(self) -> WorkerGroups | None:
        """The workers that runs take turns with; None for a plan without code."""
        if self._code is None:
            return None
        if self._groups is None or not self._groups.is_alive:
            self._groups = shared_groups(self._code, self._main_section, self.choice)
        return self._groups

    def run(self, job: Job, stop: StopRequest | None = None) -> int:
        """Run the rows of a job by a group of workers, when it is the caller's turn.

        The number of the row that stopped it, or 0; less than 0 where it was asked to stop.
        """
        groups = self.groups
        if groups is None or not job.rows:
            return 0
        group = groups.take(None if stop is None else stop.deadline)
        if group is None:
            assert stop is not None
            raise stop.error()
        try:
            if group.pool is None:
                return self.on_caller.run(job, stop)
            request = 0 if stop is None else stop.address
            return group.pool.run(job.table, job.rows, request, self._spin_seconds)
        finally:
            groups.give_back(group)

    def layout(self, binding: ShapeBinding, hosted: Collection[int]) -> TableLayout:
        """Where the rows of a program stand; the host makes the launches `hosted`."""
        if binding.arguments.has_maps:
            raise PlanError("the plan is damaged: only kernels of CUDA devices take maps of tensors")
        if hosted or not binding.is_straight:
            rows = rows_of(binding.program, binding, hosted)
            return TableLayout.of(self.manifest, binding, rows, is_shared=False)
        if self.straight is None or self.straight.arguments is not binding.arguments:
            rows = rows_of(binding.program, binding)
            self.straight = TableLayout.of(self.manifest, binding, rows, is_shared=True)
        return self.straight

    def enter(self) -> None:
        """Nothing: there is one CPU."""

    def leave(self, before: int | None) -> None:
        """Nothing."""

    def host_array(self, shape: Sequence[int], dtype: np.dtype[np.generic]) -> np.ndarray:
        """An array that is aligned, so that kernels read it where it lies."""
        return aligned_empty(tuple(shape), dtype)

    @property
    def decides(self) -> bool:
        """Branches and loops are rows of the table, which the workers follow."""
        return True

    def session(self, memory: ContextMemory | None = None) -> "CpuSession":
        """A new context's memory; that of the host unless it is given."""
        return CpuSession(self, memory)


class CpuSession:
    """The arena of one context; programs for several shapes take turns in it."""

    def __init__(self, device: CpuDevice, memory: ContextMemory | None = None) -> None:
        self.device = device
        self.arena: HostBlock | LentBlock = HostBlock(0)
        self._memory = memory
        self.tenant: object = None
        self.plugins = device.plugins.for_context()

    def prepare(self, binding: ShapeBinding, *, copies_small: bool = True) -> CpuProgram:
        """Make the program for one set of shapes; a larger arena is got where needed, which older programs move to."""
        return CpuProgram(self, binding, copies_small=copies_small)

    def growth(
        self, binder: ShapeBinder, shapes: Sequence[tuple[int, ...]], before: Sequence[tuple[int, ...]]
    ) -> Growth | None:
        """A program for lengths that go on growing, from `before` to `shapes`; None where each needs its own."""
        device = self.device
        if not device.follows_lengths or device.guarded is not None or device.straight is None:
            return None
        if self._memory is not None:
            return None  # it is as large as shapes need it, with no room
        lengths = binder.lengths(device.straight.spots)
        if lengths is None:
            return None
        binding, room = binder.bind_with_room(shapes, before)
        return self.prepare(binding, copies_small=False).growth(lengths, room)

    def outgrown_bytes(self) -> int:
        """None: programs move to the largest arena."""
        return 0

    def arena_of(self, binding: ShapeBinding) -> Arena:
        """Where the arena buffers of a program for one set of shapes lie."""
        if self.device.guarded is not None:
            return GuardedArena(self.device.manifest, binding, self.device.guarded)
        if binding.arena_bytes > self.arena.size:
            size = binding.arena_bytes
            self.arena = HostBlock(size) if self._memory is None else self._memory.arena(size)
            self.tenant = None
        return PlannedArena(lambda: self.arena, binding)

    def set_input_consumed_event(self, event: int | None) -> bool:
        """There are no events here: a run has read its inputs when it returns."""
        return False
