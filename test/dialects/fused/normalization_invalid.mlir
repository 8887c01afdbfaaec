// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @normalization_c1(%x: tensor<4x9xf32>) {
  // expected-error@+1 {{C1: fused.normalization has 1 operands and 2 accesses}}
  %y = fused.normalization %x {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0", "d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>]} : (tensor<4x9xf32>) -> tensor<4x9xf32> {
  ^bb0(%0: f32, %1: f32):
    fused.yield %0 : f32
  } {
  ^bb0(%2: f32):
    fused.yield %2 : f32
  } {
  ^bb0(%3: f32, %4: f32):
    fused.yield %3 : f32
  }
  func.return
}

// -----

func.func @normalization_c2(%x: tensor<4x9xf32>) {
  // expected-error@+1 {{C2: fused.normalization has 1 reductions and 1 regions for them}}
  %y = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>]} : (tensor<4x9xf32>) -> tensor<4x9xf32> {
  ^bb0(%0: f32, %1: f32):
    fused.yield %0 : f32
  } {
  ^bb0(%2: f32):
    fused.yield %2 : f32
  }
  func.return
}

// -----

func.func @normalization_c3(%x: tensor<4x9xf32>) {
  // expected-error@+1 {{the region yields (f32), expected (f16)}}
  %y = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>]} : (tensor<4x9xf32>) -> tensor<4x9xf16> {
  ^bb0(%0: f32, %1: f32):
    fused.yield %0 : f32
  } {
  ^bb0(%2: f32):
    fused.yield %2 : f32
  } {
  ^bb0(%3: f32, %4: f32):
    fused.yield %3 : f32
  }
  func.return
}

// -----

func.func @normalization_c4(%x: tensor<4x9xf32>) {
  // expected-error@+1 {{C4: fused.normalization has axes [2] of tensor<4x9xf32>}}
  %y = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 2>, kinds = [#fused<reduction_kind add>]} : (tensor<4x9xf32>) -> tensor<4x9xf32> {
  ^bb0(%0: f32, %1: f32):
    fused.yield %0 : f32
  } {
  ^bb0(%2: f32):
    fused.yield %2 : f32
  } {
  ^bb0(%3: f32, %4: f32):
    fused.yield %3 : f32
  }
  func.return
}

// -----

func.func @normalization_c5(%x: tensor<4x9xf32>) {
  // expected-error@+1 {{C5: the end of a reduction of fused.normalization uses an input that differs within the row}}
  %y = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>]} : (tensor<4x9xf32>) -> tensor<4x9xf32> {
  ^bb0(%0: f32, %1: f32):
    fused.yield %0 : f32
  } {
  ^bb0(%2: f32):
    fused.yield %2 : f32
  } {
  ^bb0(%3: f32, %4: f32):
    fused.yield %4 : f32
  }
  func.return
}

// -----

func.func @normalization_c4_reduced(%x: tensor<4x9xf32>) {
  // expected-error@+1 {{C4: fused.normalization has axes [0] of tensor<4xf32> and rows of}}
  %y = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 0>, kinds = [#fused<reduction_kind add>], reduced = #trt.dims<["9"]>} : (tensor<4x9xf32>) -> tensor<4xf32> {
  ^bb0(%0: f32, %1: f32):
    fused.yield %1 : f32
  } {
  ^bb0(%2: f32):
    fused.yield %2 : f32
  } {
  ^bb0(%3: f32, %4: f32):
    fused.yield %3 : f32
  }
  func.return
}

// -----

func.func @normalization_c5_reduced(%x: tensor<4x9xf32>) {
  // expected-error@+1 {{C5: the body of fused.normalization uses an input that differs within the row}}
  %y = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>], reduced = #trt.dims<["9"]>} : (tensor<4x9xf32>) -> tensor<4xf32> {
  ^bb0(%0: f32, %1: f32):
    fused.yield %0 : f32
  } {
  ^bb0(%2: f32):
    fused.yield %2 : f32
  } {
  ^bb0(%3: f32, %4: f32):
    fused.yield %3 : f32
  }
  func.return
}

// -----

func.func @normalization_c6(%x: tensor<4x9xf32>) {
  // expected-error@+1 {{C6: the results of fused.normalization differ in dimensions}}
  %y, %z = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>]} : (tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<9x4xf32>) {
  ^bb0(%0: f32, %1: f32):
    fused.yield %0, %1 : f32, f32
  } {
  ^bb0(%2: f32):
    fused.yield %2 : f32
  } {
  ^bb0(%3: f32, %4: f32):
    fused.yield %3 : f32
  }
  func.return
}
