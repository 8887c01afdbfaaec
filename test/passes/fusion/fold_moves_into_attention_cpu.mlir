// RUN: rt-opt %s --split-input-file -p "fold-moves-into-attention{target=cpu},verify-dominance" | filecheck %s

// Vectors of columns are stored: the transpose that puts queries last stays.
// CHECK-LABEL: @queries_last
// CHECK: [[A:%.*]] = fused.attention %q, %k, %v {access
// CHECK-NOT: order
// CHECK: fused.pointwise [[A]] {access = [#fused.access<["d0", "d2", "d1"]>]}
func.func @queries_last(%q: tensor<2x5x16xf32>, %k: tensor<2x5x16xf32>, %v: tensor<2x5x16xf32>) -> tensor<2x16x5xf32> {
  %a = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["5", "16"]>} : (tensor<2x5x16xf32>, tensor<2x5x16xf32>, tensor<2x5x16xf32>) -> tensor<2x5x16xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %y = fused.pointwise %a {access = [#fused.access<["d0", "d2", "d1"]>]} : (tensor<2x5x16xf32>) -> tensor<2x16x5xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  func.return %y : tensor<2x16x5xf32>
}

// -----

// A single query lies behind the columns without parting them.
// CHECK-LABEL: @one_query
// CHECK-NEXT: [[A:%.*]] = fused.attention {{.*}} order = array<i64: 0, 2, 1>}
// CHECK: func.return [[A]]
func.func @one_query(%q: tensor<2x1x16xf32>, %k: tensor<2x5x16xf32>, %v: tensor<2x5x16xf32>) -> tensor<2x16x1xf32> {
  %a = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["5", "16"]>} : (tensor<2x1x16xf32>, tensor<2x5x16xf32>, tensor<2x5x16xf32>) -> tensor<2x1x16xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %y = fused.pointwise %a {access = [#fused.access<["d0", "d2", "d1"]>]} : (tensor<2x1x16xf32>) -> tensor<2x16x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  func.return %y : tensor<2x16x1xf32>
}
