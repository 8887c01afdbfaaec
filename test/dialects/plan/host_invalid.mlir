// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @launch_c1(%x: tensor<3xf32>) {
  %in = plan.input %x : tensor<3xf32> -> !plan.memory
  // expected-error@+1 {{C1: plan.launch has 1 buffers, but an argument names #plan.pointer<1, "0">}}
  plan.launch %in {kernel = @k, args = [#plan.pointer<1, "0">]} : !plan.memory
  func.return
}

// -----

func.func @launch_c2() {
  // expected-error@+1 {{C2: the grid of plan.launch has three entries}}
  plan.launch {kernel = @k, args = [], grid = [#plan.expression<"1">]}
  func.return
}

// -----

func.func @launch_arguments() {
  // expected-error@+1 {{an argument is a pointer, a tensor map, an expression or a float}}
  plan.launch {kernel = @k, args = ["n"]}
  func.return
}

// -----

func.func @half_a_lifetime() {
  // expected-error@+1 {{plan.buffer has only one of first and last}}
  %b = plan.buffer {bytes = #plan.expression<"4">, first = 0 : i64} : !plan.memory
  func.return
}
