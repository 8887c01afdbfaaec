// RUN: rt-opt %s -p 'assign-layouts' --split-input-file | filecheck %s

// A padded convolution reads blocks with a halo and gives blocks; both borders are converted.
// CHECK-LABEL: @padded
func.func @padded(%x: tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32> {
  // CHECK: [[IN:%.*]] = fused.reformat %x : (tensor<1x32x8x8xf32>) -> tensor<1x2x8x8x16xf32, #trt.dims<["1", "2", "8", "8", "16"], channels = "32", halo = [1, 1]>>
  // CHECK: [[OUT:%.*]] = fused.convolution [[IN]], %k
  // CHECK: fused.reformat [[OUT]] : {{.*}} -> tensor<1x32x8x8xf32>
  %k = trt.constant {value = dense<0.5> : tensor<32x32x3x3xf32>} : tensor<32x32x3x3xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<1x32x8x8xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x32x8x8xf32>
}

// -----

// Three channels do not fill a vector: the input stays plain, with a halo.
// CHECK-LABEL: @stem
func.func @stem(%x: tensor<1x3x8x8xf32>) -> tensor<1x16x8x8xf32> {
  // CHECK: fused.reformat %x : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32, #trt.dims<["1", "3", "8", "8"], halo = [1, 1]>>
  %k = trt.constant {value = dense<0.5> : tensor<16x3x3x3xf32>} : tensor<16x3x3x3xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x16x8x8xf32>
}

// -----

// Without a convolution nothing is worth a conversion.
// CHECK-LABEL: @elementwise
// CHECK-NOT: fused.reformat
func.func @elementwise(%x: tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32> {
  %y = fused.pointwise %x {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32> {
  ^bb0(%a: f32):
    %b = arith.addf %a, %a : f32
    fused.yield %b : f32
  }
  func.return %y : tensor<1x32x8x8xf32>
}

// -----

// Channels in a constant order are gathered from blocks into blocks, with the halo that the next convolution wants.
// CHECK-LABEL: @gathered
// CHECK: [[C:%.*]] = fused.convolution
// CHECK-NEXT: ^bb0
// CHECK: [[Y:%.*]] = fused.gather [[C]], {{%.*}} {axis = 1 : i64} : (tensor<1x2x8x8x16xf32, {{.*}}channels = "20">>, tensor<18xi64>) -> tensor<1x2x8x8x16xf32, {{.*}}channels = "18", halo = [1, 1]>>
// CHECK-NEXT: fused.convolution [[Y]]
func.func @gathered(%x: tensor<1x3x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<20x3x1x1xf32>} : tensor<20x3x1x1xf32>
  %l = trt.constant {value = dense<0.5> : tensor<16x18x3x3xf32>} : tensor<16x18x3x3xf32>
  %i = trt.constant {value = dense<[0, 2, 4, 6, 8, 10, 12, 14, 16, 1, 3, 5, 7, 9, 11, 13, 15, -1]> : tensor<18xi64>} : tensor<18xi64>
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<20x3x1x1xf32>) -> tensor<1x20x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %g = fused.gather %c, %i {axis = 1 : i64} : (tensor<1x20x8x8xf32>, tensor<18xi64>) -> tensor<1x18x8x8xf32>
  %y = fused.convolution %g, %l {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<1x18x8x8xf32>, tensor<16x18x3x3xf32>) -> tensor<1x16x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x16x8x8xf32>
}

// -----

// Indices that a run brings, and those out of range, which read zeros, need plain images.
// CHECK-LABEL: @not_gathered
// CHECK: fused.reformat
// CHECK: fused.gather {{.*}} -> tensor<1x2x8x8xf32>
// CHECK: fused.gather {{.*}} -> tensor<1x2x8x8xf32>
func.func @not_gathered(%x: tensor<1x3x8x8xf32>, %i: tensor<2xi64>) -> (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) {
  %k = trt.constant {value = dense<0.5> : tensor<20x3x1x1xf32>} : tensor<20x3x1x1xf32>
  %j = trt.constant {value = dense<[0, 20]> : tensor<2xi64>} : tensor<2xi64>
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<20x3x1x1xf32>) -> tensor<1x20x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %g = fused.gather %c, %i {axis = 1 : i64} : (tensor<1x20x8x8xf32>, tensor<2xi64>) -> tensor<1x2x8x8xf32>
  %h = fused.gather %c, %j {axis = 1 : i64} : (tensor<1x20x8x8xf32>, tensor<2xi64>) -> tensor<1x2x8x8xf32>
  func.return %g, %h : tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>
}

