// RUN: rt-opt %s | rt-opt | filecheck %s
// The host program: buffers, views, launches with arguments that the shapes determine.

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> (tensor<?x3xf32, #trt.dims<["n", "3"]>>) {
  // CHECK: %in = plan.input %x : tensor<?x3xf32, #trt.dims<["n", "3"]>> -> !plan.memory
  %in = plan.input %x : tensor<?x3xf32, #trt.dims<["n", "3"]>> -> !plan.memory
  // CHECK: %w = plan.weight {value = #trt.weights<"conv1", "0123456789abcdef">, bytes = 12 : i64} : !plan.memory
  %w = plan.weight {value = #trt.weights<"conv1", "0123456789abcdef">, bytes = 12 : i64} : !plan.memory
  // CHECK: %b = plan.buffer {bytes = #plan.expression<"12*n">} : !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"12*n">} : !plan.memory
  // CHECK: %h = plan.buffer {bytes = #plan.expression<"64">, halo = "4x4 halo 1", first = 0 : i64, last = 2 : i64, offset = #plan.expression<"256">} : !plan.memory
  %h = plan.buffer {bytes = #plan.expression<"64">, halo = "4x4 halo 1", first = 0 : i64, last = 2 : i64, offset = #plan.expression<"256">} : !plan.memory
  // CHECK: %v = plan.view %b {offset = #plan.expression<"4*n">, bytes = #plan.expression<"8*n">} : !plan.memory -> !plan.memory
  %v = plan.view %b {offset = #plan.expression<"4*n">, bytes = #plan.expression<"8*n">} : !plan.memory -> !plan.memory
  // CHECK: plan.launch %in, %w, %b {kernel = @scale_1a2b3c4d, args = [#plan.pointer<0, "0">, #plan.pointer<2, "4*n", part = [0, 1]>, #plan.expression<"3*n">, 5.000000e-01 : f32], grid = [#plan.expression<"(3*n + 255) // 256">, #plan.expression<"1">, #plan.expression<"1">]} : !plan.memory, !plan.memory, !plan.memory
  plan.launch %in, %w, %b {kernel = @scale_1a2b3c4d, args = [#plan.pointer<0, "0">, #plan.pointer<2, "4*n", part = [0, 1]>, #plan.expression<"3*n">, 5.0e-01 : f32], grid = [#plan.expression<"(3*n + 255) // 256">, #plan.expression<"1">, #plan.expression<"1">]} : !plan.memory, !plan.memory, !plan.memory
  // CHECK: plan.launch {kernel = @nothing, args = []}
  plan.launch {kernel = @nothing, args = []}
  // CHECK: %y = plan.output %b : !plan.memory -> tensor<?x3xf32, #trt.dims<["n", "3"]>>
  %y = plan.output %b : !plan.memory -> tensor<?x3xf32, #trt.dims<["n", "3"]>>
  func.return %y : tensor<?x3xf32, #trt.dims<["n", "3"]>>
}

// -----

// CHECK-LABEL: func.func @maps
// CHECK: plan.launch %b {kernel = @copy, args = [#plan.tensor_map<0, "0", f16, sizes = ["n", "64"], steps = ["64", "1"], box = [128, 64], swizzle = 128>,
// CHECK-SAME: #plan.tensor_map<0, "16", f16, sizes = ["n", "9", "9", "64"], steps = ["5184", "576", "64", "1"], box = [64, 64], swizzle = 128, lower = [-1, 0], upper = [-1, 1], stride = [2, 1]>,
// CHECK-SAME: #plan.tensor_map<0, "0", f32, sizes = ["n", "64"], steps = ["64", "1"], box = [128, 32], swizzle = 128, tf32 = 1>,
// CHECK-SAME: #plan.tensor_map<0, "0", f32, sizes = ["n", "9", "9", "64"], steps = ["5184", "576", "64", "1"], box = [64, 32], swizzle = 128, tf32 = 1, lower = [-1, 0], upper = [-1, 1], stride = [2, 1]>]
func.func @maps(%b: !plan.memory) {
  plan.launch %b {kernel = @copy, args = [
    #plan.tensor_map<0, "0", f16, sizes = ["n", "64"], steps = ["64", "1"], box = [128, 64], swizzle = 128>,
    #plan.tensor_map<0, "16", f16, sizes = ["n", "9", "9", "64"], steps = ["5184", "576", "64", "1"], box = [64, 64],
      swizzle = 128, lower = [-1, 0], upper = [-1, 1], stride = [2, 1]>,
    #plan.tensor_map<0, "0", f32, sizes = ["n", "64"], steps = ["64", "1"], box = [128, 32], swizzle = 128, tf32 = 1>,
    #plan.tensor_map<0, "0", f32, sizes = ["n", "9", "9", "64"], steps = ["5184", "576", "64", "1"], box = [64, 32],
      swizzle = 128, tf32 = 1, lower = [-1, 0], upper = [-1, 1], stride = [2, 1]>]} : !plan.memory
  func.return
}
