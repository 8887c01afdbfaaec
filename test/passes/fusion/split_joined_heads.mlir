// RUN: rt-opt %s --split-input-file -p split-joined-heads,fold-moves-into-attention,verify-dominance | filecheck %s

// Three heads of queries share keys and values; the position of the key keeps its meaning.
// CHECK-LABEL: @shared
// CHECK-NEXT: [[Y:%.*]] = fused.attention %q, %k, %v {access = [#fused.access<["d0", "3*d1 + d2", "d3", "d5"]>, #fused.access<["0", "d1", "d4", "d5"]>, #fused.access<["0", "d1", "d4", "d6"]>], reduced = #trt.dims<["7", "4"]>, last_key = #fused.access<["d3 + 2"]>, order = array<i64: 0, 1, 2, 3, 4>} {{.*}} -> tensor<1x2x3x5x4xf16>
// CHECK: fused.index {dim = 4 : i64}
// CHECK: fused.view [[Y]] : (tensor<1x2x3x5x4xf16>) -> tensor<1x6x5x4xf16>
func.func @shared(%q: tensor<1x6x5x4xf16>, %k: tensor<1x2x7x4xf16>, %v: tensor<1x2x7x4xf16>) -> tensor<1x6x5x4xf16> {
  %rk = fused.pointwise %k {access = [#fused.access<["d0", "d1", "d3", "d4"]>]} : (tensor<1x2x7x4xf16>) -> tensor<1x2x3x7x4xf16> {
  ^bb0(%ek: f16):
    fused.yield %ek : f16
  }
  %jk = fused.view %rk : (tensor<1x2x3x7x4xf16>) -> tensor<1x6x7x4xf16>
  %rv = fused.pointwise %v {access = [#fused.access<["d0", "d1", "d3", "d4"]>]} : (tensor<1x2x7x4xf16>) -> tensor<1x2x3x7x4xf16> {
  ^bb0(%ev: f16):
    fused.yield %ev : f16
  }
  %jv = fused.view %rv : (tensor<1x2x3x7x4xf16>) -> tensor<1x6x7x4xf16>
  %y = fused.attention %q, %jk, %jv {access = [#fused.access<["d0", "d1", "d2", "d4"]>, #fused.access<["d0", "d1", "d3", "d4"]>, #fused.access<["d0", "d1", "d3", "d5"]>], reduced = #trt.dims<["7", "4"]>, last_key = #fused.access<["d2 + 2"]>} : (tensor<1x6x5x4xf16>, tensor<1x6x7x4xf16>, tensor<1x6x7x4xf16>) -> tensor<1x6x5x4xf16> {
  ^bb0(%s: f32):
    %i = fused.index {dim = 3 : i64} : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %t = arith.addf %s, %f : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<1x6x5x4xf16>
}

// -----

// The score depends on the number of the head.
// CHECK-LABEL: @numbered_heads
// CHECK: fused.view
// CHECK: fused.view
// CHECK: fused.attention {{.*}} -> tensor<1x6x5x4xf16>
func.func @numbered_heads(%q: tensor<1x6x5x4xf16>, %k: tensor<1x2x7x4xf16>, %v: tensor<1x2x7x4xf16>) -> tensor<1x6x5x4xf16> {
  %rk = fused.pointwise %k {access = [#fused.access<["d0", "d1", "d3", "d4"]>]} : (tensor<1x2x7x4xf16>) -> tensor<1x2x3x7x4xf16> {
  ^bb0(%ek: f16):
    fused.yield %ek : f16
  }
  %jk = fused.view %rk : (tensor<1x2x3x7x4xf16>) -> tensor<1x6x7x4xf16>
  %rv = fused.pointwise %v {access = [#fused.access<["d0", "d1", "d3", "d4"]>]} : (tensor<1x2x7x4xf16>) -> tensor<1x2x3x7x4xf16> {
  ^bb0(%ev: f16):
    fused.yield %ev : f16
  }
  %jv = fused.view %rv : (tensor<1x2x3x7x4xf16>) -> tensor<1x6x7x4xf16>
  %y = fused.attention %q, %jk, %jv {access = [#fused.access<["d0", "d1", "d2", "d4"]>, #fused.access<["d0", "d1", "d3", "d4"]>, #fused.access<["d0", "d1", "d3", "d5"]>], reduced = #trt.dims<["7", "4"]>, last_key = #fused.access<["d2 + 2"]>} : (tensor<1x6x5x4xf16>, tensor<1x6x7x4xf16>, tensor<1x6x7x4xf16>) -> tensor<1x6x5x4xf16> {
  ^bb0(%s: f32):
    %i = fused.index {dim = 1 : i64} : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %t = arith.addf %s, %f : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<1x6x5x4xf16>
}

// -----

// Two sequences of 12 columns are viewed as six heads of 4: queries, keys and values are read where they lie.
// CHECK-LABEL: @sequences_and_heads
// CHECK-NEXT: [[Y:%.*]] = fused.attention %x, %x, %x {access = [#fused.access<["d2", "d0", "4*d1 + d4"]>, #fused.access<["d3", "d0", "4*d1 + d4 + 12"]>, #fused.access<["d3", "d0", "4*d1 + d5 + 24"]>]
// CHECK: fused.view [[Y]] : (tensor<5x2x3x4xf16>) -> tensor<5x6x4xf16>
func.func @sequences_and_heads(%x: tensor<5x2x36xf16>) -> tensor<5x6x4xf16> {
  %q = fused.pointwise %x {access = [#fused.access<["d0", "d1", "d2"]>]} : (tensor<5x2x36xf16>) -> tensor<5x2x12xf16> {
  ^bb0(%eq: f16):
    fused.yield %eq : f16
  }
  %k = fused.pointwise %x {access = [#fused.access<["d0", "d1", "d2 + 12"]>]} : (tensor<5x2x36xf16>) -> tensor<5x2x12xf16> {
  ^bb0(%ek: f16):
    fused.yield %ek : f16
  }
  %v = fused.pointwise %x {access = [#fused.access<["d0", "d1", "d2 + 24"]>]} : (tensor<5x2x36xf16>) -> tensor<5x2x12xf16> {
  ^bb0(%ev: f16):
    fused.yield %ev : f16
  }
  %hq = fused.view %q : (tensor<5x2x12xf16>) -> tensor<5x6x4xf16>
  %hk = fused.view %k : (tensor<5x2x12xf16>) -> tensor<5x6x4xf16>
  %hv = fused.view %v : (tensor<5x2x12xf16>) -> tensor<5x6x4xf16>
  %y = fused.attention %hq, %hk, %hv {access = [#fused.access<["d1", "d0", "d3"]>, #fused.access<["d2", "d0", "d3"]>, #fused.access<["d2", "d0", "d4"]>], reduced = #trt.dims<["5", "4"]>, order = array<i64: 1, 0, 2>} : (tensor<5x6x4xf16>, tensor<5x6x4xf16>, tensor<5x6x4xf16>) -> tensor<5x6x4xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return %y : tensor<5x6x4xf16>
}