// -----

// A sum over all pixels is one of blocks, whose result is an image of one pixel; who keeps no axes for it gets a view.
// CHECK-LABEL: @sum_of_pixels
// CHECK: [[C:%.*]] = fused.convolution
// CHECK: [[R:%.*]] = fused.reduction add([[C]]) {access = [#fused.access<["d0", "d1", "d5", "d6", "d4"]>]{{.*}} -> tensor<5x2x1x1x16xf32, #trt.dims<["5", "2", "1", "1", "16"], channels = "24">>
// CHECK: [[P:%.*]] = fused.reformat [[R]] : {{.*}} -> tensor<5x24x1x1xf32>
// CHECK: [[Y:%.*]] = fused.view [[P]] : (tensor<5x24x1x1xf32>) -> tensor<5x24xf32>
// CHECK-NEXT: return [[Y]]
func.func @sum_of_pixels(%x: tensor<5x16x7x9xf32>) -> tensor<5x24xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<24x16x1x1xf32>} : tensor<24x16x1x1xf32>
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<5x16x7x9xf32>, tensor<24x16x1x1xf32>) -> tensor<5x24x7x9xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.reduction add(%c) {access = [#fused.access<["d0", "d1", "d2", "d3"]>], reduced = #trt.dims<["7", "9"]>} : (tensor<5x24x7x9xf32>) -> tensor<5x24xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<5x24xf32>
}

// -----

// Pixels in turn stay in blocks, which have the halo that a convolution behind them wants.
// CHECK-LABEL: @interleave
func.func @interleave(%x: tensor<1x32x8x8xf32>) -> tensor<1x32x8x16xf32> {
  // CHECK: [[A:%.*]] = fused.convolution {{.*}} -> tensor<1x2x8x8x16xf32, #trt.dims<["1", "2", "8", "8", "16"], channels = "32">>
  // CHECK: [[Y:%.*]] = fused.interleave [[A]], [[A]] {fused.in_place = [true, false], factors = array<i64: 1, 2>} : {{.*}} -> tensor<1x2x8x16x16xf32, {{.*}}halo = [1, 1]>>
  // CHECK: fused.convolution [[Y]]
  %k = trt.constant {value = dense<0.5> : tensor<32x32x1x1xf32>} : tensor<32x32x1x1xf32>
  %w = trt.constant {value = dense<0.5> : tensor<32x32x3x3xf32>} : tensor<32x32x3x3xf32>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x32x8x8xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.interleave %a, %a {factors = array<i64: 1, 2>, fused.in_place = [true, false]} : (tensor<1x32x8x8xf32>, tensor<1x32x8x8xf32>) -> tensor<1x32x8x16xf32>
  %z = fused.convolution %y, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<1x32x8x16xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x8x16xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %z : tensor<1x32x8x16xf32>
}

// -----

// Other rows of the same pixels are blocks as well.
// CHECK-LABEL: @view
func.func @view(%x: tensor<1x32x8x8xf32>) -> tensor<1x32x1x64xf32> {
  // CHECK: [[A:%.*]] = fused.convolution
  // CHECK: [[V:%.*]] = fused.view [[A]] : {{.*}} -> tensor<1x2x1x64x16xf32, #trt.dims<["1", "2", "1", "64", "16"], channels = "32">>
  // CHECK: fused.reformat [[V]]
  %k = trt.constant {value = dense<0.5> : tensor<32x32x1x1xf32>} : tensor<32x32x1x1xf32>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x32x8x8xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.view %a : (tensor<1x32x8x8xf32>) -> tensor<1x32x1x64xf32>
  func.return %y : tensor<1x32x1x64xf32>
}

// -----

// Results in halves lie in blocks too, and are moved out of them as such.
// CHECK-LABEL: @rounded
func.func @rounded(%x: tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf16> {
  // CHECK: [[OUT:%.*]] = fused.convolution
  // CHECK-SAME: -> tensor<1x2x8x8x16xf16, {{.*}}channels = "32">>
  // CHECK: fused.reformat [[OUT]] : {{.*}} -> tensor<1x32x8x8xf16>
  %k = trt.constant {value = dense<0.5> : tensor<32x32x1x1xf32>} : tensor<32x32x1x1xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x32x8x8xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x8x8xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<1x32x8x8xf16>
}
