"""Builds the one object that drives every CPU engine: its threads take the parts of each kernel as they come.

It is written as LLVM IR and is the same for every network: what differs is the table. Symbols of the object:
  mlirt_main(table, sync, nt, start, tid)       one thread's share of the run that has the number `start`
  mlirt_run(control, main, table, rows, sync, nt)    wakes the workers and takes part itself; returns when all is done:
                                            0, or the number (from 1) of the row that stopped the run
  mlirt_worker(control, tid)                the life of a worker: spin, sleep, run, again; returns when stopped
  mlirt_prepare(control, nt)                makes the semaphores of a zeroed control block
  mlirt_spin(n)                             n pauses, to find out how long one takes
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
`sync` (64 words, zeroed once) holds the ticket in word 0 (number of the step << 32, one bit for each part that is
left), in word 1 the first row that the ticket is for (-1: the run is over), in word 2 the number of the run, in word 3
the row that stopped it, in word 4 the rows of the table, in words 5 and 6 how many rows the ticket is for and their
parts, and the parts done in word 16. Numbers grow through all runs: who comes from an old run sees a new number and
leaves, so the table of a finished run is never read. A ticket has at most 32 parts, which the rows that are open at the
same time divide among them: as many rows as leave each one a part for every thread, at most 8.
`control` is CONTROL_WORDS(nt) words, zeroed once; words that different threads write lie 128 bytes apart. Word 0 is the
job number, odd while the words 16..22 are being written (main, table, -, sync, nt, pauses before sleeping, start);
32 stop; 48+16*tid whether that worker sleeps, and from the 4th word after it its semaphore.
"""

from functools import cache

from mlirt.runtime.llvm_binding import llvm

_SPINS_BEFORE_YIELDING = 4096
_SPINS_BETWEEN_YIELDS = 64
_PARTS_PER_THREAD = 2
_MOST_TOGETHER = 8

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

; How many parts row %i has where %together rows are open at the same time.
define internal i64 @parts(ptr %table, i64 %i, i64 %nt, i64 %together) {{
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
  %most = udiv i64 32, %together
  %capped = call i64 @llvm.umin.i64(i64 %many, i64 %most)
  %parts = select i1 %whole, i64 1, i64 %capped
  ret i64 %parts
}}

; How many rows are open at the same time as row %i, which has a kernel, itself included.
define internal i64 @rows_together(ptr %table, i64 %i, ptr %sync, i64 %nt) {{
entry:
  %fitting = udiv i64 32, %nt
  %most = call i64 @llvm.umin.i64(i64 %fitting, i64 {most_together})
  %rows_at = getelementptr i64, ptr %sync, i64 4
  %rows = load i64, ptr %rows_at, align 8
  br label %look
look:
  %last = phi i64 [ %i, %entry ], [ %next, %follows ]
  %next = add i64 %last, 1
  %count = sub i64 %next, %i
  %word = mul i64 %last, 3
  %flags_word = add i64 %word, 2
  %flags_at = getelementptr i64, ptr %table, i64 %flags_word
  %flags = load i64, ptr %flags_at, align 8
  %joined = and i64 %flags, 1
  %is_joined = icmp ne i64 %joined, 0
  %inside = icmp ult i64 %next, %rows
  %few = icmp ult i64 %count, %most
  %goes_on = and i1 %is_joined, %inside
  %may_follow = and i1 %goes_on, %few
  br i1 %may_follow, label %following, label %done
following:
  %next_flags_word = add i64 %flags_word, 3
  %next_flags_at = getelementptr i64, ptr %table, i64 %next_flags_word
  %next_flags = load i64, ptr %next_flags_at, align 8
  %control = and i64 %next_flags, 28
  %is_kernel = icmp eq i64 %control, 0
  br i1 %is_kernel, label %follows, label %done
follows:
  br label %look
done:
  ret i64 %count
}}

