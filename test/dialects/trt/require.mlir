// RUN: rt-opt %s | rt-opt | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%c: tensor<i1>) {
  // CHECK: trt.require %c {message = "out of range"} : tensor<i1>
  trt.require %c {message = "out of range"} : tensor<i1>
  func.return
}
