"""Builds the one object that drives every CPU engine: its threads take the parts of each kernel as they come.

It is written as LLVM IR and is the same for every network: what differs is the table. Symbols of the object:
  mlirt_main(table, rows, sync, nt, start, tid)  one thread's share of a run whose first row has the number `start`
  mlirt_run(control, main, table, rows, sync, nt)    wakes the workers and takes part itself; returns when all is done
  mlirt_worker(control, tid)                the life of a worker: spin a little, sleep, run, again; returns when stopped
  mlirt_prepare(control, nt)                makes the semaphores of a zeroed control block
  mlirt_spin(n)                             n pauses, to find out how long one takes
A row is 3 words: address of the kernel, address of its parameters, flags (2: one part alone).
A row's work is cut into parts, more of them than threads: a thread that the system takes off its core costs the part
that it holds and no more, and one that comes late finds nothing left to do. A thread takes its own parts first, whose
data its cache has, then those of others. `sync` (64 words, zeroed once) holds the ticket in word 0 (number of the row
<< 32, one bit for each part that is left) and the parts done in word 16. Row numbers grow through all runs: who has an
old number can claim nothing, so the table of a finished run is never read. A kernel has at most 32 parts.
`control` is CONTROL_WORDS(nt) words, zeroed once; words that different threads write lie 128 bytes apart. Word 0 is the
job number, odd while the words 16..22 are being written (main, table, rows, sync, nt, pauses before sleeping, start);
32 stop; 48+16*tid whether that worker sleeps, and from the 4th word after it its semaphore.
"""

from functools import cache

from mlirt.runtime.llvm_binding import llvm

_SPINS_BEFORE_YIELDING = 4096
_SPINS_BETWEEN_YIELDS = 64
_PARTS_PER_THREAD = 2

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

declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.umin.i64(i64, i64)

; How many parts each thread has of a row that is shared.
define internal i64 @share(i64 %nt) {{
entry:
  %many = mul i64 %nt, {parts_per_thread}
  %fits = icmp ule i64 %many, 32
  %each = select i1 %fits, i64 {parts_per_thread}, i64 1
  ret i64 %each
}}

define internal i64 @parts(ptr %table, i64 %i, i64 %nt) {{
entry:
  %word = mul i64 %i, 3
  %flags_word = add i64 %word, 2
  %flags_at = getelementptr i64, ptr %table, i64 %flags_word
  %flags = load i64, ptr %flags_at, align 8
  %serial = and i64 %flags, 2
  %is_serial = icmp ne i64 %serial, 0
  %few = icmp ule i64 %nt, 1
  %whole = or i1 %is_serial, %few
  %each = call i64 @share(i64 %nt)
  %many = mul i64 %nt, %each
  %capped = call i64 @llvm.umin.i64(i64 %many, i64 32)
  %parts = select i1 %whole, i64 1, i64 %capped
  ret i64 %parts
}}

; The ticket for a row: every part is left.
define internal i64 @ticket(ptr %table, i64 %rows, i64 %i, i64 %nt, i64 %number) {{
entry:
  %shifted = shl i64 %number, 32
  %more = icmp slt i64 %i, %rows
  br i1 %more, label %row, label %end
row:
  %parts = call i64 @parts(ptr %table, i64 %i, i64 %nt)
  %bit = shl i64 1, %parts
  %left = sub i64 %bit, 1
  %full = or i64 %shifted, %left
  ret i64 %full
end:
  ret i64 %shifted
}}

