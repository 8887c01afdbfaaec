"""The engine: a plan that is loaded on its device and answers `run`; `load` opens one from a file."""

import os
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import get_ident
from typing import Any

import numpy as np

from mlirt.atomic_file import Bytes
from mlirt.errors import InvalidInputError, PlanError, reports_shortage
from mlirt.runtime.array_formats import ArrayFormats
from mlirt.runtime.bound_run import BoundRun
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.current_device import current_ordinal
from mlirt.runtime.debug_tensors import debug_plan
from mlirt.runtime.decisions import Decision, decisions, is_one_graph
from mlirt.runtime.described_plan import DescribedPlan
from mlirt.runtime.device import Device
from mlirt.runtime.device_of_plan import check_machine, device_of, driver_is_here
from mlirt.runtime.device_run import has_device_tensors, run_on_device
from mlirt.runtime.fair_queue import FairQueue, QueueUse
from mlirt.runtime.garbage_collection import rare_collections
from mlirt.runtime.layer_times import Profile
from mlirt.runtime.lent_memory import Allocator, ContextMemory, memory_of
from mlirt.runtime.notebook_html import engine_html
from mlirt.runtime.output_arrays import host_output, put_into
from mlirt.runtime.plan_file import Plan, read_plan
from mlirt.runtime.plan_source import PlanFile, large_file
from mlirt.runtime.python_callers import CALLERS
from mlirt.runtime.run_state import MAIN, StateView
from mlirt.runtime.shape_binding import ShapeBinder
from mlirt.runtime.state_pairs import initial_arrays
from mlirt.runtime.stop_request import StopRequest
from mlirt.runtime.submitted_runs import RunFuture, SubmittedRuns
from mlirt.runtime.worker_groups import HasGroups, thread_choice

DebugListener = Callable[[str, np.ndarray], object]
"""What is told name and elements of a debug tensor."""


@dataclass(frozen=True)
class RequestUse:
    """How the runs of an engine have met."""

    contexts: QueueUse
    """At the contexts of `Engine.run`."""
    groups: QueueUse | None
    """At the groups of workers that all engines with the same threads and streams share; None without such."""
    woken: int
    """How often a sleeping worker of these groups was woken."""


