// RUN: rt-opt %s --split-input-file -p 'fuse-sibling-convolutions{min-work=2},dce' --print-debuginfo | filecheck %s
// RUN: rt-opt %s --split-input-file -p fuse-sibling-convolutions | filecheck %s --check-prefix=DEFAULT

// A kernel of 2 multiplications is too short to pay for the slices, unless one asks for it.
// CHECK-LABEL: @siblings
// CHECK: [[J:%.*]] = trt.convolution %x, {{%.*}}, {{%.*}} : {{.*}} -> tensor<1x3x4x4xf32> loc(fused["a", "b"])
// CHECK: [[A:%.*]] = trt.slice [[J]] {start = #trt.dims<["0", "0", "0", "0"]>, size = #trt.dims<["1", "2", "4", "4"]>
// CHECK: [[B:%.*]] = trt.slice [[J]] {start = #trt.dims<["0", "2", "0", "0"]>, size = #trt.dims<["1", "1", "4", "4"]>
// CHECK: func.return [[A]], [[B]]
// DEFAULT-LABEL: @siblings
// DEFAULT-COUNT-2: trt.convolution
func.func @siblings(%x: tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x1x4x4xf32>) {
  %u = trt.constant {value = dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %v = trt.constant {value = dense<[[[[5.0]], [[6.0]]]]> : tensor<1x2x1x1xf32>} : tensor<1x2x1x1xf32>
  %c = trt.constant {value = dense<1.0> : tensor<1xf32>} : tensor<1xf32>
  %a = trt.convolution %x, %u : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("a")
  %b = trt.convolution %x, %v, %c : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>, tensor<1xf32>) -> tensor<1x1x4x4xf32> loc("b")
  func.return %a, %b : tensor<1x2x4x4xf32>, tensor<1x1x4x4xf32>
}

// -----

// Another stride, another input, an unknown kernel: no siblings.
// CHECK-LABEL: @strangers
// CHECK-COUNT-4: trt.convolution
// CHECK-NOT: trt.slice
func.func @strangers(%x: tensor<1x2x4x4xf32>, %z: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>)
    -> (tensor<1x2x4x4xf32>, tensor<1x2x2x2xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %u = trt.constant {value = dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %a = trt.convolution %x, %u : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %b = trt.convolution %x, %u {stride = array<i64: 2, 2>} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x2x2xf32>
  %c = trt.convolution %z, %u : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %d = trt.convolution %x, %w : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  func.return %a, %b, %c, %d : tensor<1x2x4x4xf32>, tensor<1x2x2x2xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}

// -----

// Both fill their blocks of 16 channels already.
// CHECK-LABEL: @wide
// CHECK-COUNT-2: trt.convolution
// CHECK-NOT: trt.slice
func.func @wide(%x: tensor<1x2x4x4xf32>) -> (tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>) {
  %u = trt.constant {value = dense<1.0> : tensor<16x2x1x1xf32>} : tensor<16x2x1x1xf32>
  %v = trt.constant {value = dense<2.0> : tensor<16x2x1x1xf32>} : tensor<16x2x1x1xf32>
  %a = trt.convolution %x, %u : (tensor<1x2x4x4xf32>, tensor<16x2x1x1xf32>) -> tensor<1x16x4x4xf32>
  %b = trt.convolution %x, %v : (tensor<1x2x4x4xf32>, tensor<16x2x1x1xf32>) -> tensor<1x16x4x4xf32>
  func.return %a, %b : tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>
}
