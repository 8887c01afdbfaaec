// RUN: rt-opt %s --split-input-file -p convert-trt-to-fused,fuse-pointwise,fuse-convolution-activation,fuse-convolution-elementwise,fuse-attention,eliminate-dead-layers,verify-dominance --print-debuginfo | filecheck %s

// The scale and the mask become the score; nothing is rounded between the products.
// CHECK-LABEL: @masked
// CHECK-NEXT: [[Y:%.*]] = fused.attention %q, %k, %v, %m {{.*}}access = [#fused.access<["d0", "d1", "d2", "d4"]>, #fused.access<["d0", "d1", "d3", "d4"]>, #fused.access<["d0", "d1", "d3", "d5"]>, #fused.access<["d0", "0", "0", "d3"]>], reduced = #trt.dims<["7", "16"]>
// CHECK-NEXT: ^bb0([[S:%[0-9]+]]: f32 {{.*}}, [[M:%[0-9]+]]: f16 {{.*}}):
// CHECK: [[C:%.*]] = arith.constant 2.500000e-01 : f32
// CHECK: arith.mulf [[S]], [[C]]
// CHECK: [[SUM:%.*]] = arith.addf
// CHECK-NEXT: fused.yield [[SUM]] : f32
// CHECK-NEXT: loc(fused["scores", "scale", "mask", "softmax", "mix"])
// CHECK-NEXT: func.return [[Y]]
func.func @masked(%q: tensor<2x4x5x16xf16>, %k: tensor<2x4x7x16xf16>, %v: tensor<2x4x7x8xf16>, %m: tensor<2x1x1x7xf16>) -> tensor<2x4x5x8xf16> {
  %c = trt.constant {value = dense<4.0> : tensor<1x1x1x1xf16>} : tensor<1x1x1x1xf16>
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x16xf16>, tensor<2x4x7x16xf16>) -> tensor<2x4x5x7xf16> loc("scores")
  %d = trt.elementwise div %s, %c : (tensor<2x4x5x7xf16>, tensor<1x1x1x1xf16>) -> tensor<2x4x5x7xf16> loc("scale")
  %a = trt.elementwise sum %d, %m : (tensor<2x4x5x7xf16>, tensor<2x1x1x7xf16>) -> tensor<2x4x5x7xf16> loc("mask")
  %p = trt.softmax %a {axis = 3 : i64} : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf16> loc("softmax")
  %y = trt.matrix_multiply %p, %v : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> loc("mix")
  func.return %y : tensor<2x4x5x8xf16>
}

// -----

// CHECK-LABEL: @plain
// CHECK-NEXT: fused.attention %q, %k, %v
// CHECK-NEXT: ^bb0([[S:%[0-9]+]]: f32 {{.*}}):
// CHECK-NEXT: fused.yield [[S]] : f32
func.func @plain(%q: tensor<2x4x5x16xf16>, %k: tensor<2x4x7x16xf16>, %v: tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> {
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x16xf16>, tensor<2x4x7x16xf16>) -> tensor<2x4x5x7xf16> loc("scores")
  %p = trt.softmax %s {axis = 3 : i64} : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf16> loc("softmax")
  %y = trt.matrix_multiply %p, %v : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> loc("mix")
  func.return %y : tensor<2x4x5x8xf16>
}

// -----

// Operands are read as the flags say.
// CHECK-LABEL: @transposed_operands
// CHECK-NEXT: fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d4", "d2"]>, #fused.access<["d0", "d1", "d4", "d3"]>, #fused.access<["d0", "d1", "d5", "d3"]>], reduced = #trt.dims<["7", "16"]>
func.func @transposed_operands(%q: tensor<2x4x16x5xf16>, %k: tensor<2x4x16x7xf16>, %v: tensor<2x4x8x7xf16>) -> tensor<2x4x5x8xf16> {
  %s = trt.matrix_multiply %q, %k {lhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x16x5xf16>, tensor<2x4x16x7xf16>) -> tensor<2x4x5x7xf16>
  %p = trt.softmax %s {axis = 3 : i64} : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf16> loc("softmax")
  %y = trt.matrix_multiply %p, %v {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x7xf16>, tensor<2x4x8x7xf16>) -> tensor<2x4x5x8xf16>
  func.return %y : tensor<2x4x5x8xf16>
}

// -----