class Engine(DescribedPlan):
    """A plan on its device. `run` uses a context of its own; make others for other threads."""

    @reports_shortage("the engine")
    def __init__(
        self,
        plan: Plan,
        spin_ms: float | None = None,
        *,
        shape_cache_mb: float | None = None,
        threads: int | None = None,
        streams: int | None = None,
        waits: bool = False,
        allocator: Allocator | None = None,
        memory: ContextMemory | None = None,
    ) -> None:
        """The options are those of `load`. One that `waits` opens its device for the first run, so that it can be saved
        where there is none. Weights lie in memory of the `allocator`, contexts have `memory`, where these are given.
        The GPU is the one that is current now in this thread.
        """
        self._allocator, self._memory = allocator, memory
        self._ordinal = current_ordinal() if plan.manifest.target.kind == "cuda" else 0
        self.plan = plan
        self._file = None if plan.origin is None else plan.origin.file
        self._threads, self._streams = threads, streams
        self._choice = thread_choice(threads, streams)
        self._spin_ms = spin_ms
        self._shape_cache_mb = shape_cache_mb
        self._listener: DebugListener | None = None
        if not waits:
            _ = self.context

    @cached_property
    def _device(self) -> Device:
        return device_of(self.plan, self._spin_ms, self._choice, self._allocator, self._ordinal)

    def open_device(self) -> None:
        """Load code and weights now; raises `PlanError` where the device is not here."""
        _ = self._device

    @contextmanager
    def device_current(self) -> Generator[None]:
        """Let the engine's GPU be current in this thread, and the one that was so before again afterwards."""
        before = self._device.enter()
        try:
            yield
        finally:
            self._device.leave(before)

    @cached_property
    def _binder(self) -> ShapeBinder:
        return ShapeBinder(self.plan.manifest, self._device.parts)

    @cached_property
    def context(self) -> ExecutionContext:
        """The context that `run` uses."""
        return self.create_execution_context()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return engine_html(self)

    @property
    def streams(self) -> int:
        """How many runs may go on at once."""
        return self._contexts.count

    @cached_property
    def _beside(self) -> "Engine":
        if not self.debug_tensors:
            raise InvalidInputError("the engine has no debug tensors; name them when it is built: compile(debug=[..])")
        with self.device_current():
            return Engine(debug_plan(self.plan), self._spin_ms, threads=self._threads)

    def debug(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The debug tensors by name for inputs by name, computed beside: this engine's kernels are as without them."""
        return self._debug(feeds, self.context.runs)

    def _debug(self, feeds: Mapping[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
        beside = self._beside
        beside.context.runs = number  # which random numbers are drawn by
        return beside.run(feeds)

    def set_debug_listener(self, listener: "DebugListener | None") -> None:
        """Let a function be called with name and array of each debug tensor, behind each `run`; None for none."""
        if listener is not None:
            _ = self._beside
        self._listener = listener

    def host_array(self, shape: Sequence[int], dtype: np.dtype[np.generic]) -> np.ndarray:
        """An uninitialised array for an input, in the host's memory from which a run gets it soonest.

        For a GPU that is pinned memory: `run` lets the GPU read it where it lies. Other arrays are copied there first.
        """
        return self._device.host_array(shape, dtype)

    @property
    def joins_arrays(self) -> bool:
        """Whether `run` copies the parts of `JoinedArrays` to where kernels read them, without a copy on the host."""
        return self.plan.manifest.target.kind == "cuda" and not self._has_formats

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Each branch and loop of the network, and whether the device or the host decides about it."""
        return decisions(self.plan.manifest, on_device=self._device.decides)

    @property
    def is_one_graph(self) -> bool:
        """Whether a run on a GPU is one CUDA graph (tensorrt-features.md#30.12)."""
        return is_one_graph(self.plan.manifest, on_device=self._device.decides)

    @reports_shortage("the engine")
    def create_execution_context(
        self, *, keeps_state: bool = True, memory: ContextMemory | None = None
    ) -> ExecutionContext:
        """A context with memory of its own, or what is given, and state; without it states are as other tensors are."""
        plan = self.plan if keeps_state else self.plan.without_state()
        return _context_of(plan, self._device, self._shape_cache_mb, self._binder, memory or self._memory)

    @cached_property
    def _contexts(self) -> FairQueue[ExecutionContext]:
        """The contexts of `run`, one for each stream; a network that counts its runs, or keeps state, has one."""
        plan, device, binder, first = self.plan, self._device, self._binder, self.context
        shape_cache_mb, memory = self._shape_cache_mb, self._memory
        _engines.add(self)

        def context_of(number: int) -> ExecutionContext:  # not a method: the engine would hold what holds it
            return _context_of(plan, device, shape_cache_mb, binder, memory) if number else first

        manifest = plan.manifest
        is_one = len(manifest.given_inputs) < len(manifest.inputs) or bool(manifest.state)
        return FairQueue(1 if is_one else self._choice.streams, context_of)

    @cached_property
    def _submitted(self) -> SubmittedRuns:
        _engines.add(self)
        return SubmittedRuns(self._contexts.count)

    def free_after_fork(self) -> None:
        """In the child: contexts that other threads were running have nobody who would give them back."""
        self.__dict__.pop("_contexts", None)
        self.__dict__.pop("_submitted", None)

    @property
    def state(self) -> StateView:
        """What the next run begins with, by input, of an engine with state; values are copies, and can be set."""
        return self.context.state

    def reset_state(self, sequence: str | None = None) -> None:
        """Let a sequence of runs, or all of them, begin anew."""
        self.context.reset_state(sequence)

    @property
    def requests(self) -> RequestUse:
        """How many runs went on at the same time, how often one had to wait, and how often workers were woken."""
        device = self._device
        groups = device.groups if isinstance(device, HasGroups) else None
        if groups is None:
            return RequestUse(self._contexts.use, None, 0)
        return RequestUse(self._contexts.use, groups.use, groups.woken)

    def run(
        self,
        feeds: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray] | None = None,
        *,
        timeout: float | None = None,
        sequence: str = MAIN,
    ) -> dict[str, np.ndarray]:
        """The outputs by name for inputs by name; InvalidInputError where an array does not fit.

        They are in fresh arrays, but for those that `outputs` has an array of the same type and shape for. Kernels of a
        CPU write into such an array where it lies, if it is contiguous, aligned, and shares no memory with another one.
        `timeout`: the seconds after which the run is stopped, be it that it waits for its turn; `DeadlineError` then.
        Calls from several threads run side by side on as many streams as the engine has, and wait for their turn.

        Inputs and `outputs` may be tensors of other libraries on the host, too (`__dlpack__`); they are not copied.
        Where inputs lie on a GPU, `run_on_stream` is used.

        An engine with state (`compile(state=..)`) keeps that of each `sequence`, by its name, apart.
        """
        if self._listener is not None:
            return self._heard(feeds, outputs or {}, None if timeout is None else StopRequest(timeout), sequence)
        if timeout is None:
            found = self.run_short(feeds, outputs)
            if found is not None:
                return found
        return self._run(feeds, outputs or {}, None if timeout is None else StopRequest(timeout), sequence)

    def run_short(
        self, feeds: Mapping[str, Any], outputs: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray] | None:
        """What `run` gives, where that comes down to one call on arrays and tensors that are right as they are.

        Else None, with nothing done: `run` says what is wrong, or goes the long way.
        """
        if self._listener is not None or self._has_formats:
            return None
        if CALLERS.are_many or get_ident() != CALLERS.last:
            CALLERS.come()
        context = self.context
        short = context.short
        if short is None:
            return None
        found = short(feeds, outputs) if short.is_brief else self._short_in_turn(feeds, outputs)
        if found is not None:
            return found
        other = context.short_of_others(feeds)
        return other(feeds, outputs) if other is not None and other.is_brief else None

    def _short_in_turn(
        self, feeds: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray] | None
    ) -> dict[str, np.ndarray] | None:
        """A run of a context that is free, in the caller's turn; None where that is not all that there is to it."""
        contexts = self._contexts
        context = contexts.take()
        assert context is not None  # there is no deadline
        try:
            return context.run_short(feeds, outputs)
        finally:
            contexts.give_back(context)

    def _heard(
        self,
        feeds: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        stop: StopRequest | None,
        sequence: str,
    ) -> dict[str, np.ndarray]:
        number, listener = self.context.runs, self._listener
        found = self._run(feeds, outputs, stop, sequence)
        if listener is not None:
            for name, array in self._debug(feeds, number).items():
                listener(name, array)
        return found

    def _run(
        self,
        feeds: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        stop: StopRequest | None,
        sequence: str = MAIN,
    ) -> dict[str, np.ndarray]:
        if has_device_tensors(feeds):
            return self.run_on_stream(feeds, outputs)
        arrays = {name: host_output(name, one) for name, one in outputs.items()}
        contexts = self._contexts
        context = contexts.take(None if stop is None else stop.deadline)
        if context is None:
            assert stop is not None
            raise stop.error()
        try:
            if not self._has_formats:
                return {**context.run(feeds, arrays, stop=stop, sequence=sequence), **outputs}
            found = context.run(self.packed(feeds), stop=stop, sequence=sequence)
            return put_into(outputs, self._formats.unpacked(found))
        finally:
            contexts.give_back(context)

    def submit(
        self,
        feeds: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray] | None = None,
        *,
        timeout: float | None = None,
        sequence: str = MAIN,
    ) -> RunFuture:
        """Let a run be made by a thread of the engine, of which there is one for each stream; the first come is first.

        The arguments are those of `run`; the arrays are the engine's until the future is done. `timeout` counts from
        now on. `cancel()` of the future takes the run out of the queue, or ends it between two launches.
        """
        stop = StopRequest(timeout)
        return self._submitted.submit(lambda: self._run(feeds, outputs or {}, stop, sequence), stop)

    async def run_async(
        self,
        feeds: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray] | None = None,
        *,
        timeout: float | None = None,
        sequence: str = MAIN,
    ) -> dict[str, np.ndarray]:
        """`submit` for coroutines. A task that is cancelled ends its run between two launches."""
        import asyncio  # only those who have a loop need it

        return await asyncio.wrap_future(self.submit(feeds, outputs, timeout=timeout, sequence=sequence))

    def bind(self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray] | None = None) -> BoundRun:
        """Check arrays once: calls of the object that is returned run on them, whatever they hold by then.

        `outputs` are arrays that results are written into; others are made, and are the same in each call. The object
        has a context of its own, and takes one call at a time. InvalidInputError where an array does not fit, or the
        engine was built for other formats than arrays have.
        """
        if self._has_formats:
            raise InvalidInputError("arrays of an engine with formats such as chw4 are converted in each run; use run")
        return self.create_execution_context().bind(inputs, outputs)

    def run_on_stream(self, feeds: Mapping[str, Any], outputs: Mapping[str, Any], stream: int = 0) -> dict[str, Any]:
        """Queue a run on tensors that lie on the GPU, and return `outputs` without waiting.

        feeds, outputs: all inputs and outputs by name, with `__dlpack__` or `__cuda_array_interface__`. stream: the
        handle of a CUDA stream, such as `torch.cuda.current_stream().cuda_stream`; 0 is the legacy default stream.
        """
        return run_on_device(self.context, self.plan.manifest, feeds, outputs, stream)

    def run_positional(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """The same with inputs and outputs in the order of the network."""
        if not self._has_formats:
            return self.context.run_positional(*arrays)
        names = [tensor.name for tensor in self.inputs]
        packed = self.packed(dict(zip(names, arrays, strict=False)))
        found = self.context.run_positional(*packed.values(), *arrays[len(packed) :])
        return list(self._formats.unpacked(dict(zip((one.name for one in self.outputs), found, strict=True))).values())

    def profile(self, feeds: Mapping[str, np.ndarray], *, runs: int = 1) -> Profile:
        """(layer, milliseconds) of every launch, each run alone: the median of so many `runs`.

        A notebook shows it as a table; `records()` are for pandas and polars.
        """
        if runs < 1:
            raise InvalidInputError(f"runs={runs}: expected at least 1")
        packed = self.packed(feeds)
        return Profile([self.context.profile(packed) for _ in range(runs)], self.layers)

    @cached_property
    def _formats(self) -> ArrayFormats:
        return ArrayFormats(self.plan.manifest)

    @cached_property
    def _has_formats(self) -> bool:  # asked in each run, so that it is kept here
        return self._formats.are_any

    def packed(self, feeds: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """The inputs as a context takes them: in the formats that the engine was built for."""
        return self._formats.packed(feeds)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan file at once or not at all."""
        self.plan.save(path)
        self._file = large_file(path)

    def check_weights(self) -> None:
        """Raise PlanError where the weights are not those that were saved, for an engine loaded without this check."""
        self.plan.check_weights()

    def __reduce__(self) -> tuple[Callable[..., "Engine"], tuple[object, ...]]:
        """Pickled as its plan, so that it can be handed to another process, which opens it on its own device.

        A plan of more than 32 MiB that is in a file, from which it was loaded or to which it was saved last, is pickled
        as the name of the file, as long as nobody has written to it.
        """
        if self._file is not None and self._file.is_unchanged:
            return _opened, (self._file, self._spin_ms, self._shape_cache_mb, self._threads, self._streams)
        return _opened, (self.plan.to_bytes(), self._spin_ms, self._shape_cache_mb, self._threads, self._streams)


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


def _free_after_fork() -> None:
    for engine in list(_engines):
        engine.free_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_after_fork)


def load(
    source: str | os.PathLike[str] | Bytes,
    *,
    spin_ms: float | None = None,
    shape_cache_mb: float | None = None,
    check_weights: bool = True,
    threads: int | None = None,
    streams: int | None = None,
    allocator: Allocator | None = None,
) -> Engine:
    """Open a plan file, or its bytes; PlanError where it is damaged or was made for another machine.

    A plan for a GPU is opened on the device that is current in this thread (cudaSetDevice), and stays there.

    Where there is no CUDA driver such a plan tells its inputs and outputs all the same; running it is a PlanError.

    spin_ms: on a CPU, for how many milliseconds after a run idle workers wait for the next one before they sleep; 0 is
        not at all, None what the environment variable MLIRT_SPIN_MS says, else up to 50, as it follows from when runs
        come and who else wants the processors.
    shape_cache_mb: how many MiB each context may keep of what runs have worked out for their shapes, so that it is
        ready when these come again; 0 keeps the last one alone, None what MLIRT_SHAPE_CACHE_MB says, else 64.
    check_weights: whether to compare the weights with their digest, for which all of them are read; without it
        `engine.check_weights()` does so when it is asked to. All else in the file is always checked.
    threads: on a CPU, the threads that compute, in all; None is as many as there are processors (or time of them in a
        container), at most MLIRT_NUM_THREADS.
    streams: how many runs may go on at once. On a CPU the threads are divided among as many groups: 1, as with None, is
        for the quickest answer, as many as threads for the most answers. Who waits is served in the order of arrival,
        and overtaken for a millisecond at most.
    allocator: gives the memory of weights and of what lies between inputs and outputs, of the host for a CPU, else of
        the GPU (`take(size)` gives an address that is a multiple of 256, `give_back(address)`), such as
        `mlirt.TorchAllocator()`. Copies of the engine have none.
    """
    memory = None if allocator is None else memory_of(allocator)
    with rare_collections():
        plan = read_plan(source, check_weights=check_weights)
        check_machine(plan)
        waits = plan.manifest.target.kind == "cuda" and not driver_is_here()
        return Engine(
            plan,
            spin_ms,
            shape_cache_mb=shape_cache_mb,
            threads=threads,
            streams=streams,
            waits=waits,
            allocator=allocator,
            memory=memory,
        )


def _opened(
    plan: bytes | PlanFile,
    spin_ms: float | None,
    shape_cache_mb: float | None,
    threads: int | None,
    streams: int | None,
) -> Engine:
    if isinstance(plan, PlanFile) and not plan.is_unchanged:
        raise PlanError(f"the engine was pickled as the name of its plan file {plan.path}, which is not as it was then")
    source = plan.path if isinstance(plan, PlanFile) else plan
    return load(source, spin_ms=spin_ms, shape_cache_mb=shape_cache_mb, threads=threads, streams=streams)


def _context_of(
    plan: Plan,
    device: Device,
    shape_cache_mb: float | None,
    binder: ShapeBinder,
    memory: ContextMemory | None = None,
) -> ExecutionContext:
    initial = initial_arrays(plan.manifest, plan.sections)
    return ExecutionContext(plan.manifest, device.session(memory), shape_cache_mb, binder, initial)
