"""Whole-number operations over an array of numbers: what of a run follows from the lengths of its inputs."""

LENGTHS = """
; Code: `count` instructions of five 32-bit words each: an operation, the place of its result and of three operands.
; Numbers lie within 2^62 of 0, at first as well; the instruction whose result would not, or that does not hold, ends
; it: its number from 1 on is returned, else 0.
define i64 @mlirt_lengths(ptr %code, i64 %count, ptr %numbers, ptr %words) {{
entry:
  br label %instructions
instructions:
  %done = phi i64 [ 0, %entry ], [ %next, %keep ], [ %next, %check ], [ %next, %word ]
  %more = icmp ult i64 %done, %count
  br i1 %more, label %instruction, label %leave
leave:
  ret i64 0
instruction:
  %next = add i64 %done, 1
  %at = mul i64 %done, 20
  %op_at = getelementptr i8, ptr %code, i64 %at
  %to_at = getelementptr i32, ptr %op_at, i64 1
  %a_at = getelementptr i32, ptr %op_at, i64 2
  %b_at = getelementptr i32, ptr %op_at, i64 3
  %c_at = getelementptr i32, ptr %op_at, i64 4
  %op = load i32, ptr %op_at, align 4
  %to = load i32, ptr %to_at, align 4
  %a_number = load i32, ptr %a_at, align 4
  %b_number = load i32, ptr %b_at, align 4
  %c_number = load i32, ptr %c_at, align 4
  %a_place = getelementptr i64, ptr %numbers, i32 %a_number
  %b_place = getelementptr i64, ptr %numbers, i32 %b_number
  %c_place = getelementptr i64, ptr %numbers, i32 %c_number
  %a = load i64, ptr %a_place, align 8
  %b = load i64, ptr %b_place, align 8
  switch i32 %op, label %fail [
    i32 0, label %sum
    i32 1, label %difference
    i32 2, label %product
    i32 3, label %divisor
    i32 4, label %divisor
    i32 5, label %maximum
    i32 6, label %minimum
    i32 7, label %broadcast
    i32 8, label %choice
    i32 9, label %natural
    i32 10, label %equal
    i32 11, label %word
  ]
sum:
  %added = add i64 %a, %b
  br label %range
difference:
  %subtracted = sub i64 %a, %b
  br label %range
product:
  %with_flag = call {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64 %a, i64 %b)
  %multiplied = extractvalue {{ i64, i1 }} %with_flag, 0
  %is_beyond = extractvalue {{ i64, i1 }} %with_flag, 1
  br i1 %is_beyond, label %fail, label %range
divisor:
  %by_zero = icmp eq i64 %b, 0
  br i1 %by_zero, label %fail, label %division
division:
  %quotient = sdiv i64 %a, %b
  %remainder = srem i64 %a, %b
  %is_inexact = icmp ne i64 %remainder, 0
  %signs = xor i64 %remainder, %b
  %differ = icmp slt i64 %signs, 0
  %is_rounded_up = and i1 %is_inexact, %differ
  %below = sub i64 %quotient, 1
  %shifted = add i64 %remainder, %b
  %floor = select i1 %is_rounded_up, i64 %below, i64 %quotient
  %modulo = select i1 %is_rounded_up, i64 %shifted, i64 %remainder
  %is_division = icmp eq i32 %op, 3
  %divided = select i1 %is_division, i64 %floor, i64 %modulo
  br label %range
maximum:
  %larger = call i64 @llvm.smax.i64(i64 %a, i64 %b)
  br label %range
minimum:
  %smaller = call i64 @llvm.smin.i64(i64 %a, i64 %b)
  br label %range
broadcast:
  %is_one = icmp eq i64 %a, 1
  %length = select i1 %is_one, i64 %b, i64 %a
  br label %range
choice:
  %otherwise = load i64, ptr %c_place, align 8
  %holds = icmp sge i64 %a, 0
  %chosen = select i1 %holds, i64 %b, i64 %otherwise
  br label %range
range:
  %result = phi i64 [ %added, %sum ], [ %subtracted, %difference ], [ %multiplied, %product ], [ %divided, %division ],
                    [ %larger, %maximum ], [ %smaller, %minimum ], [ %length, %broadcast ], [ %chosen, %choice ]
  %from_least = add i64 %result, 4611686018427387904
  %is_outside = icmp ugt i64 %from_least, 9223372036854775808
  br i1 %is_outside, label %fail, label %keep
keep:
  %result_place = getelementptr i64, ptr %numbers, i32 %to
  store i64 %result, ptr %result_place, align 8
  br label %instructions
natural:
  %is_natural = icmp sge i64 %a, 0
  br label %check
equal:
  %is_equal = icmp eq i64 %a, %b
  br label %check
check:
  %is_right = phi i1 [ %is_natural, %natural ], [ %is_equal, %equal ]
  br i1 %is_right, label %instructions, label %fail
word:
  %address = add i64 %a, %b
  %word_place = getelementptr i64, ptr %words, i32 %to
  store i64 %address, ptr %word_place, align 8
  br label %instructions
fail:
  ret i64 %next
}}
"""
