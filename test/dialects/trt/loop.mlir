// RUN: rt-opt %s | rt-opt | filecheck %s
// The borders of a loop, tied together by its symbol.

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<5x4xf32>, %z: tensor<4xf32>, %n: tensor<i32>, %c: tensor<i1>) -> (tensor<4xf32>, tensor<?x4xf32>) {
  // CHECK: trt.trip_limit count %n {loop = @steps} : tensor<i32>
  trt.trip_limit count %n {loop = @steps} : tensor<i32>
  // CHECK: trt.trip_limit while %c {loop = @steps} : tensor<i1>
  trt.trip_limit while %c {loop = @steps} : tensor<i1>
  // CHECK: %e = trt.iterator %x {loop = @steps, reverse = true} : (tensor<5x4xf32>) -> tensor<4xf32>
  %e = trt.iterator %x {loop = @steps, reverse = true} : (tensor<5x4xf32>) -> tensor<4xf32>
  // CHECK: %r = trt.recurrence %z {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  %r = trt.recurrence %z {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: trt.recurrence_next %r, %e : tensor<4xf32>, tensor<4xf32>
  trt.recurrence_next %r, %e : tensor<4xf32>, tensor<4xf32>
  // CHECK: %y = trt.loop_output last_value %r {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.loop_output last_value %r {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %all = trt.loop_output concatenate %e length(%n : tensor<i32>) {loop = @steps} : (tensor<4xf32>) -> tensor<?x4xf32>
  %all = trt.loop_output concatenate %e length(%n : tensor<i32>) {loop = @steps} : (tensor<4xf32>) -> tensor<?x4xf32>
  func.return %y, %all : tensor<4xf32>, tensor<?x4xf32>
}