// One head of keys and values for all heads of queries.
// CHECK-LABEL: @shared_keys
// CHECK-NEXT: fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d2", "d4"]>, #fused.access<["d0", "0", "d3", "d4"]>, #fused.access<["d0", "0", "d3", "d5"]>]
func.func @shared_keys(%q: tensor<2x4x5x16xf16>, %k: tensor<2x1x7x16xf16>, %v: tensor<2x1x7x8xf16>) -> tensor<2x4x5x8xf16> {
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x16xf16>, tensor<2x1x7x16xf16>) -> tensor<2x4x5x7xf16> loc("scores")
  %p = trt.softmax %s {axis = 3 : i64} : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf16> loc("softmax")
  %y = trt.matrix_multiply %p, %v : (tensor<2x4x5x7xf16>, tensor<2x1x7x8xf16>) -> tensor<2x4x5x8xf16> loc("mix")
  func.return %y : tensor<2x4x5x8xf16>
}

// -----

// Zeros in place of not-a-number, for rows of which everything is masked.
// CHECK-LABEL: @guarded
// CHECK-NEXT: fused.attention {{.*}}zero_masked = true
// CHECK-NOT: fused.pointwise
func.func @guarded(%q: tensor<2x4x5x16xf16>, %k: tensor<2x4x7x16xf16>, %v: tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> {
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x16xf16>, tensor<2x4x7x16xf16>) -> tensor<2x4x5x7xf16> loc("scores")
  %p = trt.softmax %s {axis = 3 : i64} : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf16> loc("softmax")
  %z = trt.constant {value = dense<0.0> : tensor<1x1x1x1xf16>} : tensor<1x1x1x1xf16>
  %n = trt.unary isnan %p : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xi1>
  %g = trt.select %n, %z, %p : (tensor<2x4x5x7xi1>, tensor<1x1x1x1xf16>, tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf16>
  %y = trt.matrix_multiply %g, %v : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> loc("mix")
  func.return %y : tensor<2x4x5x8xf16>
}

// -----

// Softmax in single precision between products in half precision.
// CHECK-LABEL: @converted
// CHECK-NEXT: fused.attention %q, %k, %v
// CHECK-NOT: fused.softmax
func.func @converted(%q: tensor<2x4x5x16xf16>, %k: tensor<2x4x7x16xf16>, %v: tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> {
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x16xf16>, tensor<2x4x7x16xf16>) -> tensor<2x4x5x7xf16> loc("scores")
  %w = trt.identity %s : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf32>
  %x = trt.softmax %w {axis = 3 : i64} : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %p = trt.identity %x : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf16>
  %y = trt.matrix_multiply %p, %v : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> loc("mix")
  func.return %y : tensor<2x4x5x8xf16>
}

// -----

// The network returns the weights too.
// CHECK-LABEL: @scores_are_read
// CHECK-NOT: fused.attention
// CHECK: fused.softmax
// CHECK-NOT: fused.attention
// CHECK: func.return
func.func @scores_are_read(%q: tensor<2x4x5x16xf16>, %k: tensor<2x4x7x16xf16>, %v: tensor<2x4x7x8xf16>) -> (tensor<2x4x5x8xf16>, tensor<2x4x5x7xf16>) {
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x16xf16>, tensor<2x4x7x16xf16>) -> tensor<2x4x5x7xf16> loc("scores")
  %p = trt.softmax %s {axis = 3 : i64} : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf16> loc("softmax")
  %y = trt.matrix_multiply %p, %v : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> loc("mix")
  func.return %y, %p : tensor<2x4x5x8xf16>, tensor<2x4x5x7xf16>
}

// -----

// Softmax over the queries.
// CHECK-LABEL: @other_axis
// CHECK-NOT: fused.attention
// CHECK: fused.softmax
// CHECK-NOT: fused.attention
// CHECK: func.return
func.func @other_axis(%q: tensor<2x4x5x16xf16>, %k: tensor<2x4x7x16xf16>, %v: tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> {
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x16xf16>, tensor<2x4x7x16xf16>) -> tensor<2x4x5x7xf16> loc("scores")
  %p = trt.softmax %s {axis = 2 : i64} : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf16> loc("softmax")
  %y = trt.matrix_multiply %p, %v : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> loc("mix")
  func.return %y : tensor<2x4x5x8xf16>
}

// -----

