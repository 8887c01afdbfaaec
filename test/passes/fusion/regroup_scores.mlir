// RUN: rt-opt %s --split-input-file -p regroup-scores,verify-dominance | filecheck %s

// A mask for each of four windows is added to scores of images times windows; the result is transposed and viewed.
// CHECK-LABEL: @windows
// CHECK: [[Q:%.*]] = fused.view %q : (tensor<8x3x5x16xf16>) -> tensor<2x4x3x5x16xf16>
// CHECK: [[K:%.*]] = fused.view %k : (tensor<8x3x5x16xf16>) -> tensor<2x4x3x5x16xf16>
// CHECK: [[V:%.*]] = fused.view %v : (tensor<8x3x5x16xf16>) -> tensor<2x4x3x5x16xf16>
// CHECK: [[S:%.*]] = fused.matmul [[Q]], [[K]] {transpose_rhs = true} {{.*}} -> tensor<2x4x3x5x5xf16>
// CHECK: [[B:%.*]] = fused.pointwise [[S]], %b {access = [#fused.access<["d0", "d1", "d2", "d3", "d4"]>, #fused.access<["0", "d2", "d3", "d4"]>]}
// CHECK: [[A:%.*]] = fused.pointwise [[B]], %m {access = [#fused.access<["d0", "d1", "d2", "d3", "d4"]>, #fused.access<["0", "d1", "0", "d3", "d4"]>]}
// CHECK: [[W:%.*]] = fused.softmax [[A]] {axis = 4 : i64}
// CHECK: [[R:%.*]] = fused.matmul [[W]], [[V]] {{.*}} -> tensor<2x4x3x5x16xf16>
// CHECK: [[T:%.*]] = fused.pointwise [[R]] {access = [#fused.access<["d0", "d1", "d3", "d2", "d4"]>]} {{.*}} -> tensor<2x4x5x3x16xf16>
// CHECK: [[Y:%.*]] = fused.view [[T]] : (tensor<2x4x5x3x16xf16>) -> tensor<8x5x3x16xf16>
// CHECK: func.return [[Y]]
func.func @windows(%q: tensor<8x3x5x16xf16>, %k: tensor<8x3x5x16xf16>, %v: tensor<8x3x5x16xf16>, %b: tensor<1x3x5x5xf16>, %m: tensor<1x4x1x5x5xf16>) -> tensor<8x5x3x16xf16> {
  %s = fused.matmul %q, %k {transpose_rhs = true} : (tensor<8x3x5x16xf16>, tensor<8x3x5x16xf16>) -> tensor<8x3x5x5xf16> {
  ^bb0(%e: f32):
    %n = arith.truncf %e : f32 to f16
    fused.yield %n : f16
  }
  %p = fused.pointwise %s, %b {access = [#fused.access<["d0", "d1", "d2", "d3"]>, #fused.access<["0", "d1", "d2", "d3"]>]} : (tensor<8x3x5x5xf16>, tensor<1x3x5x5xf16>) -> tensor<8x3x5x5xf16> {
  ^bb0(%e: f16, %f: f16):
    %n = arith.addf %e, %f : f16
    fused.yield %n : f16
  }
  %long = fused.view %p : (tensor<8x3x5x5xf16>) -> tensor<2x4x3x5x5xf16>
  %a = fused.pointwise %long, %m {access = [#fused.access<["d0", "d1", "d2", "d3", "d4"]>, #fused.access<["0", "d1", "0", "d3", "d4"]>]} : (tensor<2x4x3x5x5xf16>, tensor<1x4x1x5x5xf16>) -> tensor<2x4x3x5x5xf16> {
  ^bb0(%e: f16, %f: f16):
    %n = arith.addf %e, %f : f16
    fused.yield %n : f16
  }
  %back = fused.view %a : (tensor<2x4x3x5x5xf16>) -> tensor<8x3x5x5xf16>
  %w = fused.softmax %back {axis = 3 : i64} : (tensor<8x3x5x5xf16>) -> tensor<8x3x5x5xf16>
  %r = fused.matmul %w, %v : (tensor<8x3x5x5xf16>, tensor<8x3x5x16xf16>) -> tensor<8x3x5x16xf16> {
  ^bb0(%e: f32):
    %n = arith.truncf %e : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.pointwise %r {access = [#fused.access<["d0", "d2", "d1", "d3"]>]} : (tensor<8x3x5x16xf16>) -> tensor<8x5x3x16xf16> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  }
  func.return %y : tensor<8x5x3x16xf16>
}

// -----

// A view that splits the keys is none of the batch.
// CHECK-LABEL: @keys
// CHECK: fused.matmul {{.*}} -> tensor<8x5x6xf32>
// CHECK: fused.view {{.*}} -> tensor<8x5x2x3xf32>
func.func @keys(%q: tensor<8x5x16xf32>, %k: tensor<8x16x6xf32>, %v: tensor<8x6x16xf32>, %m: tensor<1x1x2x3xf32>) -> tensor<8x5x16xf32> {
  %s = fused.matmul %q, %k : (tensor<8x5x16xf32>, tensor<8x16x6xf32>) -> tensor<8x5x6xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %long = fused.view %s : (tensor<8x5x6xf32>) -> tensor<8x5x2x3xf32>
  %a = fused.pointwise %long, %m {access = [#fused.access<["d0", "d1", "d2", "d3"]>, #fused.access<["0", "0", "d2", "d3"]>]} : (tensor<8x5x2x3xf32>, tensor<1x1x2x3xf32>) -> tensor<8x5x2x3xf32> {
  ^bb0(%e: f32, %f: f32):
    %n = arith.addf %e, %f : f32
    fused.yield %n : f32
  }
  %back = fused.view %a : (tensor<8x5x2x3xf32>) -> tensor<8x5x6xf32>
  %w = fused.softmax %back {axis = 2 : i64} : (tensor<8x5x6xf32>) -> tensor<8x5x6xf32>
  %y = fused.matmul %w, %v : (tensor<8x5x6xf32>, tensor<8x6x16xf32>) -> tensor<8x5x16xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  func.return %y : tensor<8x5x16xf32>
}
