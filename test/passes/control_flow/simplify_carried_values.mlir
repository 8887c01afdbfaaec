// RUN: rt-opt %s --split-input-file -p simplify-carried-values | filecheck %s

// Weights that go round unchanged are read in front of the loop.
// CHECK-LABEL: func.func @weights
// CHECK: %y = scf.for {{.*}} iter_args([[A:%.*]] = %x) -> (tensor<4xf32>) {
// CHECK-NEXT: [[B:%.*]] = trt.elementwise prod [[A]], %w
// CHECK-NEXT: scf.yield [[B]] : tensor<4xf32>
// CHECK: func.return %y, %w
func.func @weights(%x: tensor<4xf32>, %w: tensor<4xf32>, %n: tensor<i64>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = tensor.extract %n[] : tensor<i64>
  %top = arith.index_cast %m : i64 to index
  %y, %u = scf.for %i = %zero to %top step %one iter_args(%a = %x, %v = %w) -> (tensor<4xf32>, tensor<4xf32>) {
    %b = trt.elementwise prod %a, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b, %v : tensor<4xf32>, tensor<4xf32>
  }
  func.return %y, %u : tensor<4xf32>, tensor<4xf32>
}

// -----

// A counter that nothing reads is erased; the state that the condition needs is kept.
// CHECK-LABEL: func.func @counter
// CHECK: scf.while ([[A:%.*]] = %x, [[C:%.*]] = %go) : (tensor<f32>, tensor<i1>) -> tensor<f32> {
// CHECK: scf.condition({{.*}}) [[A]] : tensor<f32>
// CHECK: ^bb0([[D:%.*]]: tensor<f32>):
// CHECK-NEXT: [[B:%.*]] = trt.elementwise sum [[D]], [[D]]
// CHECK-NEXT: [[LESS:%.*]] = trt.elementwise less [[B]], %top
// CHECK-NEXT: scf.yield [[B]], [[LESS]] : tensor<f32>, tensor<i1>
func.func @counter(%x: tensor<f32>, %top: tensor<f32>, %go: tensor<i1>) -> tensor<f32> {
  %zero = trt.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %one = trt.constant {value = dense<1> : tensor<i64>} : tensor<i64>
  %n, %y = scf.while (%k = %zero, %a = %x, %c = %go) : (tensor<i64>, tensor<f32>, tensor<i1>)
      -> (tensor<i64>, tensor<f32>) {
    %e = tensor.extract %c[] : tensor<i1>
    scf.condition(%e) %k, %a : tensor<i64>, tensor<f32>
  } do {
  ^bb0(%k: tensor<i64>, %a: tensor<f32>):
    %j = trt.elementwise sum %k, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %b = trt.elementwise sum %a, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %less = trt.elementwise less %b, %top : (tensor<f32>, tensor<f32>) -> tensor<i1>
    scf.yield %j, %b, %less : tensor<i64>, tensor<f32>, tensor<i1>
  }
  func.return %y : tensor<f32>
}

// -----

// What a check looks at stays, and so does what only the end reads.
// CHECK-LABEL: func.func @needed
// CHECK: scf.for {{.*}} iter_args([[A:%.*]] = %x, [[B:%.*]] = %x)
// CHECK: trt.require
func.func @needed(%x: tensor<i1>) -> tensor<i1> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y, %z = scf.for %i = %zero to %one step %one iter_args(%a = %x, %b = %x) -> (tensor<i1>, tensor<i1>) {
    trt.require %a {message = "no"} : tensor<i1>
    %c = trt.unary not %a : (tensor<i1>) -> tensor<i1>
    %d = trt.unary not %b : (tensor<i1>) -> tensor<i1>
    scf.yield %c, %d : tensor<i1>, tensor<i1>
  }
  func.return %z : tensor<i1>
}
