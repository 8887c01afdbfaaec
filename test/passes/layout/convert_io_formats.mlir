// RUN: rt-opt %s -p convert-io-formats --split-input-file --print-debuginfo | filecheck %s
// RUN: rt-opt %s -p 'convert-io-formats,assign-layouts{target=cuda}' --split-input-file | filecheck %s --check-prefix CUDA
// RUN: rt-opt %s -p 'convert-io-formats,assign-layouts{target=cpu}' --split-input-file | filecheck %s --check-prefix CPU

// Channels innermost are an order of the same dimensions, with longer rows where vectors are filled up; the copies bear
// the names of the layers. A convolution on a GPU works in just that order, and needs none.
// CHECK-LABEL: func.func @channels_last
// CHECK-SAME: %x: tensor<8x60x56x56xf16, #trt.dims<["8", "60", "56", "56"], order = [0, 2, 3, 1], row = 64>> {trt.name = "x", trt.format = "HWC8", trt.logical = #trt.dims<["8", "60", "56", "56"]>}
// CHECK: [[IN:%.*]] = fused.reformat %x : {{.*}} -> tensor<8x60x56x56xf16> loc("Reformatting CopyNode for Input Tensor 0 to conv1")
// CHECK: [[A:%.*]] = fused.convolution [[IN]], %k
// CHECK: [[OUT:%.*]] = fused.reformat [[A]] : (tensor<8x64x56x56xf16>) -> tensor<8x64x56x56xf16, #trt.dims<["8", "64", "56", "56"], order = [0, 2, 3, 1]>> loc("Reformatting CopyNode for Output Tensor 0 to conv1")
// CHECK: func.return [[OUT]]
// CUDA-LABEL: func.func @channels_last
// CUDA-NOT: fused.reformat
// CUDA: [[A:%.*]] = fused.convolution %x, %k {{.*}}row = 64>>, tensor<64x60x3x3xf16>) -> tensor<8x64x56x56xf16, #trt.dims<["8", "64", "56", "56"], order = [0, 2, 3, 1]>>
// CUDA: func.return [[A]]
// CPU-LABEL: func.func @channels_last
// CPU: [[IN:%.*]] = fused.reformat %x : {{.*}} -> tensor<8x60x56x56xf16>
// CPU: fused.convolution [[IN]], %k {{.*}} -> tensor<8x64x56x56xf16>
func.func @channels_last(%x: tensor<8x60x56x56xf16> {trt.name = "x", trt.format = "HWC8"}) -> (tensor<8x64x56x56xf16> {trt.name = "y", trt.format = "HWC8"}) {
  %k = trt.constant {value = dense<0.5> : tensor<64x60x3x3xf16>} : tensor<64x60x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x60x56x56xf16>, tensor<64x60x3x3xf16>) -> tensor<8x64x56x56xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  } loc("conv1")
  func.return %a : tensor<8x64x56x56xf16>
}

// -----

// The gaps of an output's rows are zero, which layers do not write: the copy stays, also where the order is right.
// CUDA-LABEL: func.func @gaps
// CUDA: [[A:%.*]] = fused.convolution {{.*}} -> tensor<8x60x56x56xf16, #trt.dims<["8", "60", "56", "56"], order = [0, 2, 3, 1]>>
// CUDA: [[OUT:%.*]] = fused.reformat [[A]] : {{.*}} -> tensor<8x60x56x56xf16, #trt.dims<["8", "60", "56", "56"], order = [0, 2, 3, 1], row = 64>>
// CUDA: func.return [[OUT]]
func.func @gaps(%x: tensor<8x64x56x56xf16> {trt.name = "x", trt.format = "HWC16"}) -> (tensor<8x60x56x56xf16> {trt.name = "y", trt.format = "HWC16"}) {
  %k = trt.constant {value = dense<0.5> : tensor<60x64x3x3xf16>} : tensor<60x64x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x64x56x56xf16>, tensor<60x64x3x3xf16>) -> tensor<8x60x56x56xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  } loc("conv1")
  func.return %a : tensor<8x60x56x56xf16>
}

// -----

// Formats of blocks are those of images: a volume is seen as one, and so are three dimensions.
// CHECK-LABEL: func.func @blocks
// CHECK-SAME: %x: tensor<?x2x20x6x32xf16, #trt.dims<["n", "2", "20", "6", "32"], channels = "40">>
// CHECK: [[IMAGE:%.*]] = fused.reformat %x : {{.*}} -> tensor<?x40x20x6xf16, #trt.dims<["n", "40", "20", "6"]>>
// CHECK: [[VOLUME:%.*]] = fused.view [[IMAGE]] : {{.*}} -> tensor<?x40x4x5x6xf16
// CHECK: [[Y:%.*]] = fused.reduction max([[VOLUME]])
// CHECK: [[SEEN:%.*]] = fused.view [[Y]] : (tensor<40x4x5xf16>) -> tensor<1x40x4x5xf16>
// CHECK: fused.reformat [[SEEN]] : (tensor<1x40x4x5xf16>) -> tensor<1x10x4x5x4xf16, #trt.dims<["1", "10", "4", "5", "4"], channels = "40">>
// CPU-LABEL: func.func @blocks
// CPU: fused.reformat %x
// CPU: fused.reformat {{.*}} -> tensor<1x10x4x5x4xf16
func.func @blocks(%x: tensor<?x40x4x5x6xf16, #trt.dims<["n", "40", "4", "5", "6"]>> {trt.name = "x", trt.format = "CDHW32"}) -> (tensor<40x4x5xf16> {trt.name = "y", trt.format = "CHW4"}) {
  %y = fused.reduction max(%x) {access = [#fused.access<["d3", "d0", "d1", "d2", "d4"]>], reduced = #trt.dims<["n", "6"]>} : (tensor<?x40x4x5x6xf16, #trt.dims<["n", "40", "4", "5", "6"]>>) -> tensor<40x4x5xf16> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  } {
  ^bb0(%m: f16):
    fused.yield %m : f16
  }
  func.return %y : tensor<40x4x5xf16>
}

// -----

// Linear tensors are left alone, as are those that have been given their type.
// CHECK-LABEL: func.func @linear
// CHECK-NOT: fused.reformat
// CHECK: func.return
func.func @linear(%x: tensor<1x3x8x8xf16> {trt.name = "x"}) -> (tensor<1x3x8x8xf16> {trt.name = "y"}) {
  func.return %x : tensor<1x3x8x8xf16>
}
