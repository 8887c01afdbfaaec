// RUN: rt-opt %s -p verify-memory-plan --split-input-file --verify-diagnostics

kernel.func @fill(%y: memref<?xf32>) {
  kernel.return
}
func.func @no_lifetime() {
  // expected-error@+1 {{has no lifetime: expected first and last, run plan-memory}}
  %a = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  func.return
}

// -----

kernel.func @fill(%y: memref<?xf32>) {
  kernel.return
}
func.func @used_too_late() {
  %a = plan.buffer {bytes = #plan.expression<"64">, first = 0 : i64, last = 0 : i64} : !plan.memory
  plan.launch %a {kernel = @fill, args = [#plan.pointer<0, "0">]} : !plan.memory
  // expected-error@+1 {{is launch 1 and uses a buffer that is alive in [0, 0]}}
  plan.launch %a {kernel = @fill, args = [#plan.pointer<0, "0">]} : !plan.memory
  func.return
}

// -----

kernel.func @fill(%y: memref<?xf32>) {
  kernel.return
}
func.func @dies_before_it_is_returned() -> (tensor<16xf32>) {
  %a = plan.buffer {bytes = #plan.expression<"64">, first = 0 : i64, last = 0 : i64} : !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"64">, first = 1 : i64, last = 1 : i64} : !plan.memory
  plan.launch %a {kernel = @fill, args = [#plan.pointer<0, "0">]} : !plan.memory
  plan.launch %b {kernel = @fill, args = [#plan.pointer<0, "0">]} : !plan.memory
  // expected-error@+1 {{returns a buffer that dies after launch 0 of 2}}
  %y = plan.output %a : !plan.memory -> tensor<16xf32>
  func.return %y : tensor<16xf32>
}

// -----

func.func @view_reaches_out() {
  %a = plan.buffer {bytes = #plan.expression<"64">, first = 0 : i64, last = 0 : i64} : !plan.memory
  // expected-error@+1 {{reaches byte 96 of a buffer of 64 bytes}}
  %v = plan.view %a {offset = #plan.expression<"32">, bytes = #plan.expression<"64">} : !plan.memory -> !plan.memory
  func.return
}

// -----

func.func @output_is_larger() -> (tensor<17xf32>) {
  %a = plan.buffer {bytes = #plan.expression<"64">, first = 0 : i64, last = 0 : i64} : !plan.memory
  // expected-error@+1 {{reaches byte 68 of a buffer of 64 bytes}}
  %y = plan.output %a : !plan.memory -> tensor<17xf32>
  func.return %y : tensor<17xf32>
}

// -----

kernel.func @fill(%y: memref<?xf32>) {
  kernel.return
}
func.func @pointer_before_the_buffer() {
  %a = plan.buffer {bytes = #plan.expression<"64">, first = 0 : i64, last = 0 : i64} : !plan.memory
  // expected-error@+1 {{starts -4 bytes before its buffer}}
  plan.launch %a {kernel = @fill, args = [#plan.pointer<0, "-4">]} : !plan.memory
  func.return
}

// -----

func.func @halo_classes_have_one_fill() {
  %a = plan.buffer {bytes = #plan.expression<"64">, halo = "h", first = 0 : i64, last = 0 : i64} : !plan.memory
  // expected-error@+1 {{has 128 in its halo, others of its class have 0}}
  %b = plan.buffer {bytes = #plan.expression<"64">, halo = "h", fill = 128 : i64, first = 0 : i64, last = 0 : i64} : !plan.memory
  func.return
}

// -----

func.func @halo_classes_have_one_size() {
  %a = plan.buffer {bytes = #plan.expression<"64">, halo = "h", first = 0 : i64, last = 0 : i64} : !plan.memory
  // expected-error@+1 {{has 32 bytes, others of its halo class have 64}}
  %b = plan.buffer {bytes = #plan.expression<"32">, halo = "h", first = 0 : i64, last = 0 : i64} : !plan.memory
  func.return
}

// -----

func.func @overlap_in_time() {
  %a = plan.buffer {bytes = #plan.expression<"300">, first = 0 : i64, last = 2 : i64, offset = #plan.expression<"0">} : !plan.memory
  // expected-error@+1 {{overlaps another buffer that is alive in [0, 2]}}
  %b = plan.buffer {bytes = #plan.expression<"64">, first = 2 : i64, last = 3 : i64, offset = #plan.expression<"256">} : !plan.memory
  func.return
}

// -----

func.func @halo_and_other_share() {
  %a = plan.buffer {bytes = #plan.expression<"64">, halo = "h", first = 0 : i64, last = 0 : i64, offset = #plan.expression<"0">} : !plan.memory
  // expected-error@+1 {{overlaps another buffer that is alive in [0, 0]}}
  %b = plan.buffer {bytes = #plan.expression<"64">, first = 1 : i64, last = 1 : i64, offset = #plan.expression<"0">} : !plan.memory
  func.return
}

// -----

func.func @misaligned() {
  // expected-error@+1 {{lies at offset 100, which is no multiple of 256}}
  %a = plan.buffer {bytes = #plan.expression<"64">, first = 0 : i64, last = 0 : i64, offset = #plan.expression<"100">} : !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"64">, first = 0 : i64, last = 0 : i64, offset = #plan.expression<"256">} : !plan.memory
  func.return
}
