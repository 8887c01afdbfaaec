// RUN: rt-opt %s -p split-normalizations --split-input-file | filecheck %s

// Channels lie innermost: a row is every 32nd element of an image. Its mean, its variance and its elements are apart.
// CHECK-LABEL: @instances
// CHECK:       [[M:%.*]] = fused.reduction add(%x) {access = [#fused.access<["d0", "d1", "d2", "d3"]>], reduced = #trt.dims<["600", "600"]>} : {{.*}} -> tensor<4x32xf32> {
// CHECK:         arith.extf
// CHECK:         arith.divf
// CHECK:       [[V:%.*]] = fused.reduction add(%x, [[M]]) {access = [#fused.access<["d0", "d1", "d2", "d3"]>, #fused.access<["d0", "d1"]>], reduced = #trt.dims<["600", "600"]>} : {{.*}} -> tensor<4x32xf32> {
// CHECK:       fused.pointwise %x, %s, [[M]], [[V]] {access = [#fused.access<["d0", "d1", "d2", "d3"]>, #fused.access<["d1"]>, #fused.access<["d0", "d1"]>, #fused.access<["d0", "d1"]>]}
// CHECK-NOT:   fused.normalization
func.func @instances(%x: tensor<4x32x600x600xf16, #trt.dims<["4", "32", "600", "600"], order = [0, 2, 3, 1]>>, %s: tensor<32xf32>) -> tensor<4x32x600x600xf16, #trt.dims<["4", "32", "600", "600"], order = [0, 2, 3, 1]>> {
  %y = fused.normalization %x, %s {access = [#fused.access<["d0", "d1", "d2", "d3"]>, #fused.access<["d1"]>], axes = array<i64: 2, 3>, kinds = [#fused<reduction_kind add>, #fused<reduction_kind add>]} : (tensor<4x32x600x600xf16, #trt.dims<["4", "32", "600", "600"], order = [0, 2, 3, 1]>>, tensor<32xf32>) -> tensor<4x32x600x600xf16, #trt.dims<["4", "32", "600", "600"], order = [0, 2, 3, 1]>> {
  ^bb0(%e: f16, %f: f32, %mean: f32, %variance: f32):
    %w = arith.extf %e : f16 to f32
    %d = arith.subf %w, %mean : f32
    %q = arith.divf %d, %variance : f32
    %t = arith.mulf %q, %f : f32
    %h = arith.truncf %t : f32 to f16
    fused.yield %h : f16
  } {
  ^bb0(%e: f16, %f: f32):
    %w = arith.extf %e : f16 to f32
    fused.yield %w : f32
  } {
  ^bb0(%sum: f32, %e: f16, %f: f32):
    %n = arith.constant 3.6e+05 : f32
    %m = arith.divf %sum, %n : f32
    fused.yield %m : f32
  } {
  ^bb0(%e: f16, %f: f32, %mean: f32):
    %w = arith.extf %e : f16 to f32
    %d = arith.subf %w, %mean : f32
    %s2 = arith.mulf %d, %d : f32
    fused.yield %s2 : f32
  } {
  ^bb0(%sum: f32, %e: f16, %f: f32, %mean: f32):
    %n = arith.constant 3.6e+05 : f32
    %m = arith.divf %sum, %n : f32
    fused.yield %m : f32
  }
  func.return %y : tensor<4x32x600x600xf16, #trt.dims<["4", "32", "600", "600"], order = [0, 2, 3, 1]>>
}

// -----

// Rows lie along memory: blocks read them in order.
// CHECK-LABEL: @along_memory
// CHECK:       fused.normalization
func.func @along_memory(%x: tensor<4x32x600x600xf16>, %s: tensor<32xf32>) -> tensor<4x32x600x600xf16> {
  %y = fused.normalization %x, %s {access = [#fused.access<["d0", "d1", "d2", "d3"]>, #fused.access<["d1"]>], axes = array<i64: 2, 3>, kinds = [#fused<reduction_kind add>, #fused<reduction_kind add>]} : (tensor<4x32x600x600xf16>, tensor<32xf32>) -> tensor<4x32x600x600xf16> {
  ^bb0(%e: f16, %f: f32, %mean: f32, %variance: f32):
    %w = arith.extf %e : f16 to f32
    %d = arith.subf %w, %mean : f32
    %q = arith.divf %d, %variance : f32
    %t = arith.mulf %q, %f : f32
    %h = arith.truncf %t : f32 to f16
    fused.yield %h : f16
  } {
  ^bb0(%e: f16, %f: f32):
    %w = arith.extf %e : f16 to f32
    fused.yield %w : f32
  } {
  ^bb0(%sum: f32, %e: f16, %f: f32):
    %n = arith.constant 3.6e+05 : f32
    %m = arith.divf %sum, %n : f32
    fused.yield %m : f32
  } {
  ^bb0(%e: f16, %f: f32, %mean: f32):
    %w = arith.extf %e : f16 to f32
    %d = arith.subf %w, %mean : f32
    %s2 = arith.mulf %d, %d : f32
    fused.yield %s2 : f32
  } {
  ^bb0(%sum: f32, %e: f16, %f: f32, %mean: f32):
    %n = arith.constant 3.6e+05 : f32
    %m = arith.divf %sum, %n : f32
    fused.yield %m : f32
  }
  func.return %y : tensor<4x32x600x600xf16>
}

// -----

// The threads of a block hold a row, which is read once.
// CHECK-LABEL: @held
// CHECK:       fused.normalization
func.func @held(%x: tensor<4x32x60x60xf16, #trt.dims<["4", "32", "60", "60"], order = [0, 2, 3, 1]>>, %s: tensor<32xf32>) -> tensor<4x32x60x60xf16, #trt.dims<["4", "32", "60", "60"], order = [0, 2, 3, 1]>> {
  %y = fused.normalization %x, %s {access = [#fused.access<["d0", "d1", "d2", "d3"]>, #fused.access<["d1"]>], axes = array<i64: 2, 3>, kinds = [#fused<reduction_kind add>, #fused<reduction_kind add>]} : (tensor<4x32x60x60xf16, #trt.dims<["4", "32", "60", "60"], order = [0, 2, 3, 1]>>, tensor<32xf32>) -> tensor<4x32x60x60xf16, #trt.dims<["4", "32", "60", "60"], order = [0, 2, 3, 1]>> {
  ^bb0(%e: f16, %f: f32, %mean: f32, %variance: f32):
    %w = arith.extf %e : f16 to f32
    %d = arith.subf %w, %mean : f32
    %q = arith.divf %d, %variance : f32
    %t = arith.mulf %q, %f : f32
    %h = arith.truncf %t : f32 to f16
    fused.yield %h : f16
  } {
  ^bb0(%e: f16, %f: f32):
    %w = arith.extf %e : f16 to f32
    fused.yield %w : f32
  } {
  ^bb0(%sum: f32, %e: f16, %f: f32):
    %n = arith.constant 3.6e+05 : f32
    %m = arith.divf %sum, %n : f32
    fused.yield %m : f32
  } {
  ^bb0(%e: f16, %f: f32, %mean: f32):
    %w = arith.extf %e : f16 to f32
    %d = arith.subf %w, %mean : f32
    %s2 = arith.mulf %d, %d : f32
    fused.yield %s2 : f32
  } {
  ^bb0(%sum: f32, %e: f16, %f: f32, %mean: f32):
    %n = arith.constant 3.6e+05 : f32
    %m = arith.divf %sum, %n : f32
    fused.yield %m : f32
  }
  func.return %y : tensor<4x32x60x60xf16, #trt.dims<["4", "32", "60", "60"], order = [0, 2, 3, 1]>>
}
