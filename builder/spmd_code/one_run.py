"""What a thread does in one run: claim parts of the rows that are open, until the run is over."""

ONE_RUN = """
define void @mlirt_main(ptr %table, ptr %sync, i64 %nt, i64 %start, i64 %tid) {{
entry:
  %row_at = getelementptr i64, ptr %sync, i64 1
  %run_at = getelementptr i64, ptr %sync, i64 2
  %together_at = getelementptr i64, ptr %sync, i64 5
  %parts_at = getelementptr i64, ptr %sync, i64 6
  %done_at = getelementptr i64, ptr %sync, i64 16
  %each = call i64 @share(i64 %nt)
  %tickets = call i64 @tickets(i64 %nt)
  %own = mul i64 %tid, %each
  %own_ticket = lshr i64 %own, 5
  %first_own = and i64 %own, 31
  br label %look
look:
  %n = phi i64 [ 0, %entry ], [ 0, %do ], [ 0, %open ], [ 0, %lost ], [ %counted, %patient ], [ {resume}, %give_way ]
  br label %scan
; The own ticket first, then those behind it, around to the one before it.
scan:
  %k = phi i64 [ 0, %look ], [ %next_k, %none ]
  %turned = add i64 %own_ticket, %k
  %beyond_last = icmp uge i64 %turned, %tickets
  %around = sub i64 %turned, %tickets
  %which = select i1 %beyond_last, i64 %around, i64 %turned
  %ticket_at = call ptr @ticket_at(ptr %sync, i64 %which)
  %ticket = load atomic i64, ptr %ticket_at seq_cst, align 8
  %run = load atomic i64, ptr %run_at seq_cst, align 8
  %row = load atomic i64, ptr %row_at seq_cst, align 8
  %ours = icmp eq i64 %run, %start
  br i1 %ours, label %count_parts, label %leave
; The words beside the tickets belong to them where claiming a part succeeds: nobody writes them while parts are left.
count_parts:
  %left = and i64 %ticket, 4294967295
  %some = icmp ne i64 %left, 0
  br i1 %some, label %claim, label %none
none:
  %next_k = add i64 %k, 1
  %more_tickets = icmp ult i64 %next_k, %tickets
  br i1 %more_tickets, label %scan, label %nothing
nothing:
  %over = icmp slt i64 %row, 0
  br i1 %over, label %leave, label %wait
claim:
  %is_own = icmp eq i64 %k, 0
  %from = select i1 %is_own, i64 %first_own, i64 0
  %from_own = lshr i64 %left, %from
  %has_own = icmp ne i64 %from_own, 0
  %near = call i64 @llvm.cttz.i64(i64 %from_own, i1 false)
  %near_part = add i64 %near, %from
  %far_part = call i64 @llvm.cttz.i64(i64 %left, i1 false)
  %place = select i1 %has_own, i64 %near_part, i64 %far_part
  %bit = shl i64 1, %place
  %taken = xor i64 %ticket, %bit
  %pair = cmpxchg ptr %ticket_at, i64 %ticket, i64 %taken acq_rel acquire
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %work, label %lost
lost:
  br label %look
work:
  %before_ticket = shl i64 %which, 5
  %part = add i64 %before_ticket, %place
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
  {give_way}
  br label %look
leave:
  ret void
}}
"""
