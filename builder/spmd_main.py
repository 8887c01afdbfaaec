"""Builds the one object that drives every CPU engine: all threads run one table of kernels, with barriers between rows.

It is written as LLVM IR and is the same for every network: what differs is the table. Symbols of the object:
  mlirt_main(table, rows, sync, tid, nt)    thread `tid` of `nt` runs its part of every row of the table
  mlirt_run(control, main, table, rows, sync, nt)    wakes the workers and takes part as thread 0
  mlirt_worker(control, tid)                the life of a worker: spin a little, sleep, run, again; returns when stopped
  mlirt_prepare(control, nt)                makes the semaphores of a zeroed control block
  mlirt_spin(n)                             n pauses, to find out how long one takes
A row is 3 words: address of the kernel, address of its parameters, flags (1: no barrier after it, 2: thread 0 alone).
`sync` is 64 words, `control` is CONTROL_WORDS(nt) words, both zeroed once; words that different threads write lie 128
bytes apart. Control block: word 0 job number; 16..21 main, table, rows, sync, nt, pauses before sleeping; 32 stop;
48+16*tid whether that worker sleeps, and from the 4th word after it its semaphore.
"""

from functools import cache

from mlirt.runtime.llvm_binding import llvm

_SPINS_BEFORE_YIELDING = 4096
_SPINS_BETWEEN_YIELDS = 64

_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}

