// RUN: rt-opt %s --split-input-file -p convert-trt-to-fused,sink-views | filecheck %s

// A bias per channel and an activation pass a view that drops an axis of length 1.
// CHECK-LABEL: @squeezed
// CHECK: [[C:%.*]] = fused.convolution
// CHECK: [[A:%.*]] = fused.pointwise [[C]], {{%.*}} {access = [#fused.access<["d0", "d1", "d2", "d3"]>, #fused.access<["0", "d1", "0"]>]} {{.*}} -> tensor<2x4x1x8xf32>
// CHECK: [[B:%.*]] = fused.pointwise [[A]] {{.*}} -> tensor<2x4x1x8xf32>
// CHECK: [[Y:%.*]] = fused.view [[B]]
// CHECK-NEXT: func.return [[Y]]
func.func @squeezed(%x: tensor<2x3x1x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<2x4x8xf32> {
  %bias = trt.constant {value = dense<[[[1.0], [2.0], [3.0], [4.0]]]> : tensor<1x4x1xf32>} : tensor<1x4x1xf32>
  %c = trt.convolution %x, %w : (tensor<2x3x1x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x1x8xf32>
  %v = trt.shuffle %c {reshape_dims = #trt.dims<["2", "4", "8"]>} : (tensor<2x4x1x8xf32>) -> tensor<2x4x8xf32>
  %a = trt.elementwise sum %v, %bias : (tensor<2x4x8xf32>, tensor<1x4x1xf32>) -> tensor<2x4x8xf32>
  %y = trt.activation relu %a : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  func.return %y : tensor<2x4x8xf32>
}

// -----

// Any view lets functions of one operand pass.
// CHECK-LABEL: @flattened
// CHECK: fused.pointwise {{%.*}} : (tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK: fused.view
func.func @flattened(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<8xf32> {
  %c = trt.matrix_multiply %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %v = trt.shuffle %c {reshape_dims = #trt.dims<["8"]>} : (tensor<2x4xf32>) -> tensor<8xf32>
  %y = trt.activation relu %v : (tensor<8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}

// -----

// A vector cannot be read in the shape of a matrix; a view of an input has no producer to join; a view with another
// reader stays.
// CHECK-LABEL: @left_alone
// CHECK: fused.view
// CHECK: fused.pointwise {{.*}} -> tensor<8xf32>
// CHECK: fused.view
// CHECK: fused.pointwise {{.*}} -> tensor<8xf32>
// CHECK: fused.view
// CHECK: fused.pointwise {{.*}} -> tensor<8xf32>
func.func @left_alone(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %z: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %c = trt.matrix_multiply %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %v = trt.shuffle %c {reshape_dims = #trt.dims<["8"]>} : (tensor<2x4xf32>) -> tensor<8xf32>
  %a = trt.elementwise sum %v, %z : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %u = trt.shuffle %x {reshape_dims = #trt.dims<["8"]>} : (tensor<2x4xf32>) -> tensor<8xf32>
  %b = trt.activation relu %u : (tensor<8xf32>) -> tensor<8xf32>
  %d = trt.matrix_multiply %c, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %t = trt.shuffle %d {reshape_dims = #trt.dims<["8"]>} : (tensor<2x4xf32>) -> tensor<8xf32>
  %e = trt.activation relu %t : (tensor<8xf32>) -> tensor<8xf32>
  func.return %a, %b, %t, %e : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// What a normalisation reads of a convolution stays narrow: its sums convert what they read.
// CHECK-LABEL: @conversion
func.func @conversion(%x: tensor<1x4x4x4xf16>, %w: tensor<8x4x1x1xf16>) -> (tensor<1x2x1xf32>, tensor<1x2x64xf32>) {
  // CHECK: [[C:%.*]] = fused.convolution {{.*}} -> tensor<1x8x4x4xf16>
  // CHECK: [[V:%.*]] = fused.view [[C]] : (tensor<1x8x4x4xf16>) -> tensor<1x2x64xf16>
  // CHECK: fused.pointwise [[V]] {{.*}} : (tensor<1x2x64xf16>) -> tensor<1x2x64xf32>
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x4x4x4xf16>, tensor<8x4x1x1xf16>) -> tensor<1x8x4x4xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %p = fused.pointwise %c {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<1x8x4x4xf16>) -> tensor<1x8x4x4xf32> {
  ^bb0(%a: f16):
    %b = arith.extf %a : f16 to f32
    fused.yield %b : f32
  }
  %v = fused.view %p : (tensor<1x8x4x4xf32>) -> tensor<1x2x64xf32>
  %s = fused.reduction add(%v) {access = [#fused.access<["d0", "d1", "d3"]>], reduced = #trt.dims<["64"]>} : (tensor<1x2x64xf32>) -> tensor<1x2x1xf32> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  } {
  ^bb0(%a: f32):
    fused.yield %a : f32
  }
  %y = fused.pointwise %v, %s {access = [#fused.access<["d0", "d1", "d2"]>, #fused.access<["d0", "d1", "0"]>]} : (tensor<1x2x64xf32>, tensor<1x2x1xf32>) -> tensor<1x2x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    fused.yield %d : f32
  }
  func.return %s, %y : tensor<1x2x1xf32>, tensor<1x2x64xf32>
}

// -----

// Axes that a view joins count apart behind it, where a pointwise op computes what it shows.
// CHECK-LABEL: @joined_axes
// CHECK: [[P:%.*]] = fused.pointwise {{%.*}}, %c {access = [#fused.access<["d0", "d1", "d2"]>, #fused.access<["0", "4*d1 + d2"]>]} {{.*}} -> tensor<3x2x4xf32>
// CHECK: fused.view [[P]] : (tensor<3x2x4xf32>) -> tensor<3x8xf32>
func.func @joined_axes(%x: tensor<3x2x4xf32>, %c: tensor<1x8xf32>) -> tensor<3x8xf32> {
  %e = fused.pointwise %x {access = [#fused.access<["d0", "d1", "d2"]>]} : (tensor<3x2x4xf32>) -> tensor<3x2x4xf32> {
  ^bb0(%a: f32):
    %b = math.exp %a : f32
    fused.yield %b : f32
  }
  %v = fused.view %e : (tensor<3x2x4xf32>) -> tensor<3x8xf32>
  %y = fused.pointwise %v, %c {access = [#fused.access<["d0", "d1"]>, #fused.access<["0", "d1"]>]} : (tensor<3x8xf32>, tensor<1x8xf32>) -> tensor<3x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %d = arith.mulf %a, %b : f32
    fused.yield %d : f32
  }
  func.return %y : tensor<3x8xf32>
}

// -----

// A slice computes what a view shows of it, so that its two readers find it.
// CHECK-LABEL: @slice
// CHECK: fused.pointwise %x {access = [#fused.access<["1", "d0", "d1"]>]} : (tensor<2x3x4xf32>) -> tensor<3x4xf32>
// CHECK-NOT: fused.view
func.func @slice(%x: tensor<2x3x4xf32>) -> tensor<3x4xf32> {
  %s = fused.pointwise %x {access = [#fused.access<["1", "d1", "d2"]>]} : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  }
  %v = fused.view %s : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
  func.return %v : tensor<3x4xf32>
}

// -----

// Several pointwise readers of a view are all computed in front of it (GELU by tanh reads its input three times).
// CHECK-LABEL: @two_readers
// CHECK: [[M:%.*]] = fused.matmul {{.*}} -> tensor<6x8xf32>
// CHECK: [[A:%.*]] = fused.pointwise [[M]] {{.*}} -> tensor<6x8xf32>
// CHECK: [[B:%.*]] = fused.pointwise {{.*}} -> tensor<6x8xf32>
// CHECK: fused.view [[B]] : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
func.func @two_readers(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>) -> tensor<2x3x8xf32> {
  %p = fused.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %v = fused.view %p : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %e = fused.pointwise %v {access = [#fused.access<["d0", "d1", "d2"]>]} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  ^bb0(%a: f32):
    %b = math.exp %a : f32
    fused.yield %b : f32
  }
  %y = fused.pointwise %v, %e {access = [#fused.access<["d0", "d1", "d2"]>, #fused.access<["d0", "d1", "d2"]>]} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %d = arith.mulf %a, %b : f32
    fused.yield %d : f32
  }
  func.return %y : tensor<2x3x8xf32>
}

// -----

// A bias in float32 behind a reshape joins a product of halves: the conversions around it move with it.
// CHECK-LABEL: @narrow_again
func.func @narrow_again(%x: tensor<4x8xf16>, %w: tensor<8x16xf16>, %b: tensor<1x16x1x1xf32>) -> tensor<4x16x1x1xf16> {
  // CHECK: [[C:%.*]] = fused.matmul {{.*}} -> tensor<4x16xf16>
  // CHECK: [[W:%.*]] = fused.pointwise [[C]] {{.*}} -> tensor<4x16xf32>
  // CHECK: [[S:%.*]] = fused.pointwise [[W]], %b {{.*}} -> tensor<4x16xf32>
  // CHECK: [[N:%.*]] = fused.pointwise [[S]] {{.*}} -> tensor<4x16xf16>
  // CHECK: fused.view [[N]]
  %c = fused.matmul %x, %w : (tensor<4x8xf16>, tensor<8x16xf16>) -> tensor<4x16xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %v = fused.view %c : (tensor<4x16xf16>) -> tensor<4x16x1x1xf16>
  %p = fused.pointwise %v {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<4x16x1x1xf16>) -> tensor<4x16x1x1xf32> {
  ^bb0(%a: f16):
    %e = arith.extf %a : f16 to f32
    fused.yield %e : f32
  }
  %s = fused.pointwise %p, %b {access = [#fused.access<["d0", "d1", "d2", "d3"]>, #fused.access<["0", "d1", "d2", "d3"]>]} : (tensor<4x16x1x1xf32>, tensor<1x16x1x1xf32>) -> tensor<4x16x1x1xf32> {
  ^bb0(%a: f32, %e: f32):
    %d = arith.addf %a, %e : f32
    fused.yield %d : f32
  }
  %y = fused.pointwise %s {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<4x16x1x1xf32>) -> tensor<4x16x1x1xf16> {
  ^bb0(%a: f32):
    %e = arith.truncf %a : f32 to f16
    fused.yield %e : f16
  }
  func.return %y : tensor<4x16x1x1xf16>
}

// -----

// Where another operand keeps the chain behind the view, its conversion stays there as well.
// CHECK-LABEL: @narrow_again_with_another
// CHECK: [[C:%.*]] = fused.matmul {{.*}} -> tensor<4x16xf16>
// CHECK: [[V:%.*]] = fused.view [[C]] : (tensor<4x16xf16>) -> tensor<4x2x8xf16>
// CHECK: fused.pointwise [[V]] {{.*}} : (tensor<4x2x8xf16>) -> tensor<4x2x8xf32>
func.func @narrow_again_with_another(%x: tensor<4x8xf16>, %w: tensor<8x16xf16>, %b: tensor<4x2x8xf32>) -> tensor<4x2x8xf16> {
  %c = fused.matmul %x, %w : (tensor<4x8xf16>, tensor<8x16xf16>) -> tensor<4x16xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %v = fused.view %c : (tensor<4x16xf16>) -> tensor<4x2x8xf16>
  %p = fused.pointwise %v {access = [#fused.access<["d0", "d1", "d2"]>]} : (tensor<4x2x8xf16>) -> tensor<4x2x8xf32> {
  ^bb0(%a: f16):
    %e = arith.extf %a : f16 to f32
    fused.yield %e : f32
  }
  %s = fused.pointwise %p, %b {access = [#fused.access<["d0", "d1", "d2"]>, #fused.access<["d0", "d1", "d2"]>]} : (tensor<4x2x8xf32>, tensor<4x2x8xf32>) -> tensor<4x2x8xf32> {
  ^bb0(%a: f32, %e: f32):
    %d = arith.addf %a, %e : f32
    fused.yield %d : f32
  }
  %y = fused.pointwise %s {access = [#fused.access<["d0", "d1", "d2"]>]} : (tensor<4x2x8xf32>) -> tensor<4x2x8xf16> {
  ^bb0(%a: f32):
    %e = arith.truncf %a : f32 to f16
    fused.yield %e : f16
  }
  func.return %y : tensor<4x2x8xf16>
}

// -----

// Heads of queries: a slice of a product, a view that splits its columns, and a transpose, which reads all of that at once.
// CHECK-LABEL: @heads
// CHECK: [[Y:%.*]] = fused.pointwise %x {access = [#fused.access<["d0", "d2", "1", "4*d1 + d3"]>]} : (tensor<2x5x3x12xf32>) -> tensor<2x3x5x4xf32>
// CHECK-NOT: fused.view
// CHECK: func.return [[Y]]
func.func @heads(%x: tensor<2x5x3x12xf32>) -> tensor<2x3x5x4xf32> {
  %s = fused.pointwise %x {access = [#fused.access<["d0", "d1", "1", "d2"]>]} : (tensor<2x5x3x12xf32>) -> tensor<2x5x12xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %v = fused.view %s : (tensor<2x5x12xf32>) -> tensor<2x5x3x4xf32>
  %y = fused.pointwise %v {access = [#fused.access<["d0", "d2", "d1", "d3"]>]} : (tensor<2x5x3x4xf32>) -> tensor<2x3x5x4xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  func.return %y : tensor<2x3x5x4xf32>
}

// -----

// A view that joins axes which the transpose reads apart stays.
// CHECK-LABEL: @joined
// CHECK: fused.view
func.func @joined(%x: tensor<5x2x3x4xf32>) -> tensor<12x10xf32> {
  %s = fused.pointwise %x {access = [#fused.access<["d1", "d0", "d2", "d3"]>]} : (tensor<5x2x3x4xf32>) -> tensor<2x5x3x4xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %v = fused.view %s : (tensor<2x5x3x4xf32>) -> tensor<10x12xf32>
  %y = fused.pointwise %v {access = [#fused.access<["d1", "d0"]>]} : (tensor<10x12xf32>) -> tensor<12x10xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  func.return %y : tensor<12x10xf32>
}

// -----

// A bias of both axes of the keys is added to scores as their product has them, so that attention reads it.
// CHECK-LABEL: @bias_of_scores
// CHECK: fused.pointwise %h, %w
// CHECK: fused.view
// CHECK: fused.pointwise %{{.*}}, %{{.*}} : (tensor<2x12x12xf32>, tensor<2x12x12xf32>) -> tensor<2x12x12xf32>
// CHECK: fused.softmax
func.func @bias_of_scores(%q: tensor<2x12x8xf32>, %k: tensor<2x8x12xf32>, %h: tensor<2x12x3x1xf32>, %w: tensor<2x12x1x4xf32>) -> tensor<2x12x12xf32> {
  %s = trt.matrix_multiply %q, %k : (tensor<2x12x8xf32>, tensor<2x8x12xf32>) -> tensor<2x12x12xf32>
  %b = trt.elementwise sum %h, %w : (tensor<2x12x3x1xf32>, tensor<2x12x1x4xf32>) -> tensor<2x12x3x4xf32>
  %v = trt.shuffle %b {reshape_dims = #trt.dims<["2", "12", "12"]>} : (tensor<2x12x3x4xf32>) -> tensor<2x12x12xf32>
  %t = trt.elementwise sum %s, %v : (tensor<2x12x12xf32>, tensor<2x12x12xf32>) -> tensor<2x12x12xf32>
  %y = trt.softmax %t {axis = 2 : i64} : (tensor<2x12x12xf32>) -> tensor<2x12x12xf32>
  func.return %y : tensor<2x12x12xf32>
}

// -----

// What is added to a product is a view of moved windows: it is an operand of the product's epilogue, as rows lie there.
// CHECK-LABEL: @windows_beside_a_product
// CHECK: [[V:%.*]] = fused.view {{.*}} -> tensor<4x6x8xf32>
// CHECK: [[M:%.*]] = fused.matmul {{.*}} -> tensor<4x6x8xf32>
// CHECK: fused.pointwise [[M]], [[V]] {{.*}} -> tensor<4x6x8xf32>
func.func @windows_beside_a_product(%x: tensor<2x2x2x3x8xf32>, %r: tensor<4x6x16xf32>, %w: tensor<1x16x8xf32>) -> tensor<4x6x8xf32> {
  %t = fused.pointwise %x {access = [#fused.access<["d0", "d2", "d1", "d3", "d4"]>]} : (tensor<2x2x2x3x8xf32>) -> tensor<2x2x2x3x8xf32> {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    fused.yield %n : f32
  }
  %v = fused.view %t : (tensor<2x2x2x3x8xf32>) -> tensor<4x6x8xf32>
  %p = trt.matrix_multiply %r, %w : (tensor<4x6x16xf32>, tensor<1x16x8xf32>) -> tensor<4x6x8xf32>
  %y = trt.elementwise sum %p, %v : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  func.return %y : tensor<4x6x8xf32>
}

// -----

// Biases of height and width, which an exporter adds to scores in five dimensions, are one tensor that is added to what
// the product has: its epilogue takes it.
// CHECK-LABEL: @biased_scores
// CHECK: [[S:%.*]] = fused.matmul
// CHECK: [[B:%.*]] = fused.pointwise %w, %h {access = [#fused.access<["d0", "d1", "d2", "0", "d4"]>, #fused.access<["d0", "d1", "d2", "d3", "0"]>]} {{.*}} -> tensor<2x2x3x2x3xf32>
// CHECK: [[V:%.*]] = fused.view [[B]] : (tensor<2x2x3x2x3xf32>) -> tensor<2x6x6xf32>
// CHECK: [[T:%.*]] = fused.pointwise [[V]], [[S]] {{.*}} -> tensor<2x6x6xf32>
// CHECK: fused.softmax [[T]]
func.func @biased_scores(%q: tensor<2x6x4xf32>, %k: tensor<2x6x4xf32>, %h: tensor<2x2x3x2x1xf32>, %w: tensor<2x2x3x1x3xf32>) -> tensor<2x6x6xf32> {
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x6x6xf32>
  %v = trt.shuffle %s {reshape_dims = #trt.dims<["2", "2", "3", "2", "3"]>} : (tensor<2x6x6xf32>) -> tensor<2x2x3x2x3xf32>
  %a = trt.elementwise sum %v, %h : (tensor<2x2x3x2x3xf32>, tensor<2x2x3x2x1xf32>) -> tensor<2x2x3x2x3xf32>
  %b = trt.elementwise sum %w, %a : (tensor<2x2x3x1x3xf32>, tensor<2x2x3x2x3xf32>) -> tensor<2x2x3x2x3xf32>
  %u = trt.shuffle %b {reshape_dims = #trt.dims<["2", "6", "6"]>} : (tensor<2x2x3x2x3xf32>) -> tensor<2x6x6xf32>
  %y = trt.softmax %u {axis = 2 : i64} : (tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  func.return %y : tensor<2x6x6xf32>
}

// -----

// A product of scores and a gate is no sum, and what no softmax reads are no scores.
// CHECK-LABEL: @other_scores
// CHECK-COUNT-2: -> tensor<2x2x3x2x3xf32>
func.func @other_scores(%q: tensor<2x6x4xf32>, %k: tensor<2x6x4xf32>, %h: tensor<2x2x3x2x1xf32>) -> (tensor<2x6x6xf32>, tensor<2x6x6xf32>) {
  %s = trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x6x6xf32>
  %v = trt.shuffle %s {reshape_dims = #trt.dims<["2", "2", "3", "2", "3"]>} : (tensor<2x6x6xf32>) -> tensor<2x2x3x2x3xf32>
  %a = trt.elementwise prod %v, %h : (tensor<2x2x3x2x3xf32>, tensor<2x2x3x2x1xf32>) -> tensor<2x2x3x2x3xf32>
  %u = trt.shuffle %a {reshape_dims = #trt.dims<["2", "6", "6"]>} : (tensor<2x2x3x2x3xf32>) -> tensor<2x6x6xf32>
  %y = trt.softmax %u {axis = 2 : i64} : (tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %r = trt.matrix_multiply %k, %q {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x6x6xf32>
  %w = trt.shuffle %r {reshape_dims = #trt.dims<["2", "2", "3", "2", "3"]>} : (tensor<2x6x6xf32>) -> tensor<2x2x3x2x3xf32>
  %b = trt.elementwise sum %w, %h : (tensor<2x2x3x2x3xf32>, tensor<2x2x3x2x1xf32>) -> tensor<2x2x3x2x3xf32>
  %z = trt.shuffle %b {reshape_dims = #trt.dims<["2", "6", "6"]>} : (tensor<2x2x3x2x3xf32>) -> tensor<2x6x6xf32>
  func.return %y, %z : tensor<2x6x6xf32>, tensor<2x6x6xf32>
}

// -----

// What is added behind the view of a product is an operand of its epilogue, viewed as the product has its rows.
// CHECK-LABEL: @residual_behind_a_view
// CHECK: [[M:%.*]] = fused.matmul {{.*}} -> tensor<6x8xf32>
// CHECK: [[V:%.*]] = fused.view %r : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
// CHECK: [[A:%.*]] = fused.pointwise [[M]], [[V]] {{.*}} -> tensor<6x8xf32>
// CHECK: fused.view [[A]] : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
func.func @residual_behind_a_view(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %r: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %p = trt.matrix_multiply %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %v = trt.shuffle %p {reshape_dims = #trt.dims<["2", "3", "8"]>} : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %y = trt.elementwise sum %v, %r : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  func.return %y : tensor<2x3x8xf32>
}
