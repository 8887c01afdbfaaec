// RUN: rt-opt %s --split-input-file -p fuse-row-results | filecheck %s

// What a residual connection reads, and what a quantised product reads: one launch.
// CHECK-LABEL: @normalized_and_rounded
// CHECK: [[N:%.*]], [[Q:%.*]] = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>]} : (tensor<4x9xf16>) -> (tensor<4x9xf16>, tensor<4x9xi8>) {
// CHECK: [[D:%.*]] = arith.divf
// CHECK-NEXT: [[H:%.*]] = arith.truncf [[D]] : f32 to f16
// CHECK-NEXT: [[I:%.*]] = arith.fptosi [[D]] : f32 to i8
// CHECK-NEXT: fused.yield [[H]], [[I]] : f16, i8
// CHECK-NOT: fused.pointwise
// CHECK: func.return [[N]], [[Q]]
func.func @normalized_and_rounded(%x: tensor<4x9xf16>) -> (tensor<4x9xf16>, tensor<4x9xi8>) {
  %n = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>]} : (tensor<4x9xf16>) -> tensor<4x9xf16> {
  ^bb0(%e: f16, %t: f32):
    %w = arith.extf %e : f16 to f32
    %d = arith.divf %w, %t : f32
    %h = arith.truncf %d : f32 to f16
    fused.yield %h : f16
  } {
  ^bb0(%e: f16):
    %w = arith.extf %e : f16 to f32
    fused.yield %w : f32
  } {
  ^bb0(%s: f32, %e: f16):
    fused.yield %s : f32
  }
  %q = fused.pointwise %n {access = [#fused.access<["d0", "d1"]>]} : (tensor<4x9xf16>) -> tensor<4x9xi8> {
  ^bb0(%e: f16):
    %w = arith.extf %e : f16 to f32
    %i = arith.fptosi %w : f32 to i8
    fused.yield %i : i8
  }
  func.return %n, %q : tensor<4x9xf16>, tensor<4x9xi8>
}

// -----

// A reader of other places, and one of another tensor besides, stay as they are.
// CHECK-LABEL: @elsewhere
// CHECK: fused.normalization {{.*}} -> tensor<4x4xf32>
// CHECK: fused.pointwise
// CHECK: fused.pointwise
func.func @elsewhere(%x: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %n = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>]} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%e: f32, %t: f32):
    %d = arith.divf %e, %t : f32
    fused.yield %d : f32
  } {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%s: f32, %e: f32):
    fused.yield %s : f32
  }
  %y = fused.pointwise %n {access = [#fused.access<["d1", "d0"]>]} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%e: f32):
    %r = arith.negf %e : f32
    fused.yield %r : f32
  }
  %z = fused.pointwise %n, %b {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0", "d1"]>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%e: f32, %f: f32):
    %r = arith.addf %e, %f : f32
    fused.yield %r : f32
  }
  func.return %y, %z : tensor<4x4xf32>, tensor<4x4xf32>
}
