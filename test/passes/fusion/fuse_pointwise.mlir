// RUN: rt-opt %s --split-input-file -p convert-trt-to-fused,fuse-pointwise --print-debuginfo | filecheck %s

// The access of a transposition composes with those of its readers; the layers' names are joined.
// CHECK-LABEL: @chain
// CHECK-NEXT: fused.pointwise %x {access = [#fused.access<["d1", "d0"]>]}
// CHECK-NEXT: ^bb0([[E:%.*]]: f32
// CHECK-NEXT: [[A:%.*]] = math.exp [[E]]
// CHECK-NEXT: [[B:%.*]] = arith.negf [[A]]
// CHECK-NEXT: arith.mulf [[B]], [[B]]
// CHECK: loc(fused["exp", "transpose", "neg", "square"])
func.func @chain(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %a = trt.unary exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("exp")
  %t = trt.shuffle %a {first_transpose = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32> loc("transpose")
  %n = trt.unary neg %t : (tensor<8x4xf32>) -> tensor<8x4xf32> loc("neg")
  %y = trt.elementwise prod %n, %n : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> loc("square")
  func.return %y : tensor<8x4xf32>
}

// -----

// CHECK-LABEL: @slice_and_reverse
// CHECK-NEXT: fused.pointwise %x {access = [#fused.access<["-2*d0 + 7"]>]}
// CHECK-NOT: fused.pointwise
func.func @slice_and_reverse(%x: tensor<8xf32>) -> tensor<4xf32> {
  %s = trt.slice %x {start = #trt.dims<["1"]>, size = #trt.dims<["4"]>, stride = array<i64: 2>} : (tensor<8xf32>) -> tensor<4xf32>
  %y = trt.slice %s {start = #trt.dims<["3"]>, size = #trt.dims<["4"]>, stride = array<i64: -1>} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: @into_reduction
// CHECK-NEXT: fused.reduction add(%x)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: math.absf
// CHECK-NOT: fused.pointwise
func.func @into_reduction(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  %a = trt.unary abs %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = trt.reduce sum %a {axes = array<i64: 0>, keep_dims = false} : (tensor<4x8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}

// -----

// Half precision is rounded once, at the end.
// CHECK-LABEL: @half_precision
// CHECK: arith.extf
// CHECK-NEXT: math.exp
// CHECK-NEXT: arith.negf
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: fused.yield
func.func @half_precision(%x: tensor<4xf16>) -> tensor<4xf16> {
  %a = trt.unary exp %x : (tensor<4xf16>) -> tensor<4xf16>
  %y = trt.unary neg %a : (tensor<4xf16>) -> tensor<4xf16>
  func.return %y : tensor<4xf16>
}

// -----

// The position of a ramp is the position in its reader.
// CHECK-LABEL: @positions
// CHECK: fused.pointwise
// CHECK-NOT: fused.pointwise
func.func @positions() -> tensor<2x3xf32> {
  %start = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %step = trt.constant {value = dense<[10.0, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %r = trt.fill linspace alpha(%start : tensor<f32>) beta(%step : tensor<2xf32>) {output_dims = #trt.dims<["3", "2"]>} : tensor<3x2xf32>
  %t = trt.shuffle %r {first_transpose = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  func.return %t : tensor<2x3xf32>
}

// -----

// What is expensive is not computed again for each reader, nor for each row that repeats it.
// CHECK-LABEL: @expensive
// CHECK-COUNT-3: fused.pointwise
// CHECK-NOT: fused.pointwise
func.func @expensive(%x: tensor<1x8xf32>, %z: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<1x8xf32>) {
  %a = trt.unary exp %x : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %y = trt.elementwise sum %a, %z : (tensor<1x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %n = trt.unary neg %a : (tensor<1x8xf32>) -> tensor<1x8xf32>
  func.return %y, %n : tensor<4x8xf32>, tensor<1x8xf32>
}

// -----

// CHECK-LABEL: @repeated_once
// CHECK-COUNT-2: fused.pointwise
// CHECK-NOT: fused.pointwise
func.func @repeated_once(%x: tensor<1x8xf32>, %z: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = trt.unary exp %x : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %y = trt.elementwise sum %a, %z : (tensor<1x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// -----

// What is cheap is computed in each of its readers.
// CHECK-LABEL: @cheap
// CHECK: fused.pointwise %z, %x
// CHECK: fused.pointwise %x
// CHECK-NOT: fused.pointwise
func.func @cheap(%x: tensor<1x8xf32>, %z: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<1x8xf32>) {
  %a = trt.unary neg %x : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %y = trt.elementwise sum %a, %z : (tensor<1x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %n = trt.unary exp %a : (tensor<1x8xf32>) -> tensor<1x8xf32>
  func.return %y, %n : tensor<4x8xf32>, tensor<1x8xf32>
}

// -----

// A result of the network is computed anyway.
// CHECK-LABEL: @output
// CHECK-COUNT-2: fused.pointwise
func.func @output(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = trt.unary neg %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = trt.unary exp %a : (tensor<8xf32>) -> tensor<8xf32>
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// -----

// Once per row at the end of the reduction is better than once per element in the reader.
// CHECK-LABEL: @end_of_a_reduction
// CHECK: fused.reduction add
// CHECK: fused.pointwise {{.*}} -> tensor<4x1xf32>
// CHECK: fused.pointwise {{.*}} -> tensor<4x8xf32>
func.func @end_of_a_reduction(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = trt.reduce sum %x {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %n = trt.unary neg %r : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %y = trt.elementwise sum %x, %n : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// -----

// The product stores bytes where it ends with the rounding: that is not pulled into its reader.
// CHECK-LABEL: @rounded_sums
// CHECK:         [[SUM:%.*]] = fused.matmul
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      fused.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    [[BYTES:%.*]] = fused.pointwise [[SUM]] {{.*}} -> tensor<8x4xi8>
// CHECK:         fused.pointwise [[BYTES]], %y
func.func @rounded_sums(%x: tensor<8x16xi8>, %w: tensor<16x4xi8>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %sum = fused.matmul %x, %w : (tensor<8x16xi8>, tensor<16x4xi8>) -> tensor<8x4xi32> {
  ^bb0(%acc: i32):
    fused.yield %acc : i32
  }
  %bytes = fused.pointwise %sum {access = [#fused.access<["d0", "d1"]>]} : (tensor<8x4xi32>) -> tensor<8x4xi8> {
  ^bb0(%0: i32):
    %byte = arith.trunci %0 : i32 to i8
    fused.yield %byte : i8
  }
  %z = fused.pointwise %bytes, %y {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0", "d1"]>]} : (tensor<8x4xi8>, tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%0: i8, %1: f32):
    %wide = arith.sitofp %0 : i8 to f32
    %added = arith.addf %wide, %1 : f32
    fused.yield %added : f32
  }
  func.return %z : tensor<8x4xf32>
}

// -----

// What a run may repeat is copied, so that the sum can end the product; a sum of two such operands reads them where they lie.
// CHECK-LABEL: @repeated_by_a_run
// CHECK: [[P:%.*]] = fused.matmul
// CHECK: [[B:%.*]] = fused.pointwise %z {access = [#fused.access<["((min(m, 2)) // 2)*d0", "d1"]>]}
// CHECK: fused.pointwise [[P]], [[B]] {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0", "d1"]>]}
// CHECK: fused.pointwise %x, %z {access = [#fused.access<["d0", "d1"]>, #fused.access<["((min(m, 2)) // 2)*d0", "d1"]>]}
func.func @repeated_by_a_run(%x: tensor<?x4xf32, #trt.dims<["n", "4"]>>, %z: tensor<?x4xf32, #trt.dims<["m", "4"]>>, %w: tensor<4x4xf32>) -> (tensor<?x4xf32, #trt.dims<["n", "4"]>>, tensor<?x4xf32, #trt.dims<["n", "4"]>>) {
  %p = fused.matmul %x, %w {access = []} : (tensor<?x4xf32, #trt.dims<["n", "4"]>>, tensor<4x4xf32>) -> tensor<?x4xf32, #trt.dims<["n", "4"]>> {
  ^bb0(%0: f32):
    fused.yield %0 : f32
  }
  %b = fused.pointwise %z {access = [#fused.access<["((min(m, 2)) // 2)*d0", "d1"]>]} : (tensor<?x4xf32, #trt.dims<["m", "4"]>>) -> tensor<?x4xf32, #trt.dims<["n", "4"]>> {
  ^bb0(%1: f32):
    fused.yield %1 : f32
  }
  %s = fused.pointwise %p, %b {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0", "d1"]>]} : (tensor<?x4xf32, #trt.dims<["n", "4"]>>, tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x4xf32, #trt.dims<["n", "4"]>> {
  ^bb0(%2: f32, %3: f32):
    %4 = arith.addf %2, %3 : f32
    fused.yield %4 : f32
  }
  %c = fused.pointwise %z {access = [#fused.access<["((min(m, 2)) // 2)*d0", "d1"]>]} : (tensor<?x4xf32, #trt.dims<["m", "4"]>>) -> tensor<?x4xf32, #trt.dims<["n", "4"]>> {
  ^bb0(%5: f32):
    fused.yield %5 : f32
  }
  %t = fused.pointwise %x, %c {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0", "d1"]>]} : (tensor<?x4xf32, #trt.dims<["n", "4"]>>, tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x4xf32, #trt.dims<["n", "4"]>> {
  ^bb0(%6: f32, %7: f32):
    %8 = arith.addf %6, %7 : f32
    fused.yield %8 : f32
  }
  func.return %s, %t : tensor<?x4xf32, #trt.dims<["n", "4"]>>, tensor<?x4xf32, #trt.dims<["n", "4"]>>
}

// -----

// What can end a product costs nothing there: the slices of a product with a bias read it, and do not add it each.
// CHECK-LABEL: @slices_of_a_product
// CHECK: fused.matmul
// CHECK: fused.pointwise
// CHECK: arith.addf
// CHECK-COUNT-2: fused.pointwise
// CHECK-NOT: arith.addf
func.func @slices_of_a_product(%x: tensor<5x8xf32>, %w: tensor<8x6xf32>, %b: tensor<1x6xf32>) -> (tensor<5x3xf32>, tensor<5x3xf32>) {
  %p = trt.matrix_multiply %x, %w : (tensor<5x8xf32>, tensor<8x6xf32>) -> tensor<5x6xf32>
  %s = trt.elementwise sum %p, %b : (tensor<5x6xf32>, tensor<1x6xf32>) -> tensor<5x6xf32>
  %q = trt.slice %s {start = #trt.dims<["0", "0"]>, size = #trt.dims<["5", "3"]>, stride = array<i64: 1, 1>} : (tensor<5x6xf32>) -> tensor<5x3xf32>
  %k = trt.slice %s {start = #trt.dims<["0", "3"]>, size = #trt.dims<["5", "3"]>, stride = array<i64: 1, 1>} : (tensor<5x6xf32>) -> tensor<5x3xf32>
  func.return %q, %k : tensor<5x3xf32>, tensor<5x3xf32>
}

// -----

// A conversion to a wider type is computed in each reader: what the product stores stays narrow.
// CHECK-LABEL: @widened_in_readers
// CHECK: [[P:%.*]] = fused.matmul {{.*}} -> tensor<5x6xf16>
// CHECK: fused.reduction add([[P]])
// CHECK: fused.reduction max([[P]])
// CHECK-NOT: fused.pointwise
func.func @widened_in_readers(%x: tensor<5x8xf16>, %w: tensor<8x6xf16>) -> (tensor<5xf32>, tensor<5xf32>) {
  %p = trt.matrix_multiply %x, %w : (tensor<5x8xf16>, tensor<8x6xf16>) -> tensor<5x6xf16>
  %s = trt.identity %p : (tensor<5x6xf16>) -> tensor<5x6xf32>
  %q = trt.reduce sum %s {axes = array<i64: 1>, keep_dims = false} : (tensor<5x6xf32>) -> tensor<5xf32>
  %k = trt.reduce max %s {axes = array<i64: 1>, keep_dims = false} : (tensor<5x6xf32>) -> tensor<5xf32>
  func.return %q, %k : tensor<5xf32>, tensor<5xf32>
}

// -----

// A bias behind a product that a transpose reads: the product ends with it, and the transpose may go elsewhere.
// CHECK-LABEL: @bias_before_a_transpose
// CHECK: [[M:%.*]] = fused.matmul
// CHECK: [[B:%.*]] = fused.pointwise [[M]], %b {{.*}} -> tensor<3x8xf32>
// CHECK: fused.pointwise [[B]] {access = [#fused.access<["d1", "d0"]>]} {{.*}} -> tensor<8x3xf32>
func.func @bias_before_a_transpose(%x: tensor<3x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<8x3xf32> {
  %p = fused.matmul %x, %w : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %a = fused.pointwise %p, %b {access = [#fused.access<["d0", "d1"]>, #fused.access<["d1"]>]} : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32> {
  ^bb0(%e: f32, %f: f32):
    %t = arith.addf %e, %f : f32
    fused.yield %t : f32
  }
  %y = fused.pointwise %a {access = [#fused.access<["d1", "d0"]>]} : (tensor<3x8xf32>) -> tensor<8x3xf32> {
  ^bb0(%g: f32):
    fused.yield %g : f32
  }
  func.return %y : tensor<8x3xf32>
}
