// RUN: rt-opt %s -p fuse-channel-shuffles --split-input-file | filecheck %s
// RUN: rt-opt %s -p fuse-channel-shuffles --split-input-file --remarks -o %t 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: rt-opt %s -p fuse-channel-shuffles --split-input-file --print-debuginfo | filecheck %s --check-prefix=NAMES

// REMARK: fuse-channel-shuffles: applied
// NAMES: fused.gather {{.*}} loc(fused["split", "turn", "join"])
// CHECK-LABEL: @shuffle
// CHECK: [[C:%.*]] = fused.convolution
// CHECK: [[I:%.*]] = trt.constant {value = dense<[0, 3, 1, 4, 2, 5]> : tensor<6xi64>}
// CHECK-NOT: fused.view
// CHECK: fused.gather [[C]], [[I]] {axis = 1 : i64} : (tensor<1x6x8x8xf32>, tensor<6xi64>) -> tensor<1x6x8x8xf32>
// CHECK-NOT: fused.view
func.func @shuffle(%x: tensor<1x3x8x8xf32>, %k: tensor<6x3x1x1xf32>) -> tensor<1x6x8x8xf32> {
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<6x3x1x1xf32>) -> tensor<1x6x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %v = fused.view %c : (tensor<1x6x8x8xf32>) -> tensor<1x2x3x8x8xf32> loc("split")
  %t = fused.pointwise %v {access = [#fused.access<["0", "d2", "d1", "d3", "d4"]>]} : (tensor<1x2x3x8x8xf32>) -> tensor<1x3x2x8x8xf32> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  } loc("turn")
  %y = fused.view %t : (tensor<1x3x2x8x8xf32>) -> tensor<1x6x8x8xf32> loc("join")
  func.return %y : tensor<1x6x8x8xf32>
}

// -----

// Batch, height and width may be those of a run; a window keeps the channels; the tensors between have other readers.
// CHECK-LABEL: @sizes_of_the_run
// CHECK: [[P:%.*]] = fused.window
// CHECK: fused.view
// CHECK: [[T:%.*]] = fused.pointwise
// CHECK: [[I:%.*]] = trt.constant {value = dense<[0, 2, 1, 3]> : tensor<4xi64>}
// CHECK: [[Y:%.*]] = fused.gather [[P]], [[I]]
// CHECK: func.return [[Y]], [[T]]
func.func @sizes_of_the_run(%x: tensor<?x3x?x?xf32, #trt.dims<["n", "3", "h", "w"]>>, %k: tensor<4x3x1x1xf32>) -> (tensor<?x4x?x?xf32, #trt.dims<["n", "4", "h", "w"]>>, tensor<?x2x2x?x?xf32, #trt.dims<["n", "2", "2", "h", "w"]>>) {
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<?x3x?x?xf32, #trt.dims<["n", "3", "h", "w"]>>, tensor<4x3x1x1xf32>) -> tensor<?x4x?x?xf32, #trt.dims<["n", "4", "h", "w"]>> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %p = fused.window max %c {window = array<i64: 1, 1>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<?x4x?x?xf32, #trt.dims<["n", "4", "h", "w"]>>) -> tensor<?x4x?x?xf32, #trt.dims<["n", "4", "h", "w"]>> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  }
  %v = fused.view %p : (tensor<?x4x?x?xf32, #trt.dims<["n", "4", "h", "w"]>>) -> tensor<?x2x2x?x?xf32, #trt.dims<["n", "2", "2", "h", "w"]>>
  %t = fused.pointwise %v {access = [#fused.access<["d0", "d2", "d1", "d3", "d4"]>]} : (tensor<?x2x2x?x?xf32, #trt.dims<["n", "2", "2", "h", "w"]>>) -> tensor<?x2x2x?x?xf32, #trt.dims<["n", "2", "2", "h", "w"]>> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  }
  %y = fused.view %t : (tensor<?x2x2x?x?xf32, #trt.dims<["n", "2", "2", "h", "w"]>>) -> tensor<?x4x?x?xf32, #trt.dims<["n", "4", "h", "w"]>>
  func.return %y, %t : tensor<?x4x?x?xf32, #trt.dims<["n", "4", "h", "w"]>>, tensor<?x2x2x?x?xf32, #trt.dims<["n", "2", "2", "h", "w"]>>
}

// -----

// Every second channel, backwards.
// CHECK-LABEL: @select
// CHECK: dense<[5, 3, 1]> : tensor<3xi64>
// CHECK: fused.gather {{.*}} -> tensor<1x3x8x8xf32>
func.func @select(%x: tensor<1x3x8x8xf32>, %k: tensor<6x3x1x1xf32>) -> tensor<1x3x8x8xf32> {
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<6x3x1x1xf32>) -> tensor<1x6x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.pointwise %c {access = [#fused.access<["d0", "-2*d1 + 5", "d2", "d3"]>]} : (tensor<1x6x8x8xf32>) -> tensor<1x3x8x8xf32> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  }
  func.return %y : tensor<1x3x8x8xf32>
}

// -----

// Height and width change places; neighbouring channels are a slice.
// CHECK-LABEL: @others
// CHECK-NOT: fused.gather
func.func @others(%x: tensor<1x3x8x8xf32>, %k: tensor<6x3x1x1xf32>) -> (tensor<1x6x8x8xf32>, tensor<1x3x8x8xf32>) {
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<6x3x1x1xf32>) -> tensor<1x6x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %t = fused.pointwise %c {access = [#fused.access<["d0", "d1", "d3", "d2"]>]} : (tensor<1x6x8x8xf32>) -> tensor<1x6x8x8xf32> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  }
  %s = fused.pointwise %c {access = [#fused.access<["d0", "d1 + 2", "d2", "d3"]>]} : (tensor<1x6x8x8xf32>) -> tensor<1x3x8x8xf32> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  }
  func.return %t, %s : tensor<1x6x8x8xf32>, tensor<1x3x8x8xf32>
}

// -----

// REMARK: declined: {{.*}}: a channel is taken twice
// CHECK-LABEL: @twice
// CHECK-NOT: fused.gather
func.func @twice(%x: tensor<1x3x8x8xf32>, %k: tensor<6x3x1x1xf32>) -> tensor<1x12x8x8xf32> {
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<6x3x1x1xf32>) -> tensor<1x6x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %t = fused.pointwise %c {access = [#fused.access<["d0", "d1", "d3", "d4"]>]} : (tensor<1x6x8x8xf32>) -> tensor<1x6x2x8x8xf32> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  }
  %y = fused.view %t : (tensor<1x6x2x8x8xf32>) -> tensor<1x12x8x8xf32>
  func.return %y : tensor<1x12x8x8xf32>
}

// -----

// REMARK: declined: {{.*}}: the channels come from no convolution, so that they lie in no blocks
// CHECK-LABEL: @no_convolution
// CHECK-NOT: fused.gather
func.func @no_convolution(%x: tensor<1x6x8x8xf32>) -> tensor<1x6x8x8xf32> {
  %v = fused.view %x : (tensor<1x6x8x8xf32>) -> tensor<1x2x3x8x8xf32>
  %t = fused.pointwise %v {access = [#fused.access<["0", "d2", "d1", "d3", "d4"]>]} : (tensor<1x2x3x8x8xf32>) -> tensor<1x3x2x8x8xf32> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  }
  %y = fused.view %t : (tensor<1x3x2x8x8xf32>) -> tensor<1x6x8x8xf32>
  func.return %y : tensor<1x6x8x8xf32>
}
