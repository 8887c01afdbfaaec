// RUN: rt-opt %s | rt-opt | filecheck %s
// Plugins: which one, its bytes, and the types of its results as formulas over the dimensions of the operands.

// CHECK-LABEL: func.func @one_result
func.func @one_result(%s: tensor<4xui8>, %x: tensor<?x3xf32, #trt.dims<["n", "3"]>>) {
  // CHECK: %y = fused.plugin %s, %x {plugin = "Twice", version = "2", namespace = "mine", made = [tensor<?x3xf32, #trt.dims<["2*x0.0", "3"]>>]} : (tensor<4xui8>, tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["2*n", "3"]>>
  %y = fused.plugin %s, %x {plugin = "Twice", version = "2", namespace = "mine", made = [tensor<?x3xf32, #trt.dims<["2*x0.0", "3"]>>]} : (tensor<4xui8>, tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["2*n", "3"]>>
  func.return
}

// -----

// CHECK-LABEL: func.func @several_results
func.func @several_results(%s: tensor<0xui8>, %a: tensor<2x5xf32>, %b: tensor<7xi32>) {
  // CHECK: fused.plugin %s, %a, %b {plugin = "Both", made = [tensor<?x?xf16, #trt.dims<["x0.1", "x1.0"]>>, tensor<i32>]} : (tensor<0xui8>, tensor<2x5xf32>, tensor<7xi32>) -> (tensor<5x7xf16>, tensor<i32>)
  %y, %z = fused.plugin %s, %a, %b {plugin = "Both", made = [tensor<?x?xf16, #trt.dims<["x0.1", "x1.0"]>>, tensor<i32>]} : (tensor<0xui8>, tensor<2x5xf32>, tensor<7xi32>) -> (tensor<5x7xf16>, tensor<i32>)
  func.return
}

// -----

// CHECK-LABEL: func.func @no_inputs
func.func @no_inputs(%s: tensor<0xui8>) {
  // CHECK: fused.plugin %s {plugin = "Table", made = [tensor<3xf32>]} : (tensor<0xui8>) -> tensor<3xf32>
  %y = fused.plugin %s {plugin = "Table", made = [tensor<3xf32>]} : (tensor<0xui8>) -> tensor<3xf32>
  func.return
}
