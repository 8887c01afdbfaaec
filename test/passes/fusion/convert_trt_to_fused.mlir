// RUN: rt-opt %s --split-input-file -p convert-trt-to-fused --print-debuginfo | filecheck %s

// CHECK-LABEL: @pointwise
// CHECK-NEXT: [[Y:%.*]] = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<2x3xf32>) -> tensor<2x3xf32> {
// CHECK-NEXT: ^bb0([[E:%.*]]: f32
// CHECK-NEXT: [[ZERO:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: [[M:%.*]] = arith.maximumf [[E]], [[ZERO]] : f32
// CHECK-NEXT: fused.yield [[M]] : f32
// CHECK-NEXT: } loc("relu1")
// CHECK-NEXT: func.return [[Y]]
func.func @pointwise(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = trt.activation relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("relu1")
  func.return %y : tensor<2x3xf32>
}

// -----

// Repeated operands are read at 0; numbers go into the body; half precision computes in float32.
// CHECK-LABEL: @broadcast
// CHECK: fused.pointwise %x, %row {access = [#fused.access<["d0", "d1"]>, #fused.access<["0", "d1"]>]}
// CHECK: arith.extf
// CHECK: arith.extf
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.truncf
// CHECK: arith.constant 2.000000e+00 : f32
// CHECK: arith.mulf
func.func @broadcast(%x: tensor<?x3xf16, #trt.dims<["n", "3"]>>, %row: tensor<1x3xf16>) -> tensor<?x3xf16, #trt.dims<["n", "3"]>> {
  %two = trt.constant {value = dense<2.0> : tensor<1x1xf16>} : tensor<1x1xf16>
  %a = trt.elementwise sum %x, %row : (tensor<?x3xf16, #trt.dims<["n", "3"]>>, tensor<1x3xf16>) -> tensor<?x3xf16, #trt.dims<["n", "3"]>>
  %y = trt.elementwise prod %a, %two : (tensor<?x3xf16, #trt.dims<["n", "3"]>>, tensor<1x1xf16>) -> tensor<?x3xf16, #trt.dims<["n", "3"]>>
  func.return %y : tensor<?x3xf16, #trt.dims<["n", "3"]>>
}

// -----

// Unsigned integers are reinterpreted, so that arith sees signless ones, and divide without a trap.
// CHECK-LABEL: @unsigned
// CHECK: arith.bitcast {{.*}} : ui8 to i8
// CHECK: arith.select
// CHECK: arith.divui
// CHECK: arith.bitcast {{.*}} : i8 to ui8
func.func @unsigned(%x: tensor<4xui8>, %y: tensor<4xui8>) -> tensor<4xui8> {
  %z = trt.elementwise div %x, %y : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  func.return %z : tensor<4xui8>
}

// -----

// CHECK-LABEL: @convolution
// CHECK: fused.convolution %x, %w, %b {stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 1, 1>, access = [#fused.access<["d1"]>]}
// CHECK: arith.addf
func.func @convolution(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) -> tensor<1x4x4x4xf32> {
  %y = trt.convolution %x, %w, %b {stride = array<i64: 2, 2>, padding_mode = #trt<padding_mode same_upper>}
       : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>
  func.return %y : tensor<1x4x4x4xf32>
}

// -----

// The divisor of a mean over dynamic dimensions is a size of the run.
// CHECK-LABEL: @mean
// CHECK: fused.reduction add(%x) {{.*}}access = [#fused.access<["d0", "d3", "d4"]>], reduced = #trt.dims<["h", "w"]>
// CHECK: fused.size {value = "h*w"} : index
// CHECK: arith.divf
func.func @mean(%x: tensor<2x?x?xf32, #trt.dims<["2", "h", "w"]>>) -> tensor<2x1x1xf32> {
  %y = trt.reduce avg %x {axes = array<i64: 1, 2>} : (tensor<2x?x?xf32, #trt.dims<["2", "h", "w"]>>) -> tensor<2x1x1xf32>
  func.return %y : tensor<2x1x1xf32>
}

// -----

// CHECK-LABEL: @moves
// CHECK-NEXT: [[T:%.*]] = fused.pointwise %x {access = [#fused.access<["d1", "d0"]>]}
// CHECK: [[V:%.*]] = fused.view [[T]] : (tensor<3x2xf32>) -> tensor<6xf32>
// CHECK: fused.pointwise [[V]] {access = [#fused.access<["-2*d0 + 5"]>]}
func.func @moves(%x: tensor<2x3xf32>) -> tensor<3xf32> {
  %t = trt.shuffle %x {first_transpose = array<i64: 1, 0>, reshape_dims = #trt.dims<["6"]>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %y = trt.slice %t {start = #trt.dims<["5"]>, size = #trt.dims<["3"]>, stride = array<i64: -2>} : (tensor<6xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// Dynamic dimensions that are read as data are sizes of the run.
// CHECK-LABEL: @shape
// CHECK: fused.pointwise {access = []} : () -> tensor<2xi64>
// CHECK: fused.index
// CHECK: fused.size {value = "n"}
// CHECK: arith.select
func.func @shape(%x: tensor<?x6xf32, #trt.dims<["n", "6"]>>) -> tensor<2xi64> {
  %y = trt.shape %x : (tensor<?x6xf32, #trt.dims<["n", "6"]>>) -> tensor<2xi64>
  func.return %y : tensor<2xi64>
}

// -----

// What is one long is not reduced, kept or not.
// CHECK-LABEL: @reduces_nothing
// CHECK: fused.reduction add(%x) {access = [#fused.access<["d0", "d1", "d3"]>], reduced = #trt.dims<["8"]>} : (tensor<2x1x8xf32>) -> tensor<2x1x1xf32>
// CHECK: fused.reduction max(%x) {access = [#fused.access<["d0", "0", "d1"]>], reduced = #trt.dims<["8"]>} : (tensor<2x1x8xf32>) -> tensor<2xf32>
// CHECK: fused.reduction max(%x) {access = [#fused.access<["d0", "d2", "d1"]>], reduced = #trt.dims<["1"]>} : (tensor<2x1x8xf32>) -> tensor<2x8xf32>
func.func @reduces_nothing(%x: tensor<2x1x8xf32>) -> (tensor<2x1x1xf32>, tensor<2xf32>, tensor<2x8xf32>) {
  %a = trt.reduce avg %x {axes = array<i64: 1, 2>} : (tensor<2x1x8xf32>) -> tensor<2x1x1xf32>
  %b = trt.reduce max %x {axes = array<i64: 1, 2>, keep_dims = false} : (tensor<2x1x8xf32>) -> tensor<2xf32>
  %c = trt.reduce max %x {axes = array<i64: 1>, keep_dims = false} : (tensor<2x1x8xf32>) -> tensor<2x8xf32>
  func.return %a, %b, %c : tensor<2x1x1xf32>, tensor<2xf32>, tensor<2x8xf32>
}
