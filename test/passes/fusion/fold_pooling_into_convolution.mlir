// RUN: rt-opt %s --split-input-file -p fold-pooling-into-convolution,dce --print-debuginfo | filecheck %s

// CHECK-LABEL: @convolution
// CHECK: [[W:%.*]] = trt.constant {value = dense<{{\[\[}}[5.000000e-01, 1.500000e+00, 1.000000e+00]]]> : tensor<1x1x3xf32>}
// CHECK-NEXT: [[Y:%.*]] = trt.convolution %x, [[W]], %b {{.*}}stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = array<i64: 1>, post_padding = array<i64: 0>} : {{.*}} -> tensor<1x1x4xf32> loc(fused["conv", "pool"])
// CHECK-NEXT: func.return [[Y]]
func.func @convolution(%x: tensor<1x1x8xf32>) -> tensor<1x1x4xf32> {
  %w = trt.constant {value = dense<[[[1.0, 2.0]]]> : tensor<1x1x2xf32>} : tensor<1x1x2xf32>
  %b = trt.constant {value = dense<7.0> : tensor<1xf32>} : tensor<1xf32>
  %c = trt.convolution %x, %w, %b {pre_padding = array<i64: 1>} : (tensor<1x1x8xf32>, tensor<1x1x2xf32>, tensor<1xf32>) -> tensor<1x1x8xf32> loc("conv")
  %y = trt.pooling average %c {window = array<i64: 2>, stride = array<i64: 2>} : (tensor<1x1x8xf32>) -> tensor<1x1x4xf32> loc("pool")
  func.return %y : tensor<1x1x4xf32>
}

// -----

// Results that interleave by two and are averaged by two: a convolution of the cells, whose channels come second.
// CHECK-LABEL: @deconvolution
// CHECK: trt.convolution %x, {{%.*}} {{.*}}stride = array<i64: 1>{{.*}} : (tensor<1x2x8xf32>, tensor<3x2x2xf32>) -> tensor<1x3x8xf32>
// CHECK-NOT: trt.pooling
func.func @deconvolution(%x: tensor<1x2x8xf32>) -> tensor<1x3x8xf32> {
  %w = trt.constant {value = dense<1.0> : tensor<2x3x3xf32>} : tensor<2x3x3xf32>
  %c = trt.deconvolution %x, %w {stride = array<i64: 2>, pre_padding = array<i64: 1>, output_padding = array<i64: 1>} : (tensor<1x2x8xf32>, tensor<2x3x3xf32>) -> tensor<1x3x17xf32>
  %y = trt.pooling average %c {window = array<i64: 2>, stride = array<i64: 2>} : (tensor<1x3x17xf32>) -> tensor<1x3x8xf32>
  func.return %y : tensor<1x3x8xf32>
}

// -----

// Of four results that a cell makes two are left.
// CHECK-LABEL: @smaller_deconvolution
// CHECK: trt.deconvolution %x, {{%.*}} {{.*}}stride = array<i64: 2>
// CHECK-NOT: trt.pooling
func.func @smaller_deconvolution(%x: tensor<1x1x8xf32>) -> tensor<1x1x16xf32> {
  %w = trt.constant {value = dense<1.0> : tensor<1x1x4xf32>} : tensor<1x1x4xf32>
  %c = trt.deconvolution %x, %w {stride = array<i64: 4>} : (tensor<1x1x8xf32>, tensor<1x1x4xf32>) -> tensor<1x1x32xf32>
  %y = trt.pooling average %c {window = array<i64: 2>, stride = array<i64: 2>} : (tensor<1x1x32xf32>) -> tensor<1x1x16xf32>
  func.return %y : tensor<1x1x16xf32>
}

// -----

// Windows that overlap cost more multiplications, padding changes what is divided by, the largest is not linear, the
// results are read elsewhere too.
// CHECK-LABEL: @left_alone
// CHECK-COUNT-4: trt.pooling
func.func @left_alone(%x: tensor<1x1x8xf32>) -> (tensor<1x1x6xf32>, tensor<1x1x5xf32>, tensor<1x1x4xf32>, tensor<1x1x8xf32>, tensor<1x1x4xf32>) {
  %w = trt.constant {value = dense<1.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %a = trt.convolution %x, %w : (tensor<1x1x8xf32>, tensor<1x1x1xf32>) -> tensor<1x1x8xf32>
  %a1 = trt.pooling average %a {window = array<i64: 3>} : (tensor<1x1x8xf32>) -> tensor<1x1x6xf32>
  %b = trt.convolution %x, %w : (tensor<1x1x8xf32>, tensor<1x1x1xf32>) -> tensor<1x1x8xf32>
  %b1 = trt.pooling average %b {window = array<i64: 2>, stride = array<i64: 2>, pre_padding = array<i64: 1>, post_padding = array<i64: 1>} : (tensor<1x1x8xf32>) -> tensor<1x1x5xf32>
  %c = trt.convolution %x, %w : (tensor<1x1x8xf32>, tensor<1x1x1xf32>) -> tensor<1x1x8xf32>
  %c1 = trt.pooling max %c {window = array<i64: 2>, stride = array<i64: 2>} : (tensor<1x1x8xf32>) -> tensor<1x1x4xf32>
  %d = trt.convolution %x, %w : (tensor<1x1x8xf32>, tensor<1x1x1xf32>) -> tensor<1x1x8xf32>
  %d1 = trt.pooling average %d {window = array<i64: 2>, stride = array<i64: 2>} : (tensor<1x1x8xf32>) -> tensor<1x1x4xf32>
  func.return %a1, %b1, %c1, %d, %d1 : tensor<1x1x6xf32>, tensor<1x1x5xf32>, tensor<1x1x4xf32>, tensor<1x1x8xf32>, tensor<1x1x4xf32>
}
