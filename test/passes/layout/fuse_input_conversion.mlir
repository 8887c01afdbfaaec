// RUN: rt-opt %s -p fuse-input-conversion --split-input-file | filecheck %s

// A product rounds what the caller gives as it loads it.
// CHECK-LABEL: @product
// CHECK-NOT: fused.pointwise
// CHECK: fused.matmul %x, %w : (tensor<16x64xf32>, tensor<64x32xf16>) -> tensor<16x32xf16>
func.func @product(%x: tensor<16x64xf32>, %w: tensor<64x32xf16>) -> tensor<16x32xf16> {
  %h = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<16x64xf32>) -> tensor<16x64xf16> {
  ^bb0(%e: f32):
    %n = arith.truncf %e : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.matmul %h, %w {} : (tensor<16x64xf16>, tensor<64x32xf16>) -> tensor<16x32xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<16x32xf16>
}

// -----

// For a large product a launch is little beside what copies by the device save.
// CHECK-LABEL: @large_product
// CHECK: [[H:%.*]] = fused.pointwise
// CHECK: fused.matmul [[H]], %w
func.func @large_product(%x: tensor<4096x4096xf32>, %w: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %h = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<4096x4096xf32>) -> tensor<4096x4096xf16> {
  ^bb0(%e: f32):
    %n = arith.truncf %e : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.matmul %h, %w {} : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<4096x4096xf16>
}

// -----

// Convolutions of few channels load single elements anyway.
// CHECK-LABEL: @stem
// CHECK-NOT: fused.pointwise
// CHECK: fused.convolution %x, %k {{.*}} : (tensor<1x3x224x224xf32>, tensor<64x3x7x7xf16>)
func.func @stem(%x: tensor<1x3x224x224xf32>, %k: tensor<64x3x7x7xf16>) -> tensor<1x64x112x112xf16> {
  %h = fused.pointwise %x {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<1x3x224x224xf32>) -> tensor<1x3x224x224xf16> {
  ^bb0(%e: f32):
    %n = arith.truncf %e : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.convolution %h, %k {stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 3, 3>, post_padding = array<i64: 2, 2>} : (tensor<1x3x224x224xf16>, tensor<64x3x7x7xf16>) -> tensor<1x64x112x112xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<1x64x112x112xf16>
}

// -----

// For many images it is worth a launch to lay out their rows for warpgroups, which rounds what it copies.
// CHECK-LABEL: @stem_of_many
// CHECK-NOT: fused.pointwise
// CHECK: fused.convolution %x, %k
func.func @stem_of_many(%x: tensor<32x3x224x224xf32>, %k: tensor<64x3x7x7xf16>) -> tensor<32x64x112x112xf16> {
  %h = fused.pointwise %x {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<32x3x224x224xf32>) -> tensor<32x3x224x224xf16> {
  ^bb0(%e: f32):
    %n = arith.truncf %e : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.convolution %h, %k {stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 3, 3>, post_padding = array<i64: 2, 2>} : (tensor<32x3x224x224xf16>, tensor<64x3x7x7xf16>) -> tensor<32x64x112x112xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<32x64x112x112xf16>
}

// -----

// Softmax computes in float32, and rounds its result. Both readers read the input.
// CHECK-LABEL: @softmax
// CHECK-NOT: fused.pointwise
// CHECK: fused.softmax %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf16> {
// CHECK: arith.truncf
// CHECK: fused.softmax %x {axis = 0 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf16> {
func.func @softmax(%x: tensor<4x9xf32>) -> (tensor<4x9xf16>, tensor<4x9xf16>) {
  %h = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<4x9xf32>) -> tensor<4x9xf16> {
  ^bb0(%e: f32):
    %n = arith.truncf %e : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.softmax %h {axis = 1 : i64} : (tensor<4x9xf16>) -> tensor<4x9xf16>
  %z = fused.softmax %h {axis = 0 : i64} : (tensor<4x9xf16>) -> tensor<4x9xf16>
  func.return %y, %z : tensor<4x9xf16>, tensor<4x9xf16>
}

// -----

// Where somebody wants the halves themselves the launch stays, and all read what it gives.
// CHECK-LABEL: @wanted
// CHECK: [[H:%.*]] = fused.pointwise
// CHECK: fused.softmax [[H]]
func.func @wanted(%x: tensor<4x9xf32>) -> (tensor<4x9xf16>, tensor<4x9xf16>) {
  %h = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<4x9xf32>) -> tensor<4x9xf16> {
  ^bb0(%e: f32):
    %n = arith.truncf %e : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.softmax %h {axis = 1 : i64} : (tensor<4x9xf16>) -> tensor<4x9xf16>
  func.return %y, %h : tensor<4x9xf16>, tensor<4x9xf16>
}

// -----

// A product of two such tensors needs one of halves, so that it is known what is multiplied.
// CHECK-LABEL: @both
// CHECK: [[H:%.*]] = fused.pointwise
// CHECK: fused.matmul [[H]], [[H]]
func.func @both(%x: tensor<16x16xf32>) -> tensor<16x16xf16> {
  %h = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<16x16xf32>) -> tensor<16x16xf16> {
  ^bb0(%e: f32):
    %n = arith.truncf %e : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.matmul %h, %h {} : (tensor<16x16xf16>, tensor<16x16xf16>) -> tensor<16x16xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<16x16xf16>
}