; The first row from row %from on that has a kernel; control rows on the way are carried out. -1 where the run ends.
define internal i64 @settle(ptr %table, i64 %from, ptr %sync) {{
entry:
  %rows_at = getelementptr i64, ptr %sync, i64 4
  %rows = load i64, ptr %rows_at, align 8
  br label %look
look:
  %i = phi i64 [ %from, %entry ], [ %next, %pass ], [ %target, %jumps ]
  %inside = icmp ult i64 %i, %rows
  br i1 %inside, label %row, label %end
row:
  %next = add i64 %i, 1
  %word = mul i64 %i, 3
  %params_word = add i64 %word, 1
  %flags_word = add i64 %word, 2
  %params_at = getelementptr i64, ptr %table, i64 %params_word
  %flags_at = getelementptr i64, ptr %table, i64 %flags_word
  %flags = load i64, ptr %flags_at, align 8
  %control = and i64 %flags, 28
  %is_kernel = icmp eq i64 %control, 0
  br i1 %is_kernel, label %found, label %act
act:
  %params = load ptr, ptr %params_at, align 8
  %given_at = getelementptr i64, ptr %params, i64 1
  %place = load ptr, ptr %params, align 8
  %given = load i64, ptr %given_at, align 8
  %size_flag = and i64 %flags, 8
  %is_size = icmp ne i64 %size_flag, 0
  br i1 %is_size, label %size, label %byte
size:
  %found_size = load i64, ptr %place, align 1
  %right = icmp eq i64 %found_size, %given
  br i1 %right, label %pass, label %stop
byte:
  %truth = load i8, ptr %place, align 1
  %holds = icmp ne i8 %truth, 0
  br i1 %holds, label %pass, label %zero
zero:
  %jump_flag = and i64 %flags, 4
  %is_jump = icmp ne i64 %jump_flag, 0
  br i1 %is_jump, label %jumps, label %stop
jumps:
  %target = add i64 %given, 0
  br label %look
pass:
  br label %look
stop:
  %stopped_at = getelementptr i64, ptr %sync, i64 3
  store i64 %next, ptr %stopped_at, align 8
  br label %end
end:
  ret i64 -1
found:
  ret i64 %i
}}

; The parts of %together rows from row %from on.
define internal i64 @parts_of_rows(ptr %table, i64 %from, i64 %nt, i64 %together) {{
entry:
  %end = add i64 %from, %together
  br label %row
row:
  %i = phi i64 [ %from, %entry ], [ %next, %row ]
  %before = phi i64 [ 0, %entry ], [ %sum, %row ]
  %parts = call i64 @parts(ptr %table, i64 %i, i64 %nt, i64 %together)
  %sum = add i64 %before, %parts
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %row, label %done
done:
  ret i64 %sum
}}

; Open the first row with a kernel from row %from on to all threads, by the ticket, and the rows that are joined to it,
; or end the run, by the row -1. Either is the last that is written here: who sees the end may begin the next run at
; once.
define internal void @publish(ptr %table, i64 %from, ptr %sync, i64 %nt) {{
entry:
  %row_at = getelementptr i64, ptr %sync, i64 1
  %row = call i64 @settle(ptr %table, i64 %from, ptr %sync)
  %old = load atomic i64, ptr %sync seq_cst, align 8
  store atomic i64 %row, ptr %row_at seq_cst, align 8
  %more = icmp sge i64 %row, 0
  br i1 %more, label %open, label %done
open:
  %number = lshr i64 %old, 32
  %next_number = add i64 %number, 1
  %shifted = shl i64 %next_number, 32
  %together_at = getelementptr i64, ptr %sync, i64 5
  %parts_at = getelementptr i64, ptr %sync, i64 6
  %together = call i64 @rows_together(ptr %table, i64 %row, ptr %sync, i64 %nt)
  %parts = call i64 @parts_of_rows(ptr %table, i64 %row, i64 %nt, i64 %together)
  store i64 %together, ptr %together_at, align 8
  store i64 %parts, ptr %parts_at, align 8
  %bit = shl i64 1, %parts
  %left = sub i64 %bit, 1
  %ticket = or i64 %shifted, %left
  store atomic i64 %ticket, ptr %sync seq_cst, align 8
  br label %done
done:
  ret void
}}

