// RUN: rt-opt %s --split-input-file -p fold-causal-mask,eliminate-dead-layers | filecheck %s

// CHECK-LABEL: @added
// CHECK: fused.attention %q, %k, %v {access = [{{[^:]*}}, last_key = #fused.access<["d1"]>
// CHECK: [[R:%.*]] = arith.mulf
// CHECK-NEXT: fused.yield [[R]]
func.func @added(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %m = trt.constant {value = dense<[[0.0, -1.0e9, -3.0e38], [0.0, 0.0, -3.0e38], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>} : tensor<3x3xf32>
  %y = fused.attention %q, %k, %v, %m {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d1", "d2"]>], reduced = #trt.dims<["3", "4"]>} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<3x3xf32>) -> tensor<2x3x4xf32> {
  ^bb0(%s: f32, %e: f32):
    %c = arith.constant 0.5 : f32
    %r = arith.mulf %s, %c : f32
    %t = arith.addf %r, %e : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: @chosen
// CHECK: fused.attention %q, %k, %v {access = [{{[^:]*}}, last_key = #fused.access<["d1"]>
// CHECK: [[R:%.*]] = arith.mulf
// CHECK-NEXT: fused.yield [[R]]
func.func @chosen(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %m = trt.constant {value = dense<[[[true, false, false], [true, true, false], [true, true, true]]]> : tensor<1x3x3xi1>} : tensor<1x3x3xi1>
  %y = fused.attention %q, %k, %v, %m {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["0", "d1", "d2"]>], reduced = #trt.dims<["3", "4"]>} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<1x3x3xi1>) -> tensor<2x3x4xf32> {
  ^bb0(%s: f32, %e: i1):
    %c = arith.constant 0.5 : f32
    %r = arith.mulf %s, %c : f32
    %h = arith.constant 0xFF800000 : f32
    %t = arith.select %e, %r, %h : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: @hidden
// CHECK: fused.attention %q, %k, %v {access = [{{[^:]*}}, last_key = #fused.access<["d1"]>
// CHECK: [[R:%.*]] = arith.mulf
// CHECK-NEXT: fused.yield [[R]]
func.func @hidden(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %m = trt.constant {value = dense<[[false, true, true], [false, false, true], [false, false, false]]> : tensor<3x3xi1>} : tensor<3x3xi1>
  %y = fused.attention %q, %k, %v, %m {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d1", "d2"]>], reduced = #trt.dims<["3", "4"]>} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<3x3xi1>) -> tensor<2x3x4xf32> {
  ^bb0(%s: f32, %e: i1):
    %c = arith.constant 0.5 : f32
    %r = arith.mulf %s, %c : f32
    %h = arith.constant -3.0e38 : f32
    %t = arith.select %e, %h, %r : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: @later
// CHECK: fused.attention %q, %k, %v {access = [{{[^:]*}}, last_key = #fused.access<["d1 + 1"]>
// CHECK: [[R:%.*]] = arith.mulf
// CHECK-NEXT: fused.yield [[R]]
func.func @later(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %m = trt.constant {value = dense<[[true, true, false], [true, true, true], [true, true, true]]> : tensor<3x3xi1>} : tensor<3x3xi1>
  %y = fused.attention %q, %k, %v, %m {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d1", "d2"]>], reduced = #trt.dims<["3", "4"]>} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<3x3xi1>) -> tensor<2x3x4xf32> {
  ^bb0(%s: f32, %e: i1):
    %c = arith.constant 0.5 : f32
    %r = arith.mulf %s, %c : f32
    %h = arith.constant 0xFF800000 : f32
    %t = arith.select %e, %r, %h : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x3x4xf32>
}

// -----

// Numbers that leave some weight.
// CHECK-LABEL: @a_bias
// CHECK: fused.attention %q, %k, %v, %m
// CHECK-NOT: last_key
// CHECK: func.return
func.func @a_bias(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %m = trt.constant {value = dense<[[0.0, -1.0, -2.0], [0.0, 0.0, -1.0], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>} : tensor<3x3xf32>
  %y = fused.attention %q, %k, %v, %m {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d1", "d2"]>], reduced = #trt.dims<["3", "4"]>} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<3x3xf32>) -> tensor<2x3x4xf32> {
  ^bb0(%s: f32, %e: f32):
    %c = arith.constant 0.5 : f32
    %r = arith.mulf %s, %c : f32
    %t = arith.addf %r, %e : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x3x4xf32>
}

// -----

// The last query does not see the first key.
// CHECK-LABEL: @a_window
// CHECK: fused.attention %q, %k, %v, %m
// CHECK-NOT: last_key
// CHECK: func.return
func.func @a_window(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %m = trt.constant {value = dense<[[true, false, false], [true, true, false], [false, true, true]]> : tensor<3x3xi1>} : tensor<3x3xi1>
  %y = fused.attention %q, %k, %v, %m {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d1", "d2"]>], reduced = #trt.dims<["3", "4"]>} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<3x3xi1>) -> tensor<2x3x4xf32> {
  ^bb0(%s: f32, %e: i1):
    %c = arith.constant 0.5 : f32
    %r = arith.mulf %s, %c : f32
    %h = arith.constant 0xFF800000 : f32
    %t = arith.select %e, %r, %h : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x3x4xf32>
}

// -----

// The first query sees nothing.
// CHECK-LABEL: @nothing_seen
// CHECK: fused.attention %q, %k, %v, %m
// CHECK-NOT: last_key
// CHECK: func.return
func.func @nothing_seen(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %m = trt.constant {value = dense<[[false, false, false], [true, false, false], [true, true, false]]> : tensor<3x3xi1>} : tensor<3x3xi1>
  %y = fused.attention %q, %k, %v, %m {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d1", "d2"]>], reduced = #trt.dims<["3", "4"]>} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<3x3xi1>) -> tensor<2x3x4xf32> {
  ^bb0(%s: f32, %e: i1):
    %c = arith.constant 0.5 : f32
    %r = arith.mulf %s, %c : f32
    %h = arith.constant 0xFF800000 : f32
    %t = arith.select %e, %r, %h : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x3x4xf32>
}

// -----

// A mask that hides nothing is no triangle.
// CHECK-LABEL: @everything_seen
// CHECK: fused.attention %q, %k, %v, %m
// CHECK-NOT: last_key
// CHECK: func.return
func.func @everything_seen(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %m = trt.constant {value = dense<true> : tensor<3x3xi1>} : tensor<3x3xi1>
  %y = fused.attention %q, %k, %v, %m {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d1", "d2"]>], reduced = #trt.dims<["3", "4"]>} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<3x3xi1>) -> tensor<2x3x4xf32> {
  ^bb0(%s: f32, %e: i1):
    %c = arith.constant 0.5 : f32
    %r = arith.mulf %s, %c : f32
    %h = arith.constant 0xFF800000 : f32
    %t = arith.select %e, %r, %h : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x3x4xf32>
}

// -----

// Read the other way round, keys see later queries.
// CHECK-LABEL: @transposed
// CHECK: fused.attention %q, %k, %v, %m
// CHECK-NOT: last_key
// CHECK: func.return
func.func @transposed(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %m = trt.constant {value = dense<[[0.0, -3.0e38, -3.0e38], [0.0, 0.0, -3.0e38], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>} : tensor<3x3xf32>
  %y = fused.attention %q, %k, %v, %m {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d2", "d1"]>], reduced = #trt.dims<["3", "4"]>} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<3x3xf32>) -> tensor<2x3x4xf32> {
  ^bb0(%s: f32, %e: f32):
    %c = arith.constant 0.5 : f32
    %r = arith.mulf %s, %c : f32
    %t = arith.addf %r, %e : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x3x4xf32>
}

// -----

// The mask is not the end of the score.
// CHECK-LABEL: @something_follows
// CHECK: fused.attention %q, %k, %v, %m
// CHECK-NOT: last_key
// CHECK: func.return
func.func @something_follows(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %m = trt.constant {value = dense<[[0.0, -3.0e38, -3.0e38], [0.0, 0.0, -3.0e38], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>} : tensor<3x3xf32>
  %y = fused.attention %q, %k, %v, %m {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d1", "d2"]>], reduced = #trt.dims<["3", "4"]>} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<3x3xf32>) -> tensor<2x3x4xf32> {
  ^bb0(%s: f32, %e: f32):
    %c = arith.constant 0.5 : f32
    %r = arith.mulf %s, %c : f32
    %a = arith.addf %r, %e : f32
    %t = arith.mulf %a, %a : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x3x4xf32>
}
