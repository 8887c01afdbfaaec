// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda},map-parallel-to-threads" --split-input-file -t numba-cuda | filecheck %s

// Only halves are made of what the function gives: it has no branches.
// CHECK: expm1_closely(
func.func @rounded(%x: tensor<1000x7xf16>) -> tensor<1000x7xf16> {
  %y = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<1000x7xf16>) -> tensor<1000x7xf16> {
  ^bb0(%e: f16):
    %w = arith.extf %e : f16 to f32
    %z = arith.constant 0.0 : f32
    %m = math.expm1 %w : f32
    %p = arith.cmpf oge, %w, %z : f32
    %s = arith.select %p, %w, %m : f32
    %r = arith.truncf %s : f32 to f16
    fused.yield %r : f16
  }
  func.return %y : tensor<1000x7xf16>
}

// -----

// The result is compared as well: its last bits decide.
// CHECK-NOT: closely
// CHECK: expm1(
func.func @compared(%x: tensor<1000x7xf16>) -> tensor<1000x7xf16> {
  %y = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<1000x7xf16>) -> tensor<1000x7xf16> {
  ^bb0(%e: f16):
    %w = arith.extf %e : f16 to f32
    %z = arith.constant 0.5 : f32
    %m = math.expm1 %w : f32
    %p = arith.cmpf oge, %m, %z : f32
    %s = arith.select %p, %w, %m : f32
    %r = arith.truncf %s : f32 to f16
    fused.yield %r : f16
  }
  func.return %y : tensor<1000x7xf16>
}

// -----

// Single precision keeps all of its bits.
// CHECK-NOT: closely
// CHECK: log1p(
func.func @single(%x: tensor<1000x7xf32>) -> tensor<1000x7xf32> {
  %y = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<1000x7xf32>) -> tensor<1000x7xf32> {
  ^bb0(%e: f32):
    %m = math.log1p %e : f32
    fused.yield %m : f32
  }
  func.return %y : tensor<1000x7xf32>
}
