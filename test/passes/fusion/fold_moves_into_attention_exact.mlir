// RUN: rt-opt %s -p "fold-moves-into-attention{exact=true},verify-dominance" | filecheck %s

// Without the right to reassociate the factor of queries stays where it is.
// CHECK-LABEL: @scaled
// CHECK: arith.mulf
// CHECK: fused.attention
// CHECK-NOT: arith.mulf
// CHECK: func.return
func.func @scaled(%q: tensor<5x2x16xf16>, %k: tensor<2x5x16xf16>) -> tensor<2x5x16xf16> {
  %t = fused.pointwise %q {access = [#fused.access<["d1", "d0", "d2"]>]} : (tensor<5x2x16xf16>) -> tensor<2x5x16xf16> {
  ^bb0(%e: f16):
    %w = arith.extf %e : f16 to f32
    %c = arith.constant 1.250000e-01 : f32
    %p = arith.mulf %w, %c : f32
    %n = arith.truncf %p : f32 to f16
    fused.yield %n : f16
  }
  %a = fused.attention %t, %k, %k {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["5", "16"]>} : (tensor<2x5x16xf16>, tensor<2x5x16xf16>, tensor<2x5x16xf16>) -> tensor<2x5x16xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return %a : tensor<2x5x16xf16>
}