_SOURCE = """
declare i32 @sched_yield()
declare i32 @sem_init(ptr, i32, i32)
declare i32 @sem_wait(ptr)
declare i32 @sem_post(ptr)
{pause_declaration}

; The last thread to arrive opens the gate by advancing the phase; the others watch the phase, not the arrivals.
define internal void @barrier(ptr %sync, i64 %nt) {{
entry:
  %gate = getelementptr i64, ptr %sync, i64 16
  %phase = load atomic i64, ptr %gate monotonic, align 8
  %before = atomicrmw add ptr %sync, i64 1 acq_rel
  %arrived = add i64 %before, 1
  %all = icmp eq i64 %arrived, %nt
  br i1 %all, label %open, label %spin
open:
  store atomic i64 0, ptr %sync monotonic, align 8
  %following = add i64 %phase, 1
  store atomic i64 %following, ptr %gate release, align 8
  ret void
spin:
  %n = phi i64 [ 0, %entry ], [ %counted, %patient ], [ {resume}, %give_way ]
  {pause}
  %now = load atomic i64, ptr %gate acquire, align 8
  %opened = icmp ne i64 %now, %phase
  br i1 %opened, label %done, label %count
count:
  %counted = add i64 %n, 1
  %long = icmp uge i64 %counted, {limit}
  br i1 %long, label %give_way, label %patient
patient:
  br label %spin
give_way:
  call i32 @sched_yield()
  br label %spin
done:
  ret void
}}

define void @mlirt_main(ptr %table, i64 %rows, ptr %sync, i64 %tid, i64 %nt) {{
entry:
  %any = icmp sgt i64 %rows, 0
  br i1 %any, label %row, label %done
row:
  %i = phi i64 [ 0, %entry ], [ %next, %advance ]
  %word = mul i64 %i, 3
  %code_at = getelementptr i64, ptr %table, i64 %word
  %params_at = getelementptr i64, ptr %code_at, i64 1
  %flags_at = getelementptr i64, ptr %code_at, i64 2
  %code = load ptr, ptr %code_at, align 8
  %params = load ptr, ptr %params_at, align 8
  %flags = load i64, ptr %flags_at, align 8
  %serial = and i64 %flags, 2
  %is_serial = icmp ne i64 %serial, 0
  br i1 %is_serial, label %serial_row, label %shared_row
serial_row:
  %is_first = icmp eq i64 %tid, 0
  br i1 %is_first, label %alone, label %after
alone:
  call void %code(ptr %params, i64 0, i64 1)
  br label %after
shared_row:
  call void %code(ptr %params, i64 %tid, i64 %nt)
  br label %after
after:
  %next = add i64 %i, 1
  %is_last = icmp eq i64 %next, %rows
  %free = and i64 %flags, 1
  %bound = icmp eq i64 %free, 0
  %wanted = or i1 %bound, %is_last
  %many = icmp ugt i64 %nt, 1
  %waits = and i1 %wanted, %many
  br i1 %waits, label %wait, label %advance
wait:
  call void @barrier(ptr %sync, i64 %nt)
  br label %advance
advance:
  br i1 %is_last, label %done, label %row
done:
  ret void
}}

define void @mlirt_run(ptr %control, ptr %main, ptr %table, i64 %rows, ptr %sync, i64 %nt) {{
entry:
  %main_at = getelementptr i64, ptr %control, i64 16
  %table_at = getelementptr i64, ptr %control, i64 17
  %rows_at = getelementptr i64, ptr %control, i64 18
  %sync_at = getelementptr i64, ptr %control, i64 19
  %nt_at = getelementptr i64, ptr %control, i64 20
  store ptr %main, ptr %main_at, align 8
  store ptr %table, ptr %table_at, align 8
  store i64 %rows, ptr %rows_at, align 8
  store ptr %sync, ptr %sync_at, align 8
  store i64 %nt, ptr %nt_at, align 8
  %job = atomicrmw add ptr %control, i64 1 seq_cst
  br label %worker
worker:
  %tid = phi i64 [ 1, %entry ], [ %next, %awake ]
  %more = icmp ult i64 %tid, %nt
  br i1 %more, label %look, label %work
look:
  %line = mul i64 %tid, 16
  %at = add i64 %line, 48
  %flag = getelementptr i64, ptr %control, i64 %at
  %sleeping = load atomic i64, ptr %flag seq_cst, align 8
  %sleeps = icmp ne i64 %sleeping, 0
  br i1 %sleeps, label %claim, label %awake
claim:
  %was = atomicrmw xchg ptr %flag, i64 0 seq_cst
  %ours = icmp ne i64 %was, 0
  br i1 %ours, label %post, label %awake
post:
  %semaphore = getelementptr i64, ptr %flag, i64 4
  call i32 @sem_post(ptr %semaphore)
  br label %awake
awake:
  %next = add i64 %tid, 1
  br label %worker
work:
  call void %main(ptr %table, i64 %rows, ptr %sync, i64 0, i64 %nt)
  ret void
}}

define void @mlirt_worker(ptr %control, i64 %tid) {{
entry:
  %line = mul i64 %tid, 16
  %at = add i64 %line, 48
  %flag = getelementptr i64, ptr %control, i64 %at
  %semaphore = getelementptr i64, ptr %flag, i64 4
  %main_at = getelementptr i64, ptr %control, i64 16
  %table_at = getelementptr i64, ptr %control, i64 17
  %rows_at = getelementptr i64, ptr %control, i64 18
  %sync_at = getelementptr i64, ptr %control, i64 19
  %nt_at = getelementptr i64, ptr %control, i64 20
  %pauses_at = getelementptr i64, ptr %control, i64 21
  %stop_at = getelementptr i64, ptr %control, i64 32
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %seen, %nap ], [ %number, %work ]
  %pauses = load i64, ptr %pauses_at, align 8
  br label %spin
spin:
  %n = phi i64 [ 0, %idle ], [ %counted, %still ]
  %job = load atomic i64, ptr %control acquire, align 8
  %fresh = icmp ne i64 %job, %seen
  br i1 %fresh, label %begin, label %still
still:
  {pause}
  %counted = add i64 %n, 1
  %tired = icmp ugt i64 %counted, %pauses
  br i1 %tired, label %lie_down, label %spin
; Announce the sleep first, look for a job again after it: whoever takes the announcement back decides
; about the semaphore.
lie_down:
  %announced = atomicrmw xchg ptr %flag, i64 1 seq_cst
  %late_job = load atomic i64, ptr %control seq_cst, align 8
  %late = icmp ne i64 %late_job, %seen
  br i1 %late, label %get_up, label %nap
get_up:
  %mine = atomicrmw xchg ptr %flag, i64 0 seq_cst
  %kept = icmp ne i64 %mine, 0
  br i1 %kept, label %begin, label %nap
nap:
  %failed = call i32 @sem_wait(ptr %semaphore)
  %interrupted = icmp ne i32 %failed, 0
  br i1 %interrupted, label %nap_again, label %idle
nap_again:
  br label %nap
begin:
  %number = phi i64 [ %job, %spin ], [ %late_job, %get_up ]
  %stop = load atomic i64, ptr %stop_at acquire, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %leave, label %work
work:
  %main = load ptr, ptr %main_at, align 8
  %table = load ptr, ptr %table_at, align 8
  %rows = load i64, ptr %rows_at, align 8
  %sync = load ptr, ptr %sync_at, align 8
  %nt = load i64, ptr %nt_at, align 8
  call void %main(ptr %table, i64 %rows, ptr %sync, i64 %tid, i64 %nt)
  br label %idle
leave:
  ret void
}}

define void @mlirt_prepare(ptr %control, i64 %nt) {{
entry:
  br label %worker
worker:
  %tid = phi i64 [ 1, %entry ], [ %next, %make ]
  %more = icmp ult i64 %tid, %nt
  br i1 %more, label %make, label %done
make:
  %line = mul i64 %tid, 16
  %at = add i64 %line, 52
  %semaphore = getelementptr i64, ptr %control, i64 %at
  call i32 @sem_init(ptr %semaphore, i32 0, i32 0)
  %next = add i64 %tid, 1
  br label %worker
done:
  ret void
}}

define void @mlirt_spin(i64 %count) {{
entry:
  br label %again
again:
  %n = phi i64 [ 0, %entry ], [ %counted, %again ]
  {pause}
  %counted = add i64 %n, 1
  %enough = icmp uge i64 %counted, %count
  br i1 %enough, label %done, label %again
done:
  ret void
}}
"""


@cache
def main_object(triple: str, features: str | tuple[str, ...] = ()) -> bytes:
    """The ELF object for `triple`; `features` as LLVM writes them ("+avx2,+fma") or as names."""
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    declaration, pause = _PAUSES.get(triple.split("-")[0], ("", ""))
    source = _SOURCE.format(
        pause_declaration=declaration,
        pause=pause,
        limit=_SPINS_BEFORE_YIELDING,
        resume=_SPINS_BEFORE_YIELDING - _SPINS_BETWEEN_YIELDS,
    )
    text = features if isinstance(features, str) else ",".join(f"+{name.removeprefix('+')}" for name in features)
    machine = binding.Target.from_triple(triple).create_target_machine(
        features=text, opt=2, reloc="pic", codemodel="small", jit=False
    )
    module = binding.parse_assembly(source)
    module.triple = triple
    module.verify()
    return machine.emit_object(module)
