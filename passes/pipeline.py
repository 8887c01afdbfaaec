"""Runs passes over a module, checks the IR on the way, and names the pass that broke it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from mlirt.dialects.context import weights_of
from mlirt.dialects.diagnostics import OperationError
from mlirt.dialects.dominance import verify_dominance
from mlirt.dialects.pass_plugins import place_in_plugin
from mlirt.dialects.repeated_verification import RepeatedVerifier
from mlirt.dialects.verification import first_lines, verify
from mlirt.dialects.weights_file import weights_in
from mlirt.errors import CompileError, InvalidInputError, InvalidModelError, UnsupportedError, out_of_memory
from mlirt.passes.phase_dumps import PhaseDumps
from mlirt.passes.phases import PHASES, TargetMachine, pipeline_for
from mlirt.passes.pipeline_edits import Pipeline
from mlirt.passes.pipeline_text import parse_pipeline
from mlirt.passes.remarks import recorder
from mlirt.passes.reproducer import write_reproducer

# The network's fault, or a limit of this version: nobody needs to reproduce the compiler's state for these.
_ANSWERS = (UnsupportedError, InvalidModelError, InvalidInputError)


class PassError(CompileError):
    """A pass failed, or left broken IR. `op` is the culprit where it is known, `reproducer` a file that shows it."""

    def __init__(self, pass_name: str, message: str, op: Operation | None, reproducer: Path | None) -> None:
        self.op = op
        self.reproducer = reproducer
        where = f"; reproducer: {reproducer}" if reproducer is not None else ""
        super().__init__(f"pass {pass_name}: {message}{where}")


class Instrument(Protocol):
    """Something that watches a pipeline, for example to print the IR."""

    def before_pass(self, pass_: ModulePass, module: ModuleOp) -> None: ...

    def after_pass(self, pass_: ModulePass, module: ModuleOp) -> None: ...


@dataclass(frozen=True)
class PassTime:
    """The CPU and wall seconds of one pass, without the checks around it."""

    pass_name: str
    cpu: float
    wall: float


@dataclass
class PipelineOptions:
    """How passes are run: the target, what is checked, who watches, and where a failure leaves its reproducer."""

    target: str = "cpu"
    precision: str = "fp32"
    machine: TargetMachine = field(default_factory=TargetMachine)
    verify_each: bool = False
    instruments: Sequence[Instrument] = ()
    reproducer_folder: Path | None = None  # None: a new folder among the system's temporary ones
    dump_folder: Path | None = None  # every phase leaves its text here
    dump_locations: bool = False  # with the names of the layers
    pass_limit: int | None = None  # run so many passes of all, and leave the others out
    frees_weights: bool = False  # of `run_phases`: nobody else needs the arrays that the module has at first
    pipeline: Pipeline = field(default_factory=Pipeline)  # of `run_phases`: the compiler's own, or a changed one
    times: list[PassTime] = field(default_factory=list[PassTime])


def check_ir(module: ModuleOp) -> None:
    """Raise `VerificationError` where an op breaks its definition or a value is used before it exists."""
    verify(module)
    verify_dominance(module)


def run_passes(
    module: ModuleOp, ctx: Context, passes: str | Iterable[ModulePass], options: PipelineOptions | None = None
) -> None:
    """Run passes in order, in place, on IR that is checked before and after."""
    chosen = parse_pipeline(passes) if isinstance(passes, str) else tuple(passes)
    verifier = _checked(module)
    if chosen:
        _PassManager(module, ctx, options or PipelineOptions(), verifier).run(chosen)


def _checked(module: ModuleOp) -> RepeatedVerifier:
    """Check a module, and remember it for the checks behind passes."""
    verifier = RepeatedVerifier()
    verifier.verify(module)
    verify_dominance(module)
    return verifier


class _PassManager:
    """Runs passes over one module, which is checked behind each group of them. The module as it was at first is kept:
    from there a failure is traced by running the passes again.
    """

    def __init__(self, module: ModuleOp, ctx: Context, options: PipelineOptions, verifier: RepeatedVerifier) -> None:
        self.module, self.ctx, self.options = module, ctx, options
        self._verifier = verifier
        self._start = module.clone()
        self._done: list[ModulePass] = []
        self._left = options.pass_limit

    def run(self, passes: Sequence[ModulePass]) -> None:
        """Run passes on checked IR and check what they leave; raises `PassError` with the name of the guilty one."""
        if self._left is not None:
            passes = passes[: self._left]
            self._left -= len(passes)
        for pass_ in passes:
            try:
                _run_one(pass_, self.module, self.ctx, self.options)
                if self.options.verify_each:
                    self._verify()
            except _ANSWERS:
                raise
            except MemoryError as error:
                raise out_of_memory(f"pass {pass_.name}", error) or error from error
            except Exception as error:
                if not isinstance(error, CompileError):
                    _refuse_unstructured(pass_, self.module)
                raise self._failure(pass_, error) from error
            self._done.append(pass_)
            _let_weights_go(self.module, self.ctx)
        if passes and not self.options.verify_each:
            self._check(len(passes))

    def _verify(self) -> None:
        """Check what has changed since the last check."""
        self._verifier.verify(self.module)
        verify_dominance(self.module)

    def _check(self, count: int) -> None:
        """Check what the last `count` passes have left."""
        try:
            self._verify()
        except OperationError as error:
            before = len(self._done) - count
            guilty = self._first_breaking(before)
            failed = self._done[guilty]
            del self._done[guilty:]
            raise self._failure(failed, error) from error

    def _replayed(self, count: int) -> ModuleOp:
        """The IR after the first `count` passes."""
        replay = self._start.clone()
        for pass_ in self._done[:count]:
            pass_.apply(self.ctx, replay)
        return replay

    def _first_breaking(self, before: int) -> int:
        """Which pass from `before` on first leaves broken IR, so that a usual run need not check after each."""
        with suppress(InvalidModelError):  # large weights that are gone cannot be read again
            replay = self._replayed(before)
            for index, pass_ in enumerate(self._done[before:], before):
                pass_.apply(self.ctx, replay)
                try:
                    check_ir(replay)
                except OperationError:
                    return index
        return len(self._done) - 1

    def _failure(self, guilty: ModulePass, error: Exception) -> PassError:
        expected = isinstance(error, (CompileError, DiagnosticException))
        message = first_lines(error) if expected else f"{type(error).__name__}: {first_lines(error)}"
        message += place_in_plugin(error)
        if guilty.name == "verify-legality" and self.options.pipeline.edits:
            message += f"; the pipeline was changed: {' '.join(map(str, self.options.pipeline.edits))}"
        path = None
        try:
            replay = self._replayed(len(self._done))
            path = write_reproducer(replay, self.ctx, guilty, message, self.options.reproducer_folder)
        except InvalidModelError:
            message += "; its large weights are gone: build with dump_phases for the network before it"
        return PassError(guilty.name, message, error.op if isinstance(error, OperationError) else None, path)


def _let_weights_go(module: ModuleOp, ctx: Context) -> None:
    """Give back arrays that passes have made and replaced since, where these take much memory."""
    store = weights_of(ctx)
    if store.could_free:
        store.keep_only(weights_in(module).keys())


def _refuse_unstructured(pass_: ModulePass, module: ModuleOp) -> None:
    """Raise `OperationError` where the body of a function is not one block, as most passes have it."""
    for op in module.ops:
        if isinstance(op, FuncOp) and len(op.body.blocks) != 1:
            found = (
                f"has {len(op.body.blocks)} blocks: write branches and loops with scf"
                if op.body.blocks
                else "has no body"
            )
            raise OperationError(op, f"{found}; pass {pass_.name} needs functions of one block")


def _run_one(pass_: ModulePass, module: ModuleOp, ctx: Context, options: PipelineOptions) -> None:
    for instrument in options.instruments:
        instrument.before_pass(pass_, module)
    cpu, wall = time.process_time(), time.perf_counter()
    found = recorder()
    if found is None:
        pass_.apply(ctx, module)
    else:
        with found.running(pass_.name, module, ctx):
            pass_.apply(ctx, module)
    options.times.append(PassTime(pass_.name, time.process_time() - cpu, time.perf_counter() - wall))
    for instrument in options.instruments:
        instrument.after_pass(pass_, module)


def run_phases(
    module: ModuleOp,
    ctx: Context,
    first: str | None = None,
    last: str | None = None,
    options: PipelineOptions | None = None,
) -> None:
    """Run the compiler's own pipeline from phase `first` to phase `last`, both included; every border is checked.

    Of large arrays that passes make only those stay that the module names at the end, unless somebody watches.
    """
    options = options or PipelineOptions()
    if options.pipeline.edits:
        phases = options.pipeline.between(first, last, options.target, options.precision, options.machine)
    else:
        phases = pipeline_for(options.target, options.precision, first, last, options.machine)
    manager = _PassManager(module, ctx, options, _checked(module))
    dumps = None
    if options.dump_folder is not None:
        dumps = PhaseDumps(options.dump_folder, options.target, options.dump_locations)
    is_watched = dumps is not None or bool(options.instruments) or recorder() is not None
    try:
        with nullcontext() if is_watched else weights_of(ctx).freeing(everything=options.frees_weights):
            for phase, specs in phases:
                manager.run(parse_pipeline(",".join(specs)))
                if dumps is not None:
                    dumps.write(module, PHASES.index(phase), phase, specs)
    finally:
        if dumps is not None:
            dumps.write_weights(ctx)
