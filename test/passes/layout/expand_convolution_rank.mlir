// RUN: rt-opt %s -p 'expand-convolution-rank' --split-input-file | filecheck %s

// CHECK-LABEL: @signal
func.func @signal(%x: tensor<1x8x50xf32>, %r: tensor<1x16x24xf32>) -> tensor<1x16x24xf32> {
  // CHECK-DAG: [[X:%.*]] = fused.view %x : (tensor<1x8x50xf32>) -> tensor<1x8x1x50xf32>
  // CHECK-DAG: [[R:%.*]] = fused.view %r : (tensor<1x16x24xf32>) -> tensor<1x16x1x24xf32>
  // CHECK: [[Y:%.*]] = fused.convolution [[X]], {{%.*}}, [[R]] {stride = array<i64: 1, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>
  // CHECK: fused.view [[Y]] : (tensor<1x16x1x24xf32>) -> tensor<1x16x24xf32>
  %k = trt.constant {value = dense<0.5> : tensor<16x8x3xf32>} : tensor<16x8x3xf32>
  %y = fused.convolution %x, %k, %r {stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = array<i64: 0>, post_padding = array<i64: 0>, access = [#fused.access<["d0", "d1", "d2"]>]} : (tensor<1x8x50xf32>, tensor<16x8x3xf32>, tensor<1x16x24xf32>) -> tensor<1x16x24xf32> {
  ^bb0(%acc: f32, %e: f32):
    %s = arith.addf %acc, %e : f32
    fused.yield %s : f32
  }
  func.return %y : tensor<1x16x24xf32>
}

// -----

// A kernel that is computed cannot be packed: nothing is gained.
// CHECK-LABEL: @computed
// CHECK-NOT: fused.view
func.func @computed(%x: tensor<1x8x50xf32>, %k: tensor<16x8x3xf32>) -> tensor<1x16x48xf32> {
  %y = fused.convolution %x, %k {stride = array<i64: 1>, dilation = array<i64: 1>, pre_padding = array<i64: 0>, post_padding = array<i64: 0>} : (tensor<1x8x50xf32>, tensor<16x8x3xf32>) -> tensor<1x16x48xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x16x48xf32>
}

// -----

// An image of height 1 reads a signal as it lies; what is read in another order stays.
// CHECK-LABEL: @image_with_signals
func.func @image_with_signals(%x: tensor<1x8x1x50xf32>, %r: tensor<1x16x48xf32>, %t: tensor<1x48x16xf32>) -> tensor<1x16x1x48xf32> {
  // CHECK: [[R:%.*]] = fused.view %r : (tensor<1x16x48xf32>) -> tensor<1x16x1x48xf32>
  // CHECK-NEXT: fused.convolution %x, %k, [[R]], %t
  // CHECK-SAME: access = [#fused.access<["d0", "d1", "d2", "d3"]>, #fused.access<["d0", "d3", "d1"]>]
  %k = trt.constant {value = dense<0.5> : tensor<16x8x1x3xf32>} : tensor<16x8x1x3xf32>
  %y = fused.convolution %x, %k, %r, %t {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d3", "d1"]>]} : (tensor<1x8x1x50xf32>, tensor<16x8x1x3xf32>, tensor<1x16x48xf32>, tensor<1x48x16xf32>) -> tensor<1x16x1x48xf32> {
  ^bb0(%acc: f32, %a: f32, %b: f32):
    %s = arith.addf %acc, %a : f32
    %u = arith.addf %s, %b : f32
    fused.yield %u : f32
  }
  func.return %y : tensor<1x16x1x48xf32>
}

// -----

// What lies along some axes of the image, channels among them, is read at the only element of the others; a constant
// with an element for each channel is packed as it is, and so is what does not differ between channels.
// CHECK-LABEL: @image_with_parts
func.func @image_with_parts(%x: tensor<2x8x1x50xf32>, %r: tensor<1x16x48xf32>, %c: tensor<16x1xf32>, %p: tensor<48xf32>) -> tensor<2x16x1x48xf32> {
  // CHECK: [[R:%.*]] = fused.view %r : (tensor<1x16x48xf32>) -> tensor<1x16x1x48xf32>
  // CHECK-NEXT: [[C:%.*]] = fused.view %c : (tensor<16x1xf32>) -> tensor<1x16x1x1xf32>
  // CHECK-NEXT: fused.convolution %x, %k, %b, [[R]], [[C]], %p
  // CHECK-SAME: access = [#fused.access<["d1"]>, #fused.access<["0", "d1", "d2", "d3"]>, #fused.access<["0", "d1", "d2", "0"]>, #fused.access<["d3"]>]
  %k = trt.constant {value = dense<0.5> : tensor<16x8x1x3xf32>} : tensor<16x8x1x3xf32>
  %b = trt.constant {value = dense<0.5> : tensor<16xf32>} : tensor<16xf32>
  %y = fused.convolution %x, %k, %b, %r, %c, %p {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, access = [#fused.access<["d1"]>, #fused.access<["0", "d1", "d3"]>, #fused.access<["d1", "0"]>, #fused.access<["d3"]>]} : (tensor<2x8x1x50xf32>, tensor<16x8x1x3xf32>, tensor<16xf32>, tensor<1x16x48xf32>, tensor<16x1xf32>, tensor<48xf32>) -> tensor<2x16x1x48xf32> {
  ^bb0(%acc: f32, %0: f32, %1: f32, %2: f32, %3: f32):
    %s = arith.addf %acc, %0 : f32
    %t = arith.addf %s, %1 : f32
    %u = arith.addf %t, %2 : f32
    %v = arith.addf %u, %3 : f32
    fused.yield %v : f32
  }
  func.return %y : tensor<2x16x1x48xf32>
}
