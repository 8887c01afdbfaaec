// RUN: not rt-opt %s -p convert-trt-to-fused 2>&1 | filecheck %s

// CHECK: layer reshape1 (trt.shuffle): its shape [?, ?] is computed at run time
func.func @main(%x: tensor<24xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
  %y = trt.shuffle %x, %s : (tensor<24xf32>, tensor<2xi64>) -> tensor<?x?xf32> loc("reshape1")
  func.return %y : tensor<?x?xf32>
}