define void @mlirt_main(ptr %table, ptr %sync, i64 %nt, i64 %start, i64 %tid) {{
entry:
  %row_at = getelementptr i64, ptr %sync, i64 1
  %run_at = getelementptr i64, ptr %sync, i64 2
  %together_at = getelementptr i64, ptr %sync, i64 5
  %parts_at = getelementptr i64, ptr %sync, i64 6
  %done_at = getelementptr i64, ptr %sync, i64 16
  %each = call i64 @share(i64 %nt)
  %own = mul i64 %tid, %each
  %first_own = and i64 %own, 31
  br label %look
; The words beside the ticket belong to it where claiming a part succeeds: nobody writes them while parts are left.
look:
  %n = phi i64 [ 0, %entry ], [ 0, %do ], [ 0, %open ], [ 0, %lost ], [ %counted, %patient ], [ {resume}, %give_way ]
  %ticket = load atomic i64, ptr %sync seq_cst, align 8
  %run = load atomic i64, ptr %run_at seq_cst, align 8
  %row = load atomic i64, ptr %row_at seq_cst, align 8
  %ours = icmp eq i64 %run, %start
  br i1 %ours, label %count_parts, label %leave
count_parts:
  %left = and i64 %ticket, 4294967295
  %some = icmp ne i64 %left, 0
  br i1 %some, label %claim, label %none
none:
  %over = icmp slt i64 %row, 0
  br i1 %over, label %leave, label %wait
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
  %together = load i64, ptr %together_at, align 8
  %all_parts = load i64, ptr %parts_at, align 8
  br label %find
find:
  %mine = phi i64 [ %row, %work ], [ %next_row, %beyond ]
  %number = phi i64 [ %part, %work ], [ %number_beyond, %beyond ]
  %parts = call i64 @parts(ptr %table, i64 %mine, i64 %nt, i64 %together)
  %here = icmp ult i64 %number, %parts
  br i1 %here, label %do, label %beyond
beyond:
  %next_row = add i64 %mine, 1
  %number_beyond = sub i64 %number, %parts
  br label %find
do:
  %word = mul i64 %mine, 3
  %code_at = getelementptr i64, ptr %table, i64 %word
  %params_at = getelementptr i64, ptr %code_at, i64 1
  %code = load ptr, ptr %code_at, align 8
  %params = load ptr, ptr %params_at, align 8
  %last_part = sub i64 %parts, 1
  %share = sub i64 %last_part, %number
  call void %code(ptr %params, i64 %share, i64 %parts)
  %before = atomicrmw add ptr %done_at, i64 1 acq_rel
  %finished = add i64 %before, 1
  %last = icmp eq i64 %finished, %all_parts
  br i1 %last, label %open, label %look
open:
  store atomic i64 0, ptr %done_at monotonic, align 8
  %following = add i64 %row, %together
  call void @publish(ptr %table, i64 %following, ptr %sync, i64 %nt)
  br label %look
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
leave:
  ret void
}}

define i64 @mlirt_run(ptr %control, ptr %main, ptr %table, i64 %rows, ptr %sync, i64 %nt) {{
entry:
  %main_at = getelementptr i64, ptr %control, i64 16
  %table_at = getelementptr i64, ptr %control, i64 17
  %sync_at = getelementptr i64, ptr %control, i64 19
  %nt_at = getelementptr i64, ptr %control, i64 20
  %start_at = getelementptr i64, ptr %control, i64 22
  %run_at = getelementptr i64, ptr %sync, i64 2
  %stopped_at = getelementptr i64, ptr %sync, i64 3
  %rows_at = getelementptr i64, ptr %sync, i64 4
  %before = load atomic i64, ptr %run_at seq_cst, align 8
  %start = add i64 %before, 1
  %writing = atomicrmw add ptr %control, i64 1 seq_cst
  store atomic ptr %main, ptr %main_at seq_cst, align 8
  store atomic ptr %table, ptr %table_at seq_cst, align 8
  store atomic ptr %sync, ptr %sync_at seq_cst, align 8
  store atomic i64 %nt, ptr %nt_at seq_cst, align 8
  store atomic i64 %start, ptr %start_at seq_cst, align 8
  store atomic i64 0, ptr %stopped_at seq_cst, align 8
  store atomic i64 %rows, ptr %rows_at seq_cst, align 8
  store atomic i64 %start, ptr %run_at seq_cst, align 8
  call void @publish(ptr %table, i64 0, ptr %sync, i64 %nt)
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
  call void %main(ptr %table, ptr %sync, i64 %nt, i64 %start, i64 0)
  %stopped = load atomic i64, ptr %stopped_at seq_cst, align 8
  ret i64 %stopped
}}

define void @mlirt_worker(ptr %control, i64 %tid) {{
entry:
  %line = mul i64 %tid, 16
  %at = add i64 %line, 48
  %flag = getelementptr i64, ptr %control, i64 %at
  %semaphore = getelementptr i64, ptr %flag, i64 4
  %main_at = getelementptr i64, ptr %control, i64 16
  %table_at = getelementptr i64, ptr %control, i64 17
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
  %sync = load atomic ptr, ptr %sync_at seq_cst, align 8
  %nt = load atomic i64, ptr %nt_at seq_cst, align 8
  %start = load atomic i64, ptr %start_at seq_cst, align 8
  %now = load atomic i64, ptr %control seq_cst, align 8
  %same = icmp eq i64 %now, %number
  br i1 %same, label %work, label %idle
work:
  call void %main(ptr %table, ptr %sync, i64 %nt, i64 %start, i64 %tid)
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
        most_together=_MOST_TOGETHER,
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
