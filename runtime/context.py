"""One user of an engine: checks the inputs, keeps the programs of shapes, runs under its own lock."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

import numpy as np

from mlirt.errors import InvalidInputError, MlirtError, PlanError, out_of_memory, reports_shortage
from mlirt.runtime.bound_run import BoundRun
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.device import DeviceTensor, Program, Session
from mlirt.runtime.expressions import evaluate
from mlirt.runtime.growing_run import GrowingRun, Growth, have_grown
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.measured_runs import MeasuredRuns
from mlirt.runtime.named_inputs import NamedInputs
from mlirt.runtime.output_arrays import Kind, check_outputs, put_into
from mlirt.runtime.program import Requirement, SizeCheck, steps
from mlirt.runtime.program_cache import ProgramCache, ShapeCacheUse, shape_cache_bytes
from mlirt.runtime.resident_run import ResidentRun
from mlirt.runtime.run_state import MAIN, RunState, StateView
from mlirt.runtime.shape_binding import ShapeBinder, ShapeBinding
from mlirt.runtime.short_run import ShortRun
from mlirt.runtime.stop_request import StopRequest
from mlirt.runtime.symbol_values import GUESS, Shape, refined_sizes

# How often a run is made again before a size counts as one that changes while the network runs.
_TRIES_PER_SIZE = 4


class ExecutionContext(MeasuredRuns):
    """Runs an engine: contexts may run from several threads at once, one context runs one call at a time."""

    def __init__(
        self,
        manifest: Manifest,
        session: Session,
        shape_cache_mb: float | None = None,
        binder: ShapeBinder | None = None,
        initial: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """`shape_cache_mb`: as in `load`; contexts of one plan may share a `binder`. `initial` states by input."""
        self._manifest = manifest
        self._session = session
        self._binder = binder or ShapeBinder(manifest)
        given = manifest.given_inputs
        self._given_count = len(given)
        self._state = RunState(manifest, initial or {}) if manifest.state else None
        self._inputs = NamedInputs(manifest, self._state)
        self._input_names = self._inputs.names
        self._counts_runs = len(given) < len(manifest.inputs)
        self.runs = 0
        """Those that did not fail: what a network with random numbers draws the next ones by."""
        self._output_names = [tensor.name for tensor in manifest.outputs]
        self._programs = ProgramCache(session, shape_cache_bytes(shape_cache_mb))
        self._sizes = dict.fromkeys(manifest.sizes, GUESS)
        self._lock = threading.Lock()
        self.short: ShortRun | GrowingRun | None = None
        """The quickest way to run what ran last, where there is one."""
        self._last: tuple[tuple[Shape, ...], Program | None] | None = None
        self._growing: GrowingRun | None = None
        self._grown_to: tuple[Shape, ...] | None = None
        """The shapes that the last program was made for whose lengths had grown since the run before."""
        _contexts.add(self)
        # A launch in a branch or a loop that would leave its buffers ends a run, too.
        self._checks = not all(isinstance(step, int) for step in manifest.program)
        self._looks = any(isinstance(step, SizeCheck | Requirement) for step in steps(manifest.program))
        if not manifest.symbols and not self._sizes:
            self._prepare(tuple(tuple(evaluate(dim, {}) for dim in tensor.shape) for tensor in given))

    def run(
        self,
        feeds: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray] | None = None,
        *,
        stop: StopRequest | None = None,
        sequence: str = MAIN,
    ) -> dict[str, np.ndarray]:
        """The outputs by name for inputs by name; InvalidInputError where an array does not fit.

        They are in fresh arrays, but for those that `outputs` has an array of the same type and shape for. Kernels
        write into such an array where it lies, if it is contiguous, aligned, and shares no memory with another one.
        A run that is asked to `stop` raises `DeadlineError` or `RunCancelledError`. An engine with state reads and
        writes that of `sequence`; a run that fails leaves it as it was. A value of it among `feeds` is for this run.
        """
        found = self.run_short(feeds, outputs) if stop is None else self._run_growing(feeds, outputs, stop)
        if found is not None:
            return found
        return self._run_any(feeds, outputs or {}, stop, sequence)

    def run_short(
        self, feeds: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray] | None
    ) -> dict[str, np.ndarray] | None:
        """The outputs where shapes have run before and arrays are right as they are; else None, with nothing done."""
        short = self.short
        if short is None:
            return None
        try:
            found = short(feeds, outputs)
            if found is None and (other := self.short_of_others(feeds) or self._growing_after(short)) is not None:
                found = other(feeds, outputs)
        except MemoryError as error:
            raise out_of_memory("the run", error) or error from error
        return found

    def _run_growing(
        self, feeds: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray] | None, stop: StopRequest
    ) -> dict[str, np.ndarray] | None:
        """The same for a run that can be stopped, and lengths that have grown since the last run."""
        short = self.short
        growing = short if isinstance(short, GrowingRun) or short is None else self._growing_after(short)
        try:
            return growing(feeds, outputs, stop) if isinstance(growing, GrowingRun) else None
        except MemoryError as error:
            raise out_of_memory("the run", error) or error from error

    def short_of_others(self, feeds: Mapping[str, np.ndarray]) -> ShortRun | None:
        """The quickest way to run on shapes that have run before the last ones, where one is kept."""
        try:
            shapes = tuple([feeds[name].shape for name in self._input_names])
        except (KeyError, TypeError, AttributeError):
            return None  # what the run proper explains
        found = self._programs.kept_companion((shapes, ()))
        return found if isinstance(found, ShortRun) and found is not self.short else None

    def _growing_after(self, short: ShortRun | GrowingRun) -> GrowingRun | None:
        """What runs on lengths that have grown since the last run, where `short` is not it."""
        growing, last = self._growing, self._last
        if growing is None or growing is short or last is None:
            return None
        growing.follow(last[0])
        return growing

    def _run_any(
        self,
        feeds: Mapping[str, np.ndarray],
        given: Mapping[str, np.ndarray],
        stop: StopRequest | None,
        sequence: str,
    ) -> dict[str, np.ndarray]:
        numbered: Mapping[int, np.ndarray] = self._numbered(given) if given else {}
        arrays = [] if self._state is not None else self._checked(feeds)
        lock = self._hold(stop)
        try:
            if self._state is not None:  # it is what the run before has left, so that it is read in turn
                arrays = self._checked(feeds, sequence)
                numbered = {**numbered, **self._state.targets(arrays, sequence)}
            if self._counts_runs:
                arrays += self._run_number()
            program = self._run(arrays, numbered, stop, sequence)
            if given and self._state is not None:  # before anything is kept
                binding = self._binder.bind(self._shapes_of(arrays), self._sizes)
                check_outputs(given, dict(zip(self._output_names, self._output_kinds(binding), strict=True)))
            found = self._downloaded(program, sequence)
            self.runs += 1
        except MemoryError as error:
            raise out_of_memory("the run", error) or error from error
        finally:
            lock.release()
        return put_into(given, found) if given else found

    def _downloaded(self, program: Program, sequence: str) -> dict[str, np.ndarray]:
        """The outputs by name; those that are states stay here."""
        state = self._state
        if state is None:
            return dict(zip(self._output_names, program.download(), strict=True))
        found = program.download(state.before(sequence))
        state.keep(found, sequence)
        named = zip(self._output_names, found, strict=True)
        return {name: array for name, array in named if name not in state.output_names}

    @property
    def state(self) -> StateView:
        """What the next run begins with, by input: a mapping whose values can be set. That of the main sequence."""
        return StateView(self._state, MAIN)

    def state_of(self, sequence: str) -> StateView:
        """The same for another sequence."""
        return StateView(self._state, sequence)

    @property
    def sequences(self) -> tuple[str, ...]:
        """The sequences that have run; the main one is `""`."""
        return () if self._state is None else self._state.sequences

    def reset_state(self, sequence: str | None = None) -> None:
        """Let a sequence, or all of them, begin anew, and give back what they keep."""
        with self._lock:
            if self._state is not None:
                self._state.reset(sequence)

    def _numbered(self, given: Mapping[str, np.ndarray]) -> Mapping[int, np.ndarray]:
        if self._state is not None and (kept := self._state.output_names & set(given)):
            raise InvalidInputError(f"output {min(kept)!r} is a state, which stays in the engine; see context.state")
        return {number: given[name] for number, name in enumerate(self._output_names) if name in given}

    @reports_shortage("the run")
    def bind(self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray] | None = None) -> BoundRun:
        """Check arrays once; the object that is returned runs on them, whatever they hold when it is called.

        `outputs` are those that results are written into; others are made. InvalidInputError where an array does not
        fit, or where the data decide about the shapes of tensors.
        """
        self._refuse_state("bind")
        for name, array in inputs.items():
            if not isinstance(array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInputError(f"input {name!r}: expected a NumPy array to bind, got {type(array).__name__}")
        self._checked(inputs)
        if self._sizes:
            raise InvalidInputError(
                f"the sizes {', '.join(self._sizes)} follow from the data, so that no arrays can be bound; use run"
            )
        arrays = [inputs[name] for name in self._input_names]
        number = self._run_number()
        given = outputs or {}
        with self._lock:
            binding = self._binder.bind(self._shapes_of(arrays), self._sizes)
            check_outputs(given, dict(zip(self._output_names, self._output_kinds(binding), strict=True)))
            program = self._session.prepare(binding, copies_small=False)
            return BoundRun(self, program, [*arrays, *number], given, self._output_names, number[0] if number else None)

    def _output_kinds(self, binding: ShapeBinding) -> Iterator[Kind]:
        dtypes = [numpy_dtype(tensor.dtype) for tensor in self._manifest.outputs]
        return zip(dtypes, binding.output_shapes, strict=True)

    @reports_shortage("the run")
    def run_in_place(self, feeds: Mapping[str, np.ndarray]) -> dict[str, DeviceTensor] | None:
        """The outputs where the device has them until the next run; None where that is the host's memory."""
        if self._manifest.target.kind != "cuda":
            return None
        self._refuse_state("run_in_place")
        arrays = self._checked(feeds)
        with self._lock:
            arrays += self._run_number()
            program = self._run(arrays, {}, None)
            self.runs += 1
            return dict(zip(self._output_names, program.outputs_in_place(), strict=True))

    def run_positional(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """The same with inputs and outputs in the order of the plan."""
        if len(arrays) != len(self._input_names):
            raise InvalidInputError(f"expected {len(self._input_names)} inputs {self._input_names}, got {len(arrays)}")
        return list(self.run(dict(zip(self._input_names, arrays, strict=True))).values())

    @reports_shortage("the run")
    def run_at(self, shapes: Sequence[Shape], inputs: Sequence[int], outputs: Sequence[int], stream: int) -> bool:
        """Queue a run on device memory, inputs and outputs in the order of the plan, and do not wait for it.

        It comes after what is on the CUDA stream, and before what comes on it next. False, with nothing done, where the
        engine is on a CPU, or the host must look at what the run finds.
        """
        if self._looks:
            return False
        with self._lock:
            program = self._program_of(tuple(shapes), timed=False)
            is_queued = program.run_at(inputs, outputs, stream, self.runs if self._counts_runs else None)
            self.runs += is_queued
            return is_queued

    def output_shapes(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """The shapes of the outputs for those of the inputs, in the order of the plan."""
        # Binding a plan takes milliseconds; the program that the run is about to need has been bound already.
        with self._lock:
            return self._program_of(tuple(shapes), timed=False).output_shapes

    def run_resident(self, feeds: Mapping[str, np.ndarray]) -> ResidentRun:
        """Upload once; the returned object repeats the kernels alone (for measuring without data transfers).

        All its runs are one that is not counted: random numbers are those of the next run.
        """
        return ResidentRun(self.uploaded(feeds)[0], self)

    @property
    def can_run_ahead(self) -> bool:
        """Whether a run can be queued before the one in front of it is over: on a GPU, where no data go from run to run
        and the host looks at none.
        """
        return self._manifest.target.kind == "cuda" and self._state is None and not self._checks

    def others_have_used_the_memory(self) -> None:
        """The next run finds nothing in its memory as it was left: it is the caller's, who may share it."""
        self._session.tenant = None

    def set_input_consumed_event(self, event: int | None) -> bool:
        """Record a CUDA event (its handle) in each run once the inputs may be changed again; None records none.

        False where the engine does not run on CUDA.
        """
        with self._lock:
            return self._session.set_input_consumed_event(event)

    @property
    def lock(self) -> threading.Lock:
        """Held by whoever runs the context."""
        return self._lock

    @property
    def shape_cache(self) -> ShapeCacheUse:
        """What the programs take that are kept for shapes which come again."""
        return self._programs.use

    def free_after_fork(self) -> None:
        """In the child: let it be used, as if the run that another thread was in had never begun."""
        if self._lock.locked():
            self._lock = threading.Lock()
            self._programs.clear()
            self._last = self.short = self._growing = None
            self._sizes = dict.fromkeys(self._sizes, GUESS)

    @contextmanager
    def held(self, stop: StopRequest | None = None) -> Generator[None]:
        """The context is the caller's, once others are done with it; `DeadlineError` where that takes too long."""
        lock = self._hold(stop)
        try:
            yield
        finally:
            lock.release()

    def _hold(self, stop: StopRequest | None) -> threading.Lock:
        """The context's lock, which the caller has from now on."""
        lock = self._lock
        if not lock.acquire(False) and not lock.acquire(timeout=-1 if stop is None else stop.seconds_left()):
            assert stop is not None
            raise stop.error()
        if stop is not None:
            try:
                stop.check()
            except MlirtError:
                lock.release()
                raise
        return lock

    def _run(
        self,
        arrays: Sequence[np.ndarray],
        given: Mapping[int, np.ndarray],
        stop: StopRequest | None,
        sequence: str = MAIN,
    ) -> Program:
        """Run with what the run's own sizes were last time, and again where they turn out to be others."""
        try:
            return self._run_until_stable(arrays, given, stop)
        except InvalidInputError as error:
            self._sizes = dict.fromkeys(self._sizes, GUESS)
            raise error if self._state is None else self._state.explain(error, sequence) from error
        except (MlirtError, MemoryError):
            self._sizes = dict.fromkeys(self._sizes, GUESS)  # those of a run that failed would be in the next one's way
            raise

    def _run_until_stable(
        self, arrays: Sequence[np.ndarray], given: Mapping[int, np.ndarray], stop: StopRequest | None
    ) -> Program:
        told = ""
        for _ in range(1 + _TRIES_PER_SIZE * len(self._sizes)):
            program = self._fitting_program(arrays, told)
            program.stop = stop
            if given:
                program.accept(given)
            program.upload(arrays, stays=True)  # whoever asked waits for the run
            program.execute()
            if not self._checks:
                return program
            wrong = program.wrong_size()
            if wrong is None:
                return program
            told, size = wrong
            if size < 0:
                raise InvalidInputError(f"the inputs give the size {told} the value {size}; a size is at least 0")
            self._sizes[told] = size
            self._sizes = refined_sizes(self._manifest, self._shapes_of(arrays), self._sizes, told)
        raise InvalidInputError(
            f"the sizes {', '.join(self._sizes)} do not converge: one changes while the network runs"
        )

    def _fitting_program(self, arrays: Sequence[np.ndarray], told: str) -> Program:
        """The program for the sizes; those behind `told`, guesses all, may be of a run that they do not fit any more.

        Raises `PlanError` where what the run has told makes no sense by itself.
        """
        if not self._sizes:
            return self._program(arrays, timed=False)
        names = list(self._sizes)
        unsure = names[names.index(told) + 1 :] if told else names
        guesses = [self._sizes, *({**self._sizes, **dict.fromkeys(unsure, guess)} for guess in (GUESS, 0))]
        for k, sizes in enumerate(guesses):
            self._sizes = sizes
            try:
                return self._program(arrays, timed=False)
            except PlanError:
                if k == len(guesses) - 1 or not unsure:
                    raise
        raise AssertionError("one of the guesses is the last one")

    def _program_for(self, arrays: Sequence[np.ndarray]) -> Program:
        """The program for these inputs, whose data may decide about sizes."""
        if self._checks:
            self._run(arrays, {}, None).wait()
        return self._program(arrays)

    def _refuse_state(self, what: str) -> None:
        if self._state is not None:
            raise InvalidInputError(f"{what} is for engines without state ({', '.join(self._state.pairs)}); use run")

    def _checked(self, feeds: Mapping[str, np.ndarray], sequence: str = MAIN) -> list[np.ndarray]:
        """The inputs of a run in the order of the plan, those that are states from the sequence."""
        return self._inputs.checked(feeds, sequence)

    def _run_number(self) -> list[np.ndarray]:
        """The input that no caller gives, of networks that have one. A run that fails leaves its number to the next."""
        return [np.array(self.runs)] if self._counts_runs else []

    def _program(self, arrays: Sequence[np.ndarray], timed: bool = True) -> Program:
        shapes = self._shapes_of(arrays)
        if self._last is not None and self._last[0] == shapes and self._last[1] is not None:
            program = self._last[1]
            program.timed = timed
            return program
        program = self._program_of(shapes, timed)
        if not self._sizes:
            self._last = shapes, program
            self.short = self._programs.companion((shapes, ()), lambda: self._short_run(shapes, program))
        return program

    def _short_run(self, shapes: tuple[Shape, ...], program: Program) -> ShortRun | None:
        cut = None if self._checks or self._counts_runs or self._state is not None else program.short_cut()
        if cut is None:
            return None

        held = weakref.ref(self)  # what the context holds must not hold it: a cycle would keep memory

        def takes_over(short: ShortRun) -> None:
            context = held()
            if context is not None:
                context._programs.get((shapes, ()))
                context._last, context.short = (shapes, program), short

        return ShortRun(self._inputs.expected, self._output_names, cut, self._lock, takes_over)

    def _program_of(self, shapes: tuple[Shape, ...], timed: bool) -> Program:
        key = (shapes, tuple(self._sizes.values()))
        program = self._programs.get(key)
        if program is None and self._sizes:
            self._sizes = refined_sizes(self._manifest, shapes, self._sizes)
            program = self._programs.get(key := (shapes, tuple(self._sizes.values())))
        if program is None:
            program = self._prepare(shapes)
        program.timed = timed
        return program

    def _shapes_of(self, arrays: Sequence[np.ndarray]) -> tuple[Shape, ...]:
        return cast("tuple[Shape, ...]", tuple([array.shape for array in arrays[: self._given_count]]))

    def _prepare(self, shapes: tuple[Shape, ...]) -> Program:
        program = self._session.prepare(self._binder.bind(shapes, self._sizes))
        self._programs.put((shapes, tuple(self._sizes.values())), program)
        self._note_growth(shapes)
        return program

    def _note_growth(self, shapes: tuple[Shape, ...]) -> None:
        """Prepare for lengths that go on growing, where they have grown in two runs one after the other."""
        before = None if self._last is None else self._last[0]
        if before is None or not have_grown(self._manifest, before, shapes):
            return
        if before == self._grown_to or (self._growing is not None and self.short is self._growing):
            growth = self._session.growth(self._binder, shapes, before)
            self._growing = None if growth is None else self._growing_run(growth)
        self._grown_to = shapes

    def _growing_run(self, growth: Growth) -> GrowingRun:
        held = weakref.ref(self)

        def takes_over(growing: GrowingRun, shapes: tuple[Shape, ...]) -> None:
            context = held()
            if context is not None:
                context._last, context.short = (shapes, None), growing

        return GrowingRun(growth, self._manifest, self._lock, takes_over)


_contexts: weakref.WeakSet[ExecutionContext] = weakref.WeakSet()


def _free_after_fork() -> None:
    """A forked child has none of the threads that were in a run: nobody would give back what they hold."""
    for context in list(_contexts):
        context.free_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_after_fork)
