"""A run on the caller's thread alone: row by row, without tickets, and without a word that another thread writes."""

ALONE = """
; The words of %job are those of `sync` that the walk through a table reads, the table in word 8, and in word 9 the
; address of the interpreter's door (runtime/interpreter_door.py), or 0 for callers that keep the interpreter's lock.
define i64 @mlirt_alone(ptr %job) {{
entry:
  %table_at = getelementptr i64, ptr %job, i64 8
  %door_at = getelementptr i64, ptr %job, i64 9
  %stopped_at = getelementptr i64, ptr %job, i64 3
  %table = load ptr, ptr %table_at, align 8
  %door = load ptr, ptr %door_at, align 8
  store i64 0, ptr %stopped_at, align 8
  %has_door = icmp ne ptr %door, null
  %caller = ptrtoint ptr %job to i64
  br i1 %has_door, label %open, label %look
open:
  %was = cmpxchg ptr %door, i64 %caller, i64 0 release monotonic
  br label %look
look:
  %from = phi i64 [ 0, %entry ], [ 0, %open ], [ %next, %row ]
  %i = call i64 @next_kernel(ptr %table, i64 %from, ptr %job)
  %more = icmp sge i64 %i, 0
  br i1 %more, label %row, label %done
row:
  %next = add i64 %i, 1
  %word = mul i64 %i, 3
  %code_at = getelementptr i64, ptr %table, i64 %word
  %params_at = getelementptr i64, ptr %code_at, i64 1
  %code = load ptr, ptr %code_at, align 8
  %params = load ptr, ptr %params_at, align 8
  call void %code(ptr %params, i64 0, i64 1)
  br label %look
done:
  br i1 %has_door, label %back, label %leave
back:
  call void @close_door(ptr %door, i64 %caller)
  br label %leave
leave:
  %stopped = load i64, ptr %stopped_at, align 8
  ret i64 %stopped
}}

; Closes the door when it is open, or after some pauses: whoever had closed it does not open it again then.
define internal void @close_door(ptr %door, i64 %caller) {{
entry:
  %limit_at = getelementptr i64, ptr %door, i64 1
  %most_at = getelementptr i64, ptr %door, i64 2
  %limit = load atomic i64, ptr %limit_at monotonic, align 8
  br label %look
look:
  %n = phi i64 [ 0, %entry ], [ %counted, %still ]
  %closed = load atomic i64, ptr %door monotonic, align 8
  %open = icmp eq i64 %closed, 0
  br i1 %open, label %try, label %still
try:
  %pair = cmpxchg ptr %door, i64 0, i64 %caller acquire monotonic
  %ours = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %ours, label %found, label %still
still:
  {pause}
  %counted = add i64 %n, 1
  %vain = icmp uge i64 %counted, %limit
  br i1 %vain, label %give_up, label %look
found:
  %most = load i64, ptr %most_at, align 8
  %twice = shl i64 %limit, 1
  %longer = call i64 @llvm.umin.i64(i64 %twice, i64 %most)
  br label %learn
give_up:
  store atomic i64 %caller, ptr %door monotonic, align 8
  %part = lshr i64 %limit, 3
  %shorter = sub i64 %limit, %part
  br label %learn
learn:
  %new = phi i64 [ %longer, %found ], [ %shorter, %give_up ]
  store atomic i64 %new, ptr %limit_at monotonic, align 8
  ret void
}}
"""
