// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @reduction_c1(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{C1: fused.reduction has 1 inputs and 0 accesses}}
  %y = fused.reduction add(%x) {access = [], reduced = #trt.dims<["3"]>} : (tensor<4x3xf32>) -> tensor<4xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}

// -----

func.func @reduction_c2(%x: tensor<4x3xf16>) {
  // expected-error@+1 {{the region yields (f16), expected (f32)}}
  %y = fused.reduction add(%x) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["3"]>} : (tensor<4x3xf16>) -> tensor<4xf32> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  } {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}

// -----

func.func @reduction_c3(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{C3: fused.reduction and combines integers or booleans, not f32}}
  %y = fused.reduction and(%x) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["3"]>} : (tensor<4x3xf32>) -> tensor<4xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}
