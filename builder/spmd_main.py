"""Builds the one object that drives every CPU engine: its threads take the parts of each kernel as they come.

It is written as LLVM IR (builder/spmd_code/) and is the same for every network: what differs is the table. Its symbols:
  mlirt_main(table, sync, nt, start, tid)       one thread's share of the run that has the number `start`
  mlirt_run(control, table, rows, request)  wakes the workers and takes part itself; returns when all is done: 0, the
                                            number (from 1) of the row that stopped the run, or less than 0 where
                                            it was asked to stop
  mlirt_alone(job)                          the same on the caller's thread, which shares nothing with others
  mlirt_worker(control, tid)                the life of a worker: spin, sleep, run, again; returns when stopped
  mlirt_prepare(control, nt)                makes the semaphores of a zeroed control block
  mlirt_spin(n)                             n pauses, to find out how long one takes
  mlirt_bordered(params, part, parts)       in place of a kernel: writes the borders around its results, then calls it
  mlirt_lengths(code, count, numbers, words)  carries out instructions on numbers, and writes parameters that follow
                                            from lengths; the number of the one that did not hold, or 0
A row is 3 words: address of the kernel, address of its parameters, flags (1: the next row is open at the same time, 2:
one part alone). Rows with one of these flags are control rows, which have no kernel; who finishes the rows before
carries them out on the way to the next one:
  4   jump: where the byte at address params[0] is 0 the row with the number params[1] is next
  8   size: where the word at address params[0] is not params[1] the run stops
  16  require: where the byte at address params[0] is 0 the run stops
A row's work is cut into parts, more of them than threads: a thread that the system takes off its core costs the part
that it holds and no more, and one that comes late finds nothing left to do. A thread takes its own parts first, whose
data its cache has, then those of others. Parts go from a kernel's last one to its first: where there are fewer tasks
than parts the last ones have them, and the caller, who is awake for certain, should be the one to take a single task.
`sync` (SYNC_WORDS, zeroed once) holds the first ticket in word 0 (number of the step << 32, one bit for each part that
is left), in word 1 the first row that the tickets are for (-1: the run is over), in word 2 the number of the run, in
word 3 the row that stopped it, in word 4 the rows of the table, in words 5 and 6 how many rows the tickets are for and
their parts, in word 7 the address of a request to stop (0: none; @asked_to_stop says what it holds), the parts done in
word 16, and other tickets in words 64, 80, ..: there is one for each 32 threads. Numbers grow through all runs: who
comes from an old run sees a new number and leaves, so the table of a finished run is never read. A ticket has at most
32 parts; the rows that are open at the same time divide the parts of all among them: as many rows as leave each one a
part for every thread, at most 8.
`job` has the words 3, 4 and 7 of `sync`, the address of the table in word 8, and in word 9 that of the interpreter's
door.
`control` is CONTROL_WORDS(nt) words, zeroed once; words that different threads write lie 128 bytes apart. Word 0 is the
job number, odd while the words 16..22 are being written (main, table, -, sync, nt, pauses before sleeping, start; main,
sync and nt are written once, before the workers begin); 32 stop; 33 how often a worker was woken; 48+16*tid whether
that worker sleeps, and from the 4th word after it its semaphore.
"""

from collections.abc import Iterable
from dataclasses import asdict
from functools import cache

from mlirt.builder.spmd_code.alone import ALONE
from mlirt.builder.spmd_code.borders import BORDERS
from mlirt.builder.spmd_code.declarations import DECLARATIONS
from mlirt.builder.spmd_code.lengths import LENGTHS
from mlirt.builder.spmd_code.one_run import ONE_RUN
from mlirt.builder.spmd_code.systems import system_code
from mlirt.builder.spmd_code.table_rows import TABLE_ROWS
from mlirt.builder.spmd_code.workers import WORKERS
from mlirt.runtime.llvm_binding import llvm
from mlirt.systems import architecture_of, reserved_features

_SPINS_BEFORE_YIELDING = 4096
_SPINS_BETWEEN_YIELDS = 64
_PARTS_PER_THREAD = 2
_MAX_TASKS_TOGETHER = 8

_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    # YIELD does nothing on most processors; the barrier for instructions takes about as long as a pause on x86.
    "aarch64": ("declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"),
}
_USED = ("lse",)
"""The features of processors that this code is better with: atomic instructions in place of loops."""

_SOURCE = "\n".join((DECLARATIONS, TABLE_ROWS, ONE_RUN, ALONE, WORKERS, BORDERS, LENGTHS))


def main_features(features: Iterable[str]) -> tuple[str, ...]:
    """Those of a machine's features that the object is made with; the same object suits machines with equal ones."""
    return tuple(sorted({*features}.intersection(_USED)))


@cache
def main_object(triple: str, features: str | tuple[str, ...] = ()) -> bytes:
    """The ELF object for `triple`; `features` as LLVM writes them ("+avx2,+fma") or as names."""
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    declaration, pause = _PAUSES.get(architecture_of(triple), ("", ""))
    source = _SOURCE.format(
        **asdict(system_code(triple)),
        pause_declaration=declaration,
        pause=pause,
        limit=_SPINS_BEFORE_YIELDING,
        parts_per_thread=_PARTS_PER_THREAD,
        most_together=_MAX_TASKS_TOGETHER,
        resume=_SPINS_BEFORE_YIELDING - _SPINS_BETWEEN_YIELDS,
    )
    names = features.split(",") if isinstance(features, str) else features
    text = ",".join(f"+{name.removeprefix('+')}" for name in (*filter(None, names), *reserved_features(triple)))
    machine = binding.Target.from_triple(triple).create_target_machine(
        features=text, opt=2, reloc="pic", codemodel="small", jit=False
    )
    module = binding.parse_assembly(source)
    module.triple = triple
    module.verify()
    return machine.emit_object(module)