// A logarithm of the weights.
// CHECK-LABEL: @logarithm
// CHECK-NOT: fused.attention
// CHECK: fused.softmax
// CHECK-NOT: fused.attention
// CHECK: func.return
func.func @logarithm(%q: tensor<2x4x5x16xf16>, %k: tensor<2x4x7x16xf16>, %v: tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> {
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x16xf16>, tensor<2x4x7x16xf16>) -> tensor<2x4x5x7xf16> loc("scores")
  %p = trt.softmax %s {axis = 3 : i64, log = true} : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf16> loc("softmax")
  %y = trt.matrix_multiply %p, %v : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> loc("mix")
  func.return %y : tensor<2x4x5x8xf16>
}

// -----

// Something is done to the weights.
// CHECK-LABEL: @weights_are_scaled
// CHECK-NOT: fused.attention
// CHECK: fused.softmax
// CHECK-NOT: fused.attention
// CHECK: func.return
func.func @weights_are_scaled(%q: tensor<2x4x5x16xf16>, %k: tensor<2x4x7x16xf16>, %v: tensor<2x4x7x8xf16>, %m: tensor<1x1x1x7xf16>) -> tensor<2x4x5x8xf16> {
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x16xf16>, tensor<2x4x7x16xf16>) -> tensor<2x4x5x7xf16> loc("scores")
  %p = trt.softmax %s {axis = 3 : i64} : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf16> loc("softmax")
  %w = trt.elementwise prod %p, %m : (tensor<2x4x5x7xf16>, tensor<1x1x1x7xf16>) -> tensor<2x4x5x7xf16>
  %y = trt.matrix_multiply %w, %v : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> loc("mix")
  func.return %y : tensor<2x4x5x8xf16>
}

// -----

// There is no kernel that keeps float32 scores out of memory.
// CHECK-LABEL: @single_precision
// CHECK-NOT: fused.attention
// CHECK: fused.softmax
// CHECK-NOT: fused.attention
// CHECK: func.return
func.func @single_precision(%q: tensor<2x4x5x16xf32>, %k: tensor<2x4x7x16xf32>, %v: tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> {
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x16xf32>, tensor<2x4x7x16xf32>) -> tensor<2x4x5x7xf32> loc("scores")
  %p = trt.softmax %s {axis = 3 : i64} : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32> loc("softmax")
  %y = trt.matrix_multiply %p, %v : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32> loc("mix")
  func.return %y : tensor<2x4x5x8xf32>
}

// -----

// Nor one for heads as wide as these.
// CHECK-LABEL: @very_wide
// CHECK-NOT: fused.attention
// CHECK: fused.softmax
// CHECK-NOT: fused.attention
// CHECK: func.return
func.func @very_wide(%q: tensor<2x4x5x200xf16>, %k: tensor<2x4x7x200xf16>, %v: tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> {
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x200xf16>, tensor<2x4x7x200xf16>) -> tensor<2x4x5x7xf16> loc("scores")
  %p = trt.softmax %s {axis = 3 : i64} : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf16> loc("softmax")
  %y = trt.matrix_multiply %p, %v : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> loc("mix")
  func.return %y : tensor<2x4x5x8xf16>
}

// -----

// What the second product ends with, such as a quantisation, stays behind it.
// CHECK-LABEL: @quantised
// CHECK-NEXT: [[Y:%.*]] = fused.attention %q, %k, %v
// CHECK-SAME: -> tensor<2x4x5x8xf16>
// CHECK: fused.pointwise [[Y]] {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<2x4x5x8xf16>) -> tensor<2x4x5x8xi8>
func.func @quantised(%q: tensor<2x4x5x16xf16>, %k: tensor<2x4x7x16xf16>, %v: tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xi8> {
  %c = trt.constant {value = dense<0.125> : tensor<f32>} : tensor<f32>
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x5x16xf16>, tensor<2x4x7x16xf16>) -> tensor<2x4x5x7xf16> loc("scores")
  %p = trt.softmax %s {axis = 3 : i64} : (tensor<2x4x5x7xf16>) -> tensor<2x4x5x7xf16> loc("softmax")
  %y = trt.matrix_multiply %p, %v : (tensor<2x4x5x7xf16>, tensor<2x4x7x8xf16>) -> tensor<2x4x5x8xf16> loc("mix")
  %z = trt.quantize %y, %c : (tensor<2x4x5x8xf16>, tensor<f32>) -> tensor<2x4x5x8xi8> loc("quantize")
  func.return %z : tensor<2x4x5x8xi8>
}
