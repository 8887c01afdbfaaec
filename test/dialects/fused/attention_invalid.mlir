// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @attention_c1(%q: tensor<5x16xf32>, %k: tensor<7x16xf32>, %v: tensor<7x8xf32>) {
  // expected-error@+1 {{C1: fused.attention has 3 operands and 2 accesses}}
  %y = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d2"]>, #fused.access<["d1", "d2"]>], reduced = #trt.dims<["7", "16"]>} : (tensor<5x16xf32>, tensor<7x16xf32>, tensor<7x8xf32>) -> tensor<5x8xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return
}

// -----

func.func @attention_c2(%q: tensor<5x16xf32>, %k: tensor<7x16xf32>, %v: tensor<7x8xf32>) {
  // expected-error@+1 {{C2: fused.attention: [0, 0] is no order of 2 axes}}
  %y = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d2"]>, #fused.access<["d1", "d2"]>, #fused.access<["d1", "d3"]>], reduced = #trt.dims<["7", "16"]>, order = array<i64: 0, 0>} : (tensor<5x16xf32>, tensor<7x16xf32>, tensor<7x8xf32>) -> tensor<5x8xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return
}

// -----

func.func @attention_c3(%q: tensor<5x16xi32>, %k: tensor<7x16xf32>, %v: tensor<7x8xf32>) {
  // expected-error@+1 {{C3: fused.attention needs floating-point numbers, not tensor<5x16xi32>}}
  %y = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d2"]>, #fused.access<["d1", "d2"]>, #fused.access<["d1", "d3"]>], reduced = #trt.dims<["7", "16"]>} : (tensor<5x16xi32>, tensor<7x16xf32>, tensor<7x8xf32>) -> tensor<5x8xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return
}

// -----

func.func @attention_c4(%q: tensor<5x16xf32>, %k: tensor<7x16xf32>, %v: tensor<7x8xf32>) {
  // expected-error@+1 {{C4: fused.attention reduces keys and depth, not 1 dimensions}}
  %y = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d2"]>, #fused.access<["d1", "d2"]>, #fused.access<["d1", "d3"]>], reduced = #trt.dims<["7"]>} : (tensor<5x16xf32>, tensor<7x16xf32>, tensor<7x8xf32>) -> tensor<5x8xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return
}

// -----

func.func @attention_c5(%q: tensor<5x16xf32>, %k: tensor<7x16xf32>, %v: tensor<7x8xf32>) {
  // expected-error@+1 {{C5: fused.attention: #fused.access<["d1"]> is not d0 plus a number}}
  %y = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d2"]>, #fused.access<["d1", "d2"]>, #fused.access<["d1", "d3"]>], reduced = #trt.dims<["7", "16"]>, last_key = #fused.access<["d1"]>} : (tensor<5x16xf32>, tensor<7x16xf32>, tensor<7x8xf32>) -> tensor<5x8xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return
}
