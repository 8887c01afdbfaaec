"""The walk through the table: parts of rows, rows that are open together, branches, the ticket for what is next."""

TABLE_ROWS = """
; The tickets that the parts of a step are divided among, 32 each.
define internal i64 @tickets(i64 %nt) {{
entry:
  %rounded = add i64 %nt, 31
  %tickets = lshr i64 %rounded, 5
  ret i64 %tickets
}}

; Where ticket %which is: the first one beside the words that all threads read, the others on lines of their own.
define internal ptr @ticket_at(ptr %sync, i64 %which) {{
entry:
  %lines = mul i64 %which, 16
  %first = icmp eq i64 %which, 0
  %behind = add i64 %lines, 48
  %word = select i1 %first, i64 0, i64 %behind
  %at = getelementptr i64, ptr %sync, i64 %word
  ret ptr %at
}}

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
  %tickets = call i64 @tickets(i64 %nt)
  %room = shl i64 %tickets, 5
  %most = udiv i64 %room, %together
  %capped = call i64 @llvm.umin.i64(i64 %many, i64 %most)
  %parts = select i1 %whole, i64 1, i64 %capped
  ret i64 %parts
}}

; How many rows are open at the same time as row %i, which has a kernel, itself included.
define internal i64 @rows_together(ptr %table, i64 %i, ptr %sync, i64 %nt) {{
entry:
  %tickets = call i64 @tickets(i64 %nt)
  %room = shl i64 %tickets, 5
  %fitting = udiv i64 %room, %nt
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

; Why the run has to end: 0 where nobody asked for it, -1 where word 0 of the request at word 7 says so, -2 where the
; time in its word 1 (nanoseconds of the system's monotonic clock; 0: none) has come.
define internal i64 @asked_to_stop(ptr %sync) {{
entry:
  %time = alloca {{ i64, i64 }}, align 8
  %request_at = getelementptr i64, ptr %sync, i64 7
  %request = load ptr, ptr %request_at, align 8
  %nobody = icmp eq ptr %request, null
  br i1 %nobody, label %go_on, label %ask
ask:
  %flag = load atomic i64, ptr %request seq_cst, align 8
  %cancelled = icmp ne i64 %flag, 0
  br i1 %cancelled, label %cancel, label %timed
timed:
  %deadline_at = getelementptr i64, ptr %request, i64 1
  %deadline = load i64, ptr %deadline_at, align 8
  %none = icmp eq i64 %deadline, 0
  br i1 %none, label %go_on, label %read
read:
  {now}
  %late = icmp sge i64 %now, %deadline
  br i1 %late, label %expire, label %go_on
cancel:
  ret i64 -1
expire:
  ret i64 -2
go_on:
  ret i64 0
}}

; The next row with a kernel, as @settle finds it, unless the run was asked to stop.
define internal i64 @next_kernel(ptr %table, i64 %from, ptr %sync) {{
entry:
  %why = call i64 @asked_to_stop(ptr %sync)
  %stops = icmp ne i64 %why, 0
  br i1 %stops, label %stop, label %go_on
stop:
  %stopped_at = getelementptr i64, ptr %sync, i64 3
  store i64 %why, ptr %stopped_at, align 8
  ret i64 -1
go_on:
  %row = call i64 @settle(ptr %table, i64 %from, ptr %sync)
  ret i64 %row
}}

; Open the first row with a kernel from row %from on to all threads, by the tickets, and the rows that are joined to it,
; or end the run, by the row -1. Either is the last that is written here: who sees the end may begin the next run at
; once.
define internal void @publish(ptr %table, i64 %from, ptr %sync, i64 %nt) {{
entry:
  %row_at = getelementptr i64, ptr %sync, i64 1
  %row = call i64 @next_kernel(ptr %table, i64 %from, ptr %sync)
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
  %rounded = add i64 %parts, 31
  %tickets = lshr i64 %rounded, 5
  br label %ticket
; From the last one to the first, which has the number that the next step counts on from.
ticket:
  %above = phi i64 [ %tickets, %open ], [ %which, %ticket ]
  %which = sub i64 %above, 1
  %before = shl i64 %which, 5
  %rest = sub i64 %parts, %before
  %count = call i64 @llvm.umin.i64(i64 %rest, i64 32)
  %bit = shl i64 1, %count
  %left = sub i64 %bit, 1
  %fresh = or i64 %shifted, %left
  %ticket_at = call ptr @ticket_at(ptr %sync, i64 %which)
  store atomic i64 %fresh, ptr %ticket_at seq_cst, align 8
  %again = icmp ugt i64 %which, 0
  br i1 %again, label %ticket, label %done
done:
  ret void
}}
"""
