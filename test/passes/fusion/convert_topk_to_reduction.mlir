// RUN: rt-opt %s --split-input-file -p convert-topk-to-reduction,eliminate-dead-layers,verify-dominance | filecheck %s

// The element and its place are one number of 64 bits; the maximum has the first place of the largest element.
// CHECK-LABEL: @place
// CHECK-NOT: fused.topk
// CHECK: fused.reduction max(%x) {access = [#fused.access<["d0", "d3", "d2"]>], reduced = #trt.dims<["9"]>} : (tensor<4x9x5xf32>) -> tensor<4x1x5xi64>
// CHECK: arith.shli {{.*}} : i64
// CHECK: fused.index {dim = 3 : i64}
func.func @place(%x: tensor<4x9x5xf32>) -> tensor<4x1x5xi64> {
  %v, %i = fused.topk max %x {axis = 1 : i64} : (tensor<4x9x5xf32>) -> (tensor<4x1x5xf32>, tensor<4x1x5xi64>)
  func.return %i : tensor<4x1x5xi64>
}

// -----

// A half and a place in a row that is not longer than 65536 are one number of 32 bits.
// CHECK-LABEL: @short_rows
// CHECK: fused.reduction max(%x)
// CHECK: arith.shli {{.*}} : i32
func.func @short_rows(%x: tensor<4x9xf16>) -> tensor<4x1xi32> {
  %v, %i = fused.topk min %x {axis = 1 : i64} : (tensor<4x9xf16>) -> (tensor<4x1xf16>, tensor<4x1xi32>)
  func.return %i : tensor<4x1xi32>
}

// -----

// The element is read as well, there are two of them, or they have no order in 32 bits.
// CHECK-LABEL: @others
// CHECK-COUNT-3: fused.topk
func.func @others(%x: tensor<4x9xf32>, %d: tensor<4x9xf64>) -> (tensor<4x1xf32>, tensor<4x1xi64>, tensor<4x2xi64>, tensor<4x1xi64>) {
  %v, %i = fused.topk max %x {axis = 1 : i64} : (tensor<4x9xf32>) -> (tensor<4x1xf32>, tensor<4x1xi64>)
  %w, %j = fused.topk max %x {axis = 1 : i64} : (tensor<4x9xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  %u, %k = fused.topk max %d {axis = 1 : i64} : (tensor<4x9xf64>) -> (tensor<4x1xf64>, tensor<4x1xi64>)
  func.return %v, %i, %j, %k : tensor<4x1xf32>, tensor<4x1xi64>, tensor<4x2xi64>, tensor<4x1xi64>
}
