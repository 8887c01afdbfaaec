// RUN: rt-opt %s --split-input-file -p infer-nesting,convert-loops-to-scf | filecheck %s

// CHECK-LABEL: func.func @counted
// CHECK-NOT: trt.trip_limit
// CHECK: %y = scf.for [[I:%.*]] = [[ZERO:%.*]] to [[N:%.*]] step [[ONE:%.*]] iter_args(%r = %z) -> (tensor<4xf32>)
// CHECK: [[J:%.*]] = tensor.from_elements
// CHECK: trt.require
// CHECK: %e = trt.gather %x, [[J]] : (tensor<5x4xf32>, tensor<i64>) -> tensor<4xf32>
// CHECK: %s = trt.elementwise sum %r, %e
// CHECK: scf.yield %s : tensor<4xf32>
// CHECK: func.return %y
func.func @counted(%x: tensor<5x4xf32>, %z: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  trt.trip_limit count %n {loop = @steps} : tensor<i64>
  %e = trt.iterator %x {loop = @steps} : (tensor<5x4xf32>) -> tensor<4xf32>
  %r = trt.recurrence %z {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  %s = trt.elementwise sum %r, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  trt.recurrence_next %r, %s : tensor<4xf32>, tensor<4xf32>
  %y = trt.loop_output last_value %r {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// An iteration begins with its condition; with a count both must hold.
// CHECK-LABEL: func.func @both_limits
// CHECK: scf.while ([[I:%.*]] = [[ZERO:%.*]], [[R:%.*]] = %z)
// CHECK: [[B:%.*]] = trt.elementwise less [[R]], %top
// CHECK: [[IN:%.*]] = trt.elementwise less [[I]], %n
// CHECK: [[GO:%.*]] = trt.elementwise and [[B]], [[IN]]
// CHECK: [[C:%.*]] = tensor.extract [[GO]][] : tensor<i1>
// CHECK: scf.condition([[C]]) [[I]], [[R]]
// CHECK: } do {
// CHECK: %s = trt.elementwise sum %r, %r
func.func @both_limits(%z: tensor<f32>, %top: tensor<f32>, %n: tensor<i64>) -> tensor<f32> {
  trt.trip_limit count %n {loop = @steps} : tensor<i64>
  %r = trt.recurrence %z {loop = @steps} : (tensor<f32>) -> tensor<f32>
  %b = trt.elementwise less %r, %top : (tensor<f32>, tensor<f32>) -> tensor<i1>
  trt.trip_limit while %b {loop = @steps} : tensor<i1>
  %s = trt.elementwise sum %r, %r : (tensor<f32>, tensor<f32>) -> tensor<f32>
  trt.recurrence_next %r, %s : tensor<f32>, tensor<f32>
  %y = trt.loop_output last_value %r {loop = @steps} : (tensor<f32>) -> tensor<f32>
  func.return %y : tensor<f32>
}

// -----

// tensorrt-features.md#7.15 of A7: a loop without an output is erased.
// CHECK-LABEL: func.func @unseen
// CHECK-NEXT: func.return %z
func.func @unseen(%z: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  trt.trip_limit count %n {loop = @steps} : tensor<i64>
  %r = trt.recurrence %z {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  %s = trt.unary neg %r : (tensor<4xf32>) -> tensor<4xf32>
  trt.recurrence_next %r, %s : tensor<4xf32>, tensor<4xf32>
  func.return %z : tensor<4xf32>
}
