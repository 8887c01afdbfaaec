// RUN: rt-opt %s --split-input-file -p fold-moves-into-attention,verify-dominance | filecheck %s

// The splitting into heads and their joining.
// CHECK-LABEL: @heads
// CHECK-NEXT: [[Y:%.*]] = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d2", "4*d1 + d4"]>, #fused.access<["d0", "d3", "4*d1 + d4"]>, #fused.access<["d0", "d3", "4*d1 + d5"]>], reduced = #trt.dims<["5", "4"]>, order = array<i64: 0, 2, 1, 3>}
// CHECK: func.return [[Y]]
func.func @heads(%q: tensor<2x5x8xf16>, %k: tensor<2x5x8xf16>, %v: tensor<2x5x8xf16>) -> tensor<2x5x2x4xf16> {
  %hq = fused.view %q : (tensor<2x5x8xf16>) -> tensor<2x5x2x4xf16>
  %tq = fused.pointwise %hq {access = [#fused.access<["d0", "d2", "d1", "d3"]>]} : (tensor<2x5x2x4xf16>) -> tensor<2x2x5x4xf16> {
  ^bb0(%eq: f16):
    fused.yield %eq : f16
  }
  %hk = fused.view %k : (tensor<2x5x8xf16>) -> tensor<2x5x2x4xf16>
  %tk = fused.pointwise %hk {access = [#fused.access<["d0", "d2", "d1", "d3"]>]} : (tensor<2x5x2x4xf16>) -> tensor<2x2x5x4xf16> {
  ^bb0(%ek: f16):
    fused.yield %ek : f16
  }
  %hv = fused.view %v : (tensor<2x5x8xf16>) -> tensor<2x5x2x4xf16>
  %tv = fused.pointwise %hv {access = [#fused.access<["d0", "d2", "d1", "d3"]>]} : (tensor<2x5x2x4xf16>) -> tensor<2x2x5x4xf16> {
  ^bb0(%ev: f16):
    fused.yield %ev : f16
  }
  %a = fused.attention %tq, %tk, %tv {access = [#fused.access<["d0", "d1", "d2", "d4"]>, #fused.access<["d0", "d1", "d3", "d4"]>, #fused.access<["d0", "d1", "d3", "d5"]>], reduced = #trt.dims<["5", "4"]>} : (tensor<2x2x5x4xf16>, tensor<2x2x5x4xf16>, tensor<2x2x5x4xf16>) -> tensor<2x2x5x4xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %y = fused.pointwise %a {access = [#fused.access<["d0", "d2", "d1", "d3"]>]} : (tensor<2x2x5x4xf16>) -> tensor<2x5x2x4xf16> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  }
  func.return %y : tensor<2x5x2x4xf16>
}

// -----

// A slice of one tensor, and a mask that is viewed and repeated.
// CHECK-LABEL: @parts
// CHECK-NEXT: fused.attention %x, %x, %x, %m {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3 + 4"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d0", "d2"]>]
func.func @parts(%x: tensor<2x5x8xf16>, %m: tensor<2x5xf16>) -> tensor<2x5x4xf16> {
  %k = fused.pointwise %x {access = [#fused.access<["d0", "d1", "d2 + 4"]>]} : (tensor<2x5x8xf16>) -> tensor<2x5x4xf16> {
  ^bb0(%e0: f16):
    fused.yield %e0 : f16
  }
  %w = fused.view %m : (tensor<2x5xf16>) -> tensor<2x1x5xf16>
  %r = fused.pointwise %w {access = [#fused.access<["d0", "0", "d2"]>]} : (tensor<2x1x5xf16>) -> tensor<2x5x5xf16> {
  ^bb0(%e1: f16):
    fused.yield %e1 : f16
  }
  %a = fused.attention %x, %k, %x, %r {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d0", "d1", "d2"]>], reduced = #trt.dims<["5", "4"]>} : (tensor<2x5x8xf16>, tensor<2x5x4xf16>, tensor<2x5x8xf16>, tensor<2x5x5xf16>) -> tensor<2x5x4xf16> {
  ^bb0(%s: f32, %b: f16):
    fused.yield %s : f32
  }
  func.return %a : tensor<2x5x4xf16>
}

// -----

// The copy puts the elements of a head side by side: it stays.
// CHECK-LABEL: @neighbours
// CHECK: [[K:%.*]] = fused.pointwise %k
// CHECK: fused.attention %q, [[K]], %v
func.func @neighbours(%q: tensor<2x5x4xf16>, %k: tensor<2x4x5xf16>, %v: tensor<2x5x4xf16>) -> tensor<2x5x4xf16> {
  %t = fused.pointwise %k {access = [#fused.access<["d0", "d2", "d1"]>]} : (tensor<2x4x5xf16>) -> tensor<2x5x4xf16> {
  ^bb0(%e0: f16):
    fused.yield %e0 : f16
  }
  %a = fused.attention %q, %t, %v {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["5", "4"]>} : (tensor<2x5x4xf16>, tensor<2x5x4xf16>, tensor<2x5x4xf16>) -> tensor<2x5x4xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return %a : tensor<2x5x4xf16>
}

// -----

// A view that joins two long axes cannot be read through; a result with two readers keeps its order.
// CHECK-LABEL: @joined
// CHECK: [[Q:%.*]] = fused.view %q
// CHECK: fused.attention [[Q]], %k, %k {access
// CHECK: fused.pointwise
func.func @joined(%q: tensor<2x3x5x4xf16>, %k: tensor<6x5x4xf16>) -> (tensor<5x6x4xf16>, tensor<6x5x4xf16>) {
  %j = fused.view %q : (tensor<2x3x5x4xf16>) -> tensor<6x5x4xf16>
  %a = fused.attention %j, %k, %k {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["5", "4"]>} : (tensor<6x5x4xf16>, tensor<6x5x4xf16>, tensor<6x5x4xf16>) -> tensor<6x5x4xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %y = fused.pointwise %a {access = [#fused.access<["d1", "d0", "d2"]>]} : (tensor<6x5x4xf16>) -> tensor<5x6x4xf16> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  }
  func.return %y, %a : tensor<5x6x4xf16>, tensor<6x5x4xf16>
}

// -----

// One sequence: the transpose reads its axis of length 1 at 0.
// CHECK-LABEL: @one_sequence
// CHECK-NEXT: fused.attention %q, %q, %q {{.*}}order = array<i64: 0, 2, 1, 3>
// CHECK-NOT: fused.pointwise
func.func @one_sequence(%q: tensor<1x2x5x4xf16>) -> tensor<1x5x2x4xf16> {
  %a = fused.attention %q, %q, %q {access = [#fused.access<["0", "d1", "d2", "d4"]>, #fused.access<["0", "d1", "d3", "d4"]>, #fused.access<["0", "d1", "d3", "d5"]>], reduced = #trt.dims<["5", "4"]>} : (tensor<1x2x5x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x4xf16>) -> tensor<1x2x5x4xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %y = fused.pointwise %a {access = [#fused.access<["0", "d2", "d1", "d3"]>]} : (tensor<1x2x5x4xf16>) -> tensor<1x5x2x4xf16> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  }
  func.return %y : tensor<1x5x2x4xf16>
}

// -----

// A function behind attention is applied in the order that is wanted, which attention writes.
// CHECK-LABEL: @quantised
// CHECK-NEXT: [[Y:%.*]] = fused.attention %q, %k, %v {{.*}}order = array<i64: 0, 2, 1, 3>} {{.*}} -> tensor<2x5x3x4xf16>
// CHECK: [[Z:%.*]] = fused.pointwise [[Y]] {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<2x5x3x4xf16>) -> tensor<2x5x3x4xi8>
// CHECK: func.return [[Z]]
func.func @quantised(%q: tensor<2x3x5x4xf16>, %k: tensor<2x3x7x4xf16>, %v: tensor<2x3x7x4xf16>) -> tensor<2x5x3x4xi8> {
  %a = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d2", "d4"]>, #fused.access<["d0", "d1", "d3", "d4"]>, #fused.access<["d0", "d1", "d3", "d5"]>], reduced = #trt.dims<["7", "4"]>} : (tensor<2x3x5x4xf16>, tensor<2x3x7x4xf16>, tensor<2x3x7x4xf16>) -> tensor<2x3x5x4xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %b = fused.pointwise %a {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<2x3x5x4xf16>) -> tensor<2x3x5x4xi8> {
  ^bb0(%e: f16):
    %i = arith.fptosi %e : f16 to i8
    fused.yield %i : i8
  }
  %c = fused.pointwise %b {access = [#fused.access<["d0", "d2", "d1", "d3"]>]} : (tensor<2x3x5x4xi8>) -> tensor<2x5x3x4xi8> {
  ^bb0(%i: i8):
    fused.yield %i : i8
  }
  func.return %c : tensor<2x5x3x4xi8>
}

// -----

// Queries that are copied and multiplied with a number: scores are.
// CHECK-LABEL: @scaled
// CHECK-NEXT: fused.attention %q, %k, %k {access = [#fused.access<["d1", "d0", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>]
// CHECK-NEXT: ^bb0([[S:%.*]]: f32):
// CHECK-NEXT: [[N:%.*]] = arith.constant 1.250000e-01 : f32
// CHECK-NEXT: [[P:%.*]] = arith.mulf [[S]], [[N]] : f32
// CHECK-NEXT: fused.yield [[P]] : f32
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

// -----

// Zero times infinity is not-a-number: such a factor stays where it is.
// CHECK-LABEL: @scaled_by_zero
// CHECK: arith.mulf
// CHECK: fused.attention
// CHECK-NOT: arith.mulf
// CHECK: func.return
func.func @scaled_by_zero(%q: tensor<2x5x16xf32>, %k: tensor<2x5x16xf32>) -> tensor<2x5x16xf32> {
  %t = fused.pointwise %q {access = [#fused.access<["d0", "d1", "d2"]>]} : (tensor<2x5x16xf32>) -> tensor<2x5x16xf32> {
  ^bb0(%e: f32):
    %c = arith.constant 0.000000e+00 : f32
    %p = arith.mulf %e, %c : f32
    fused.yield %p : f32
  }
  %a = fused.attention %t, %k, %k {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["5", "16"]>} : (tensor<2x5x16xf32>, tensor<2x5x16xf32>, tensor<2x5x16xf32>) -> tensor<2x5x16xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return %a : tensor<2x5x16xf32>
}

// -----

// The transpose of a view that joins heads: attention writes sequences in that order, and the view joins heads behind.
// CHECK-LABEL: @transposed_behind_a_view
// CHECK: [[Y:%.*]] = fused.attention {{.*}}order = array<i64: 0, 2, 1, 3>} {{.*}} -> tensor<2x5x3x4xf16>
// CHECK: [[V:%.*]] = fused.view [[Y]] : (tensor<2x5x3x4xf16>) -> tensor<2x5x12xf16>
// CHECK: func.return [[V]]
func.func @transposed_behind_a_view(%q: tensor<2x3x5x4xf16>, %k: tensor<2x3x5x4xf16>) -> tensor<2x5x12xf16> {
  %a = fused.attention %q, %k, %k {access = [#fused.access<["d0", "d1", "d2", "d4"]>, #fused.access<["d0", "d1", "d3", "d4"]>, #fused.access<["d0", "d1", "d3", "d5"]>], reduced = #trt.dims<["5", "4"]>, order = array<i64: 2, 0, 1, 3>} : (tensor<2x3x5x4xf16>, tensor<2x3x5x4xf16>, tensor<2x3x5x4xf16>) -> tensor<5x2x3x4xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %h = fused.view %a : (tensor<5x2x3x4xf16>) -> tensor<5x6x4xf16>
  %v = fused.view %h : (tensor<5x6x4xf16>) -> tensor<5x2x12xf16>
  %y = fused.pointwise %v {access = [#fused.access<["d1", "d0", "d2"]>]} : (tensor<5x2x12xf16>) -> tensor<2x5x12xf16> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  }
  func.return %y : tensor<2x5x12xf16>
}
