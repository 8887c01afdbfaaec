// RUN: rt-opt %s | rt-opt | filecheck %s
// RUN: rt-opt %s --run=reference
// RUN: rt-opt %s --run=cpu

// CHECK-LABEL: func.func @repeated
func.func @repeated() {
  %x = check.input {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  // CHECK: trt.broadcast %x {size = #trt.dims<["3", "2"]>} : (tensor<1x2xf32>) -> tensor<3x2xf32>
  %y = trt.broadcast %x {size = #trt.dims<["3", "2"]>} : (tensor<1x2xf32>) -> tensor<3x2xf32>
  %e = trt.constant {value = dense<[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
  check.expect_close %y, %e : tensor<3x2xf32>, tensor<3x2xf32>
  func.return
}

func.func @columns() {
  %x = check.input {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %y = trt.broadcast %x {size = #trt.dims<["2", "3"]>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %e = trt.constant {value = dense<[[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]> : tensor<2x3xf32>} : tensor<2x3xf32>
  check.expect_close %y, %e : tensor<2x3xf32>, tensor<2x3xf32>
  func.return
}

// CHECK-LABEL: func.func @named
func.func @named(%x: tensor<?x3xf32, #trt.dims<["m", "3"]>>, %y: tensor<?x3xf32, #trt.dims<["n", "3"]>>) {
  // CHECK: trt.broadcast %x {size = #trt.dims<["broadcast(m, n)", "3"]>} : {{.*}} -> tensor<?x3xf32, #trt.dims<["broadcast(m, n)", "3"]>>
  %z = trt.broadcast %x {size = #trt.dims<["broadcast(m, n)", "3"]>} : (tensor<?x3xf32, #trt.dims<["m", "3"]>>) -> tensor<?x3xf32, #trt.dims<["broadcast(m, n)", "3"]>>
  func.return
}
