// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @pointwise_c1(%x: tensor<4xf32>) {
  // expected-error@+1 {{C1: fused.pointwise has 1 operands and 0 accesses}}
  %y = fused.pointwise %x {access = []} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%0: f32):
    fused.yield %0 : f32
  }
  func.return
}

// -----

func.func @pointwise_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{C2: the results of fused.pointwise differ in dimensions}}
  %y, %z = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<3xf32>) {
  ^bb0(%0: f32):
    fused.yield %0, %0 : f32, f32
  }
  func.return
}

// -----

func.func @pointwise_c3_takes(%x: tensor<4xf32>) {
  // expected-error@+1 {{the region takes (f64), expected (f32)}}
  %y = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<4xf32>) -> tensor<4xf64> {
  ^bb0(%0: f64):
    fused.yield %0 : f64
  }
  func.return
}

// -----

func.func @pointwise_c3_yields(%x: tensor<4xf32>) {
  // expected-error@+1 {{the region yields (f32), expected (f64)}}
  %y = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<4xf32>) -> tensor<4xf64> {
  ^bb0(%0: f32):
    fused.yield %0 : f32
  }
  func.return
}

// -----

func.func @access_of_another_rank(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{has 1 indices, its operand tensor<4x4xf32> has rank 2}}
  %y = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<4x4xf32>) -> tensor<4xf32> {
  ^bb0(%0: f32):
    fused.yield %0 : f32
  }
  func.return
}

// -----

func.func @access_that_is_not_linear(%x: tensor<4xf32>) {
  // expected-error@+1 {{d0*d0 is not linear in d0}}
  %y = fused.pointwise %x {access = [#fused.access<["d0*d0"]>]} : (tensor<4xf32>) -> tensor<2xf32> {
  ^bb0(%0: f32):
    fused.yield %0 : f32
  }
  func.return
}
