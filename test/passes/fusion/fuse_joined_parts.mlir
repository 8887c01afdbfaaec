// RUN: rt-opt %s --split-input-file -p fuse-joined-parts,verify-dominance --print-debuginfo | filecheck %s
// RUN: rt-opt %s --split-input-file -p fuse-joined-parts,sink-views,fuse-pointwise,verify-dominance | filecheck %s --check-prefix=WHOLE

// CHECK-LABEL: @halves_change_places
// CHECK: [[P:%.*]] = fused.pointwise %x {access = [#fused.access<["d0", "-4*d1 + d2 + 4"]>]} : (tensor<2x8xf32>) -> tensor<2x2x4xf32> {
// CHECK: [[N:%.*]] = arith.negf
// CHECK: [[I:%.*]] = fused.index {dim = 1 : i64}
// CHECK: arith.select {{%.*}}, [[V:%.*]], [[N]]
// CHECK: loc(fused["a", "b", "join"])
// CHECK: fused.view [[P]] : (tensor<2x2x4xf32>) -> tensor<2x8xf32>
// CHECK-NOT: fused.concat
// WHOLE-LABEL: @halves_change_places
// WHOLE: [[R:%.*]] = fused.pointwise %c, %x, %x {{.*}} -> tensor<2x2x4xf32>
// WHOLE: arith.mulf
// WHOLE: [[Y:%.*]] = fused.view [[R]] : (tensor<2x2x4xf32>) -> tensor<2x8xf32>
// WHOLE-NEXT: func.return [[Y]]
func.func @halves_change_places(%x: tensor<2x8xf32>, %c: tensor<8xf32>) -> tensor<2x8xf32> {
  %b = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<2x8xf32>) -> tensor<2x4xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  } loc("b")
  %a = fused.pointwise %x {access = [#fused.access<["d0", "d1 + 4"]>]} : (tensor<2x8xf32>) -> tensor<2x4xf32> {
  ^bb0(%v: f32):
    %n = arith.negf %v : f32
    fused.yield %n : f32
  } loc("a")
  %j = fused.concat %a, %b {axis = 1 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32> loc("join")
  %y = fused.pointwise %j, %c, %x {access = [#fused.access<["d0", "d1"]>, #fused.access<["d1"]>, #fused.access<["d0", "d1"]>]} : (tensor<2x8xf32>, tensor<8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32> {
  ^bb0(%v: f32, %w: f32, %u: f32):
    %p = arith.mulf %v, %w : f32
    %s = arith.addf %p, %u : f32
    fused.yield %s : f32
  }
  func.return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: @neighbours_change_places
// CHECK: fused.pointwise %x {access = [#fused.access<["d0", "2*d1 - d2 + 1"]>]} : (tensor<2x8xf32>) -> tensor<2x4x2xf32> {
// CHECK: arith.select
// CHECK-NOT: fused.view
func.func @neighbours_change_places(%x: tensor<2x8xf32>) -> tensor<2x4x2xf32> {
  %a = fused.pointwise %x {access = [#fused.access<["d0", "2*d1 + 1"]>]} : (tensor<2x8xf32>) -> tensor<2x4x1xf32> {
  ^bb0(%v: f32):
    %n = arith.negf %v : f32
    fused.yield %n : f32
  }
  %b = fused.pointwise %x {access = [#fused.access<["d0", "2*d1"]>]} : (tensor<2x8xf32>) -> tensor<2x4x1xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  %j = fused.concat %a, %b {axis = 2 : i64} : (tensor<2x4x1xf32>, tensor<2x4x1xf32>) -> tensor<2x4x2xf32>
  func.return %j : tensor<2x4x2xf32>
}

// -----

// Three parts at one rate and with one function need no choice.

// CHECK-LABEL: @three_of_one_kind
// CHECK: fused.pointwise %x {access = [#fused.access<["3*d0 + d1 + 1"]>]} : (tensor<12xf32>) -> tensor<3x2xf32> {
// CHECK-NOT: fused.index
// CHECK: fused.view
func.func @three_of_one_kind(%x: tensor<12xf32>) -> tensor<6xf32> {
  %a = fused.pointwise %x {access = [#fused.access<["d0 + 1"]>]} : (tensor<12xf32>) -> tensor<2xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  %b = fused.pointwise %x {access = [#fused.access<["d0 + 4"]>]} : (tensor<12xf32>) -> tensor<2xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  %c = fused.pointwise %x {access = [#fused.access<["d0 + 7"]>]} : (tensor<12xf32>) -> tensor<2xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  %j = fused.concat %a, %b, %c {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<6xf32>
  func.return %j : tensor<6xf32>
}

// -----

// CHECK-LABEL: @stays
// CHECK-COUNT-3: fused.concat
func.func @stays(%x: tensor<12xf32>, %z: tensor<12xf32>) -> (tensor<4xf32>, tensor<5xf32>, tensor<6xf32>) {
  %a = fused.pointwise %x {access = [#fused.access<["d0 + 1"]>]} : (tensor<12xf32>) -> tensor<2xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  %b = fused.pointwise %z {access = [#fused.access<["d0 + 4"]>]} : (tensor<12xf32>) -> tensor<2xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  %other_tensors = fused.concat %a, %b {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %c = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<12xf32>) -> tensor<2xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  %d = fused.pointwise %x {access = [#fused.access<["d0 + 2"]>]} : (tensor<12xf32>) -> tensor<3xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  %other_lengths = fused.concat %c, %d {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %e = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<12xf32>) -> tensor<2xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  %f = fused.pointwise %x {access = [#fused.access<["d0 + 2"]>]} : (tensor<12xf32>) -> tensor<2xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  %g = fused.pointwise %x {access = [#fused.access<["d0 + 5"]>]} : (tensor<12xf32>) -> tensor<2xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  %other_distances = fused.concat %e, %f, %g {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<6xf32>
  func.return %other_tensors, %other_lengths, %other_distances : tensor<4xf32>, tensor<5xf32>, tensor<6xf32>
}
