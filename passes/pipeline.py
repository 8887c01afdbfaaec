"""Runs passes over a module, checks the IR on the way, and names the pass that broke it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from mlirt.dialects.diagnostics import OperationError
from mlirt.dialects.dominance import verify_dominance
from mlirt.dialects.verification import first_lines, verify
from mlirt.errors import CompileError, InvalidInputError, InvalidModelError, UnsupportedError, out_of_memory
from mlirt.passes.phase_dumps import PhaseDumps
from mlirt.passes.phases import pipeline_for
from mlirt.passes.pipeline_text import parse_pipeline
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
    vector_bits: int = 512
    threads: int = 2
    arch: str = "sm_90a"
    features: Sequence[str] = ()  # of processors, beyond those that their vectors imply
    verify_each: bool = False
    instruments: Sequence[Instrument] = ()
    reproducer_folder: Path | None = None  # None: a new folder among the system's temporary ones
    dump_folder: Path | None = None  # every phase leaves its text here
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
    check_ir(module)
    _run_on_checked(module, ctx, chosen, options or PipelineOptions())


def _run_on_checked(module: ModuleOp, ctx: Context, chosen: Sequence[ModulePass], options: PipelineOptions) -> None:
    if not chosen:
        return
    snapshot = module.clone()
    for index, pass_ in enumerate(chosen):
        try:
            _run_one(pass_, module, ctx, options)
            if options.verify_each:
                check_ir(module)
        except _ANSWERS:
            raise
        except MemoryError as error:
            raise out_of_memory(f"pass {pass_.name}", error) or error from error
        except Exception as error:
            if not isinstance(error, CompileError):
                _refuse_unstructured(pass_, module)
            raise _failure(chosen[: index + 1], snapshot, ctx, options, error) from error
    if not options.verify_each:
        _check_result(module, ctx, chosen, snapshot, options)


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
    pass_.apply(ctx, module)
    options.times.append(PassTime(pass_.name, time.process_time() - cpu, time.perf_counter() - wall))
    for instrument in options.instruments:
        instrument.after_pass(pass_, module)


def _check_result(
    module: ModuleOp, ctx: Context, passes: Sequence[ModulePass], snapshot: ModuleOp, options: PipelineOptions
) -> None:
    try:
        check_ir(module)
    except OperationError as error:
        guilty = _first_breaking(passes, snapshot, ctx)
        raise _failure(passes[: guilty + 1], snapshot, ctx, options, error) from error


def _first_breaking(passes: Sequence[ModulePass], snapshot: ModuleOp, ctx: Context) -> int:
    """Which pass first leaves broken IR: found by running them again, so that a usual run need not check after each."""
    replay = snapshot.clone()
    for index, pass_ in enumerate(passes):
        pass_.apply(ctx, replay)
        try:
            check_ir(replay)
        except OperationError:
            return index
    return len(passes) - 1


def _failure(
    passes: Sequence[ModulePass], snapshot: ModuleOp, ctx: Context, options: PipelineOptions, error: Exception
) -> PassError:
    guilty = passes[-1]
    expected = isinstance(error, (CompileError, DiagnosticException))
    message = first_lines(error) if expected else f"{type(error).__name__}: {first_lines(error)}"
    replay = snapshot.clone()
    for pass_ in passes[:-1]:
        pass_.apply(ctx, replay)
    path = write_reproducer(replay, ctx, guilty, message, options.reproducer_folder)
    return PassError(guilty.name, message, error.op if isinstance(error, OperationError) else None, path)


def run_phases(
    module: ModuleOp,
    ctx: Context,
    first: str | None = None,
    last: str | None = None,
    options: PipelineOptions | None = None,
) -> None:
    """Run the compiler's own pipeline from phase `first` to phase `last`, both included; every border is checked."""
    options = options or PipelineOptions()
    machine = (options.vector_bits, options.threads, options.arch, options.features)
    phases = pipeline_for(options.target, options.precision, first, last, *machine)
    check_ir(module)
    dumps = None if options.dump_folder is None else PhaseDumps(options.dump_folder)
    try:
        for number, (phase, specs) in enumerate(phases):
            # What one phase leaves has been checked when the next one starts.
            _run_on_checked(module, ctx, parse_pipeline(",".join(specs)), options)
            if dumps is not None:
                dumps.write(module, number, phase, specs)
    finally:
        if dumps is not None:
            dumps.write_weights(ctx)
