"""The life of the threads: a run wakes them, between runs they spin for a while and then sleep."""

WORKERS = """
define i64 @mlirt_run(ptr %control, ptr %table, i64 %rows, ptr %request) {{
entry:
  %main_at = getelementptr i64, ptr %control, i64 16
  %table_at = getelementptr i64, ptr %control, i64 17
  %sync_at = getelementptr i64, ptr %control, i64 19
  %nt_at = getelementptr i64, ptr %control, i64 20
  %start_at = getelementptr i64, ptr %control, i64 22
  %main = load ptr, ptr %main_at, align 8
  %sync = load ptr, ptr %sync_at, align 8
  %nt = load i64, ptr %nt_at, align 8
  %run_at = getelementptr i64, ptr %sync, i64 2
  %stopped_at = getelementptr i64, ptr %sync, i64 3
  %rows_at = getelementptr i64, ptr %sync, i64 4
  %request_at = getelementptr i64, ptr %sync, i64 7
  %before = load atomic i64, ptr %run_at seq_cst, align 8
  %start = add i64 %before, 1
  %writing = atomicrmw add ptr %control, i64 1 seq_cst
  store atomic ptr %table, ptr %table_at seq_cst, align 8
  store atomic i64 %start, ptr %start_at seq_cst, align 8
  store atomic i64 0, ptr %stopped_at seq_cst, align 8
  store atomic i64 %rows, ptr %rows_at seq_cst, align 8
  store ptr %request, ptr %request_at, align 8
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
  %woken_at = getelementptr i64, ptr %control, i64 33
  %woken = load i64, ptr %woken_at, align 8
  %woken_now = add i64 %woken, 1
  store i64 %woken_now, ptr %woken_at, align 8
  {wake}
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
  {sleep}
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
  {make_semaphore}
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
