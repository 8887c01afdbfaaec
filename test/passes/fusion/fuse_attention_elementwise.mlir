// RUN: rt-opt %s --split-input-file -p fuse-attention-elementwise | filecheck %s

// What follows in the network's own order is the epilogue, whose rounding to half precision is left out.
// CHECK-LABEL: @rounded
// CHECK: %z = fused.attention %q, %k, %v {{.*}} -> tensor<2x5x16xi8> {
// CHECK: } {
// CHECK-NEXT: ^bb0([[R:%.*]]: f32):
// CHECK-NEXT: [[I:%.*]] = arith.fptosi [[R]] : f32 to i8
// CHECK-NEXT: fused.yield [[I]] : i8
// CHECK-NOT: fused.pointwise
func.func @rounded(%q: tensor<2x5x16xf16>, %k: tensor<2x7x16xf16>, %v: tensor<2x7x16xf16>) -> tensor<2x5x16xi8> {
  %y = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["7", "16"]>} : (tensor<2x5x16xf16>, tensor<2x7x16xf16>, tensor<2x7x16xf16>) -> tensor<2x5x16xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %z = fused.pointwise %y {access = [#fused.access<["d0", "d1", "d2"]>]} : (tensor<2x5x16xf16>) -> tensor<2x5x16xi8> {
  ^bb0(%e: f16):
    %w = arith.extf %e : f16 to f32
    %i = arith.fptosi %w : f32 to i8
    fused.yield %i : i8
  }
  func.return %z : tensor<2x5x16xi8>
}

// -----

// Another reader takes the result as it is.
// CHECK-LABEL: @read_twice
// CHECK: fused.attention {{.*}} -> tensor<2x5x16xf16> {
// CHECK: fused.pointwise
func.func @read_twice(%q: tensor<2x5x16xf16>, %k: tensor<2x7x16xf16>, %v: tensor<2x7x16xf16>) -> (tensor<2x5x16xf16>, tensor<2x5x16xf16>) {
  %y = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["7", "16"]>} : (tensor<2x5x16xf16>, tensor<2x7x16xf16>, tensor<2x7x16xf16>) -> tensor<2x5x16xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %z = fused.pointwise %y {access = [#fused.access<["d0", "d1", "d2"]>]} : (tensor<2x5x16xf16>) -> tensor<2x5x16xf16> {
  ^bb0(%e: f16):
    %n = arith.negf %e : f16
    fused.yield %n : f16
  }
  func.return %y, %z : tensor<2x5x16xf16>, tensor<2x5x16xf16>
}
