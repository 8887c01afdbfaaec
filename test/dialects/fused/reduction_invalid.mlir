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

// -----

func.func @arg_reduction_c1(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{C1: fused.arg_reduction has no axis 2: its input is tensor<4x3xf32>}}
  %y = fused.arg_reduction max %x {axis = 2 : i64} : (tensor<4x3xf32>) -> tensor<4x1xi64>
  func.return
}

// -----

func.func @arg_reduction_c2(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{C2: the result of fused.arg_reduction has integers, rank 1, not tensor<4x1xi64>}}
  %y = fused.arg_reduction max %x {axis = 1 : i64, keep_dims = false} : (tensor<4x3xf32>) -> tensor<4x1xi64>
  func.return
}
