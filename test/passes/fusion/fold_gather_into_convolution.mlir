// RUN: rt-opt %s -p fold-gather-into-convolution --split-input-file | filecheck %s
// RUN: rt-opt %s -p fold-gather-into-convolution --split-input-file --remarks -o %t 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: rt-opt %s -p fold-gather-into-convolution --split-input-file --run=reference -o %t

// REMARK: fold-gather-into-convolution: applied
// CHECK-LABEL: @folded
// CHECK-DAG: [[K:%.*]] = trt.constant {value = dense<{{\[\[\[\[}}3.000000e+00]], {{\[\[}}1.000000e+00]]]]> : tensor<1x2x1x1xf32>}
// CHECK-DAG: [[B:%.*]] = trt.constant {value = dense<2.000000e+01> : tensor<1xf32>}
// CHECK: fused.convolution {{%[a-z]*}}, [[K]], [[B]]
// CHECK-NOT: fused.gather
func.func @folded() {
  %x = check.input {value = dense<[[[[1.0]], [[2.0]]]]> : tensor<1x2x1x1xf32>} : tensor<1x2x1x1xf32>
  %k = trt.constant {value = dense<[[[[1.0]], [[0.0]]], [[[3.0]], [[1.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %b = trt.constant {value = dense<[10.0, 20.0]> : tensor<2xf32>} : tensor<2xf32>
  %i = trt.constant {value = dense<[-1]> : tensor<1xi64>} : tensor<1xi64>
  %c = fused.convolution %x, %k, %b {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, access = [#fused.access<["d1"]>]} : (tensor<1x2x1x1xf32>, tensor<2x2x1x1xf32>, tensor<2xf32>) -> tensor<1x2x1x1xf32> {
  ^bb0(%acc: f32, %bias: f32):
    %s = arith.addf %acc, %bias : f32
    fused.yield %s : f32
  }
  %y = fused.gather %c, %i {axis = 1 : i64} : (tensor<1x2x1x1xf32>, tensor<1xi64>) -> tensor<1x1x1x1xf32>
  %want = trt.constant {value = dense<25.0> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  check.expect_close %y, %want : tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>
  func.return
}

// -----

// REMARK: declined: {{.*}}: {{.*}} has other readers
// CHECK-LABEL: @two_readers
// CHECK: fused.gather
func.func @two_readers(%x: tensor<1x2x8x8xf32>) -> (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) {
  %k = trt.constant {value = dense<[[[[1.0]], [[0.0]]], [[[3.0]], [[1.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %i = trt.constant {value = dense<[1, 0]> : tensor<2xi64>} : tensor<2xi64>
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x2x8x8xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.gather %c, %i {axis = 1 : i64} : (tensor<1x2x8x8xf32>, tensor<2xi64>) -> tensor<1x2x8x8xf32>
  func.return %c, %y : tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>
}

// -----

// REMARK: declined: {{.*}}: {{.*}} reads an operand along channels that is not constant
// CHECK-LABEL: @residual
// CHECK: fused.gather
func.func @residual(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %k = trt.constant {value = dense<[[[[1.0]], [[0.0]]], [[[3.0]], [[1.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %i = trt.constant {value = dense<[1, 0]> : tensor<2xi64>} : tensor<2xi64>
  %c = fused.convolution %x, %k, %x {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<1x2x8x8xf32>, tensor<2x2x1x1xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  ^bb0(%acc: f32, %r: f32):
    %s = arith.addf %acc, %r : f32
    fused.yield %s : f32
  }
  %y = fused.gather %c, %i {axis = 1 : i64} : (tensor<1x2x8x8xf32>, tensor<2xi64>) -> tensor<1x2x8x8xf32>
  func.return %y : tensor<1x2x8x8xf32>
}

// -----

// REMARK: declined: {{.*}}: the channels of {{.*}} are computed in groups
// CHECK-LABEL: @groups
// CHECK: fused.gather
func.func @groups(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %k = trt.constant {value = dense<[[[[1.0]]], [[[3.0]]]]> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
  %i = trt.constant {value = dense<[1, 0]> : tensor<2xi64>} : tensor<2xi64>
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, groups = 2 : i64} : (tensor<1x2x8x8xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.gather %c, %i {axis = 1 : i64} : (tensor<1x2x8x8xf32>, tensor<2xi64>) -> tensor<1x2x8x8xf32>
  func.return %y : tensor<1x2x8x8xf32>
}

// -----

// A few products with zeros are nothing beside a gather, and the result is one of merged groups no more.
// CHECK-LABEL: @small_groups
// CHECK: fused.convolution
// CHECK-NOT: merged_groups
// CHECK-NOT: fused.gather
func.func @small_groups(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %k = trt.constant {value = dense<[[[[1.0]], [[0.0]]], [[[0.0]], [[1.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %i = trt.constant {value = dense<[1, 0]> : tensor<2xi64>} : tensor<2xi64>
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, merged_groups = 2 : i64} : (tensor<1x2x8x8xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.gather %c, %i {axis = 1 : i64} : (tensor<1x2x8x8xf32>, tensor<2xi64>) -> tensor<1x2x8x8xf32>
  func.return %y : tensor<1x2x8x8xf32>
}

// -----

// REMARK: declined: {{.*}}: {{.*}} leaves out the zeros between its groups
// CHECK-LABEL: @large_groups
// CHECK: merged_groups = 2
// CHECK: fused.gather
func.func @large_groups(%x: tensor<1x128x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %k = trt.constant {value = dense<0.0> : tensor<2x128x1x1xf32>} : tensor<2x128x1x1xf32>
  %i = trt.constant {value = dense<[1, 0]> : tensor<2xi64>} : tensor<2xi64>
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, merged_groups = 2 : i64} : (tensor<1x128x8x8xf32>, tensor<2x128x1x1xf32>) -> tensor<1x2x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.gather %c, %i {axis = 1 : i64} : (tensor<1x2x8x8xf32>, tensor<2xi64>) -> tensor<1x2x8x8xf32>
  func.return %y : tensor<1x2x8x8xf32>
}
