"""A kernel that writes the borders of its results before the kernel that writes what is inside of them."""

BORDERS = """
; Parameters: a kernel, its parameters, a count of memories with a border, and for each of them its address, the number
; of images, the rows of one, the bytes of a row, the rows of border above and below, the bytes of border at both ends
; of a row, and the byte that the border is made of. Each part takes its share of the images. Other parts may write
; inside of them at the same time, as nobody but this writes the border.
define void @mlirt_bordered(ptr %given, i64 %part, i64 %parts) {{
entry:
  %params_at = getelementptr i64, ptr %given, i64 1
  %count_at = getelementptr i64, ptr %given, i64 2
  %first_at = getelementptr i64, ptr %given, i64 3
  %kernel = load ptr, ptr %given, align 8
  %params = load ptr, ptr %params_at, align 8
  %count = load i64, ptr %count_at, align 8
  %next_part = add i64 %part, 1
  br label %memories
memories:
  %number = phi i64 [ 0, %entry ], [ %next_number, %written ]
  %at = phi ptr [ %first_at, %entry ], [ %next_at, %written ]
  %more = icmp ult i64 %number, %count
  br i1 %more, label %memory, label %compute
memory:
  %images_at = getelementptr i64, ptr %at, i64 1
  %rows_at = getelementptr i64, ptr %at, i64 2
  %row_at = getelementptr i64, ptr %at, i64 3
  %above_at = getelementptr i64, ptr %at, i64 4
  %beside_at = getelementptr i64, ptr %at, i64 5
  %fill_at = getelementptr i64, ptr %at, i64 6
  %next_at = getelementptr i64, ptr %at, i64 7
  %next_number = add i64 %number, 1
  %start = load ptr, ptr %at, align 8
  %images = load i64, ptr %images_at, align 8
  %rows = load i64, ptr %rows_at, align 8
  %row = load i64, ptr %row_at, align 8
  %above = load i64, ptr %above_at, align 8
  %beside = load i64, ptr %beside_at, align 8
  %word = load i64, ptr %fill_at, align 8
  %fill = trunc i64 %word to i8
  %above_bytes = mul i64 %above, %row
  %outside = add i64 %above_bytes, %beside
  %twice = shl i64 %above_bytes, 1
  %inside = mul i64 %rows, %row
  %image_bytes = add i64 %inside, %twice
  %behind = sub i64 %image_bytes, %outside
  %between = shl i64 %beside, 1
  %first_product = mul i64 %images, %part
  %first = udiv i64 %first_product, %parts
  %last_product = mul i64 %images, %next_part
  %last = udiv i64 %last_product, %parts
  %to_ends = sub i64 %above_bytes, %beside
  br label %every_image
every_image:
  %image = phi i64 [ %first, %memory ], [ %next_image, %rows_done ]
  %goes_on = icmp ult i64 %image, %last
  br i1 %goes_on, label %one_image, label %written
one_image:
  %next_image = add i64 %image, 1
  %offset = mul i64 %image, %image_bytes
  %place = getelementptr i8, ptr %start, i64 %offset
  %lower = getelementptr i8, ptr %place, i64 %behind
  call void @llvm.memset.p0.i64(ptr %place, i8 %fill, i64 %outside, i1 false)
  call void @llvm.memset.p0.i64(ptr %lower, i8 %fill, i64 %outside, i1 false)
  %ends = getelementptr i8, ptr %place, i64 %to_ends
  %narrow = icmp eq i64 %beside, 0
  br i1 %narrow, label %rows_done, label %every_row
every_row:
  %passed = phi i64 [ 1, %one_image ], [ %next_passed, %one_row ]
  %inner = icmp ult i64 %passed, %rows
  br i1 %inner, label %one_row, label %rows_done
one_row:
  %next_passed = add i64 %passed, 1
  %along = mul i64 %passed, %row
  %end = getelementptr i8, ptr %ends, i64 %along
  call void @llvm.memset.p0.i64(ptr %end, i8 %fill, i64 %between, i1 false)
  br label %every_row
rows_done:
  br label %every_image
written:
  br label %memories
compute:
  call void %kernel(ptr %params, i64 %part, i64 %parts)
  ret void
}}
"""