define void @mlirt_main(ptr %table, i64 %rows, ptr %sync, i64 %nt, i64 %start, i64 %tid) {{
entry:
  %done_at = getelementptr i64, ptr %sync, i64 16
  %each = call i64 @share(i64 %nt)
  %own = mul i64 %tid, %each
  %first_own = and i64 %own, 31
  %any = icmp sgt i64 %rows, 0
  br i1 %any, label %row, label %leave
row:
  %i = phi i64 [ 0, %entry ], [ %next, %advance ]
  %long_number = add i64 %start, %i
  %number = and i64 %long_number, 4294967295
  br label %look
look:
  %n = phi i64 [ 0, %row ], [ 0, %work ], [ 0, %lost ], [ %counted, %patient ], [ {resume}, %give_way ]
  %ticket = load atomic i64, ptr %sync acquire, align 8
  %current = lshr i64 %ticket, 32
  %here = icmp eq i64 %current, %number
  br i1 %here, label %count_parts, label %advance
count_parts:
  %left = and i64 %ticket, 4294967295
  %some = icmp ne i64 %left, 0
  br i1 %some, label %claim, label %wait
claim:
  %from_own = lshr i64 %left, %first_own
  %has_own = icmp ne i64 %from_own, 0
  %near = call i64 @llvm.cttz.i64(i64 %from_own, i1 false)
  %near_part = add i64 %near, %first_own
  %far_part = call i64 @llvm.cttz.i64(i64 %left, i1 false)
  %part = select i1 %has_own, i64 %near_part, i64 %far_part
  %bit = shl i64 1, %part
  %taken = xor i64 %ticket, %bit
  %pair = cmpxchg ptr %sync, i64 %ticket, i64 %taken acq_rel acquire
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %work, label %lost
lost:
  br label %look
work:
  %word = mul i64 %i, 3
  %code_at = getelementptr i64, ptr %table, i64 %word
  %params_at = getelementptr i64, ptr %code_at, i64 1
  %code = load ptr, ptr %code_at, align 8
  %params = load ptr, ptr %params_at, align 8
  %parts = call i64 @parts(ptr %table, i64 %i, i64 %nt)
  call void %code(ptr %params, i64 %part, i64 %parts)
  %before = atomicrmw add ptr %done_at, i64 1 acq_rel
  %finished = add i64 %before, 1
  %last = icmp eq i64 %finished, %parts
  br i1 %last, label %open, label %look
open:
  store atomic i64 0, ptr %done_at monotonic, align 8
  %following = add i64 %i, 1
  %following_number = add i64 %number, 1
  %fresh = call i64 @ticket(ptr %table, i64 %rows, i64 %following, i64 %nt, i64 %following_number)
  store atomic i64 %fresh, ptr %sync release, align 8
  br label %advance
wait:
  {pause}
  %counted = add i64 %n, 1
  %long = icmp uge i64 %counted, {limit}
  br i1 %long, label %give_way, label %patient
patient:
  br label %look
give_way:
  call i32 @sched_yield()
  br label %look
advance:
  %next = add i64 %i, 1
  %is_last = icmp eq i64 %next, %rows
  br i1 %is_last, label %leave, label %row
leave:
  ret void
}}

define void @mlirt_run(ptr %control, ptr %main, ptr %table, i64 %rows, ptr %sync, i64 %nt) {{
entry:
  %main_at = getelementptr i64, ptr %control, i64 16
  %table_at = getelementptr i64, ptr %control, i64 17
  %rows_at = getelementptr i64, ptr %control, i64 18
  %sync_at = getelementptr i64, ptr %control, i64 19
  %nt_at = getelementptr i64, ptr %control, i64 20
  %start_at = getelementptr i64, ptr %control, i64 22
  %ticket = load atomic i64, ptr %sync acquire, align 8
  %start = lshr i64 %ticket, 32
  %writing = atomicrmw add ptr %control, i64 1 seq_cst
  store atomic ptr %main, ptr %main_at seq_cst, align 8
  store atomic ptr %table, ptr %table_at seq_cst, align 8
  store atomic i64 %rows, ptr %rows_at seq_cst, align 8
  store atomic ptr %sync, ptr %sync_at seq_cst, align 8
  store atomic i64 %nt, ptr %nt_at seq_cst, align 8
  store atomic i64 %start, ptr %start_at seq_cst, align 8
  %first = call i64 @ticket(ptr %table, i64 %rows, i64 0, i64 %nt, i64 %start)
  store atomic i64 %first, ptr %sync seq_cst, align 8
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
  call void %main(ptr %table, i64 %rows, ptr %sync, i64 %nt, i64 %start, i64 0)
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
  %start_at = getelementptr i64, ptr %control, i64 22
  %stop_at = getelementptr i64, ptr %control, i64 32
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %seen, %nap ], [ %seen, %begin ], [ %seen, %read ], [ %number, %work ]
  %pauses = load i64, ptr %pauses_at, align 8
  br label %spin
spin:
  %n = phi i64 [ 0, %idle ], [ %counted, %still ]
  %job = load atomic i64, ptr %control acquire, align 8
  %fresh = icmp ne i64 %job, %seen
  br i1 %fresh, label %wake, label %still
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
  br i1 %kept, label %wake, label %nap
nap:
  %failed = call i32 @sem_wait(ptr %semaphore)
  %interrupted = icmp ne i32 %failed, 0
  br i1 %interrupted, label %nap_again, label %idle
nap_again:
  br label %nap
wake:
  %number = phi i64 [ %job, %spin ], [ %late_job, %get_up ]
  %stop = load atomic i64, ptr %stop_at acquire, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %leave, label %begin
begin:
  %odd = and i64 %number, 1
  %written = icmp eq i64 %odd, 0
  br i1 %written, label %read, label %idle
; The words belong together only where the job is still the same after reading them.
read:
  %main = load atomic ptr, ptr %main_at seq_cst, align 8
  %table = load atomic ptr, ptr %table_at seq_cst, align 8
  %rows = load atomic i64, ptr %rows_at seq_cst, align 8
  %sync = load atomic ptr, ptr %sync_at seq_cst, align 8
  %nt = load atomic i64, ptr %nt_at seq_cst, align 8
  %start = load atomic i64, ptr %start_at seq_cst, align 8
  %now = load atomic i64, ptr %control seq_cst, align 8
  %same = icmp eq i64 %now, %number
  br i1 %same, label %work, label %idle
work:
  call void %main(ptr %table, i64 %rows, ptr %sync, i64 %nt, i64 %start, i64 %tid)
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
        parts_per_thread=_PARTS_PER_THREAD,
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
