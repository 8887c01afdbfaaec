"""A run on the caller's thread alone: row by row, without tickets, and without a word that another thread writes."""

ALONE = """
; The words of %job are those of `sync` that the walk through a table reads, and the table in word 8.
define i64 @mlirt_alone(ptr %job) {{
entry:
  %table_at = getelementptr i64, ptr %job, i64 8
  %stopped_at = getelementptr i64, ptr %job, i64 3
  %table = load ptr, ptr %table_at, align 8
  store i64 0, ptr %stopped_at, align 8
  br label %look
look:
  %from = phi i64 [ 0, %entry ], [ %next, %row ]
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
  %stopped = load i64, ptr %stopped_at, align 8
  ret i64 %stopped
}}
"""
