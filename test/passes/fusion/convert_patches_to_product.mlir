// RUN: rt-opt %s -p 'convert-patches-to-product{min-cells=12}' --split-input-file | filecheck %s

// CHECK-LABEL: @patches
func.func @patches(%x: tensor<2x3x4x6xf32>, %b: tensor<5xf32>) -> tensor<2x5x2x3xf32> {
  // CHECK: [[A:%.*]] = trt.shuffle %x {reshape_dims = #trt.dims<["2", "3", "2", "2", "3", "2"]>}
  // CHECK: [[M:%.*]] = trt.shuffle [[A]] {first_transpose = array<i64: 0, 2, 4, 1, 3, 5>} : {{.*}} -> tensor<2x2x3x3x2x2xf32>
  // CHECK: [[R:%.*]] = trt.shuffle [[M]] {reshape_dims = #trt.dims<["2", "6", "12"]>}
  // CHECK: [[W:%.*]] = trt.constant {{.*}} : tensor<1x12x5xf32>
  // CHECK: [[P:%.*]] = trt.matrix_multiply [[R]], [[W]]
  // CHECK: [[S:%.*]] = trt.elementwise sum [[P]]
  // CHECK: [[T:%.*]] = trt.shuffle [[S]] {first_transpose = array<i64: 0, 2, 1>}
  // CHECK: trt.shuffle [[T]] {{.*}} -> tensor<2x5x2x3xf32>
  %k = trt.constant {value = dense<0.5> : tensor<5x3x2x2xf32>} : tensor<5x3x2x2xf32>
  %y = trt.convolution %x, %k, %b {stride = array<i64: 2, 2>} : (tensor<2x3x4x6xf32>, tensor<5x3x2x2xf32>, tensor<5xf32>) -> tensor<2x5x2x3xf32>
  func.return %y : tensor<2x5x2x3xf32>
}

// -----

// Any batch; signals have windows, too.
// CHECK-LABEL: @signal
func.func @signal(%x: tensor<?x1x24xf32> {trt.shape = #trt.dims<["n", "1", "24"]>}) -> tensor<?x5x2xf32> {
  // CHECK: trt.matrix_multiply {{.*}} -> tensor<?x2x5xf32
  %k = trt.constant {value = dense<0.5> : tensor<5x1x12xf32>} : tensor<5x1x12xf32>
  %y = trt.convolution %x, %k {stride = array<i64: 12>} : (tensor<?x1x24xf32>, tensor<5x1x12xf32>) -> tensor<?x5x2xf32>
  func.return %y : tensor<?x5x2xf32>
}

// -----

// Windows that overlap, that are padded, that leave cells over, and those of few cells stay.
// CHECK-LABEL: @others
func.func @others(%x: tensor<2x3x4x6xf32>) -> (tensor<2x5x2x4xf32>, tensor<2x5x3x4xf32>, tensor<2x5x1x2xf32>, tensor<2x5x2x6xf32>) {
  // CHECK-NOT: trt.matrix_multiply
  %k = trt.constant {value = dense<0.5> : tensor<5x3x2x3xf32>} : tensor<5x3x2x3xf32>
  %a = trt.convolution %x, %k {stride = array<i64: 2, 1>} : (tensor<2x3x4x6xf32>, tensor<5x3x2x3xf32>) -> tensor<2x5x2x4xf32>
  %l = trt.constant {value = dense<0.5> : tensor<5x3x2x2xf32>} : tensor<5x3x2x2xf32>
  %b = trt.convolution %x, %l {stride = array<i64: 2, 2>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<2x3x4x6xf32>, tensor<5x3x2x2xf32>) -> tensor<2x5x3x4xf32>
  %m = trt.constant {value = dense<0.5> : tensor<5x3x3x3xf32>} : tensor<5x3x3x3xf32>
  %c = trt.convolution %x, %m {stride = array<i64: 3, 3>} : (tensor<2x3x4x6xf32>, tensor<5x3x3x3xf32>) -> tensor<2x5x1x2xf32>
  %p = trt.constant {value = dense<0.5> : tensor<5x3x2x1xf32>} : tensor<5x3x2x1xf32>
  %d = trt.convolution %x, %p {stride = array<i64: 2, 1>} : (tensor<2x3x4x6xf32>, tensor<5x3x2x1xf32>) -> tensor<2x5x2x6xf32>
  func.return %a, %b, %c, %d : tensor<2x5x2x4xf32>, tensor<2x5x3x4xf32>, tensor<2x5x1x2xf32>, tensor<2x5x2x6xf32>
}
