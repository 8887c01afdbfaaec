// RUN: rt-opt %s | rt-opt | filecheck %s
// Values known at build time.

// CHECK-LABEL: func.func @dense
func.func @dense() {
  // CHECK: %c = trt.constant {value = dense<[1.000000e+00, 2.500000e+00]> : tensor<2xf32>} : tensor<2xf32>
  %c = trt.constant {value = dense<[1.000000e+00, 2.500000e+00]> : tensor<2xf32>} : tensor<2xf32>
  func.return
}

// CHECK-LABEL: func.func @splat
func.func @splat() {
  // CHECK: %c = trt.constant {value = dense<7> : tensor<3x3xi64>} : tensor<3x3xi64>
  %c = trt.constant {value = dense<7> : tensor<3x3xi64>} : tensor<3x3xi64>
  func.return
}

// CHECK-LABEL: func.func @in_the_store
func.func @in_the_store() {
  // CHECK: %c = trt.constant {value = #trt.weights<"conv1.weight", "9f86d081">} : tensor<64x3x7x7xf32>
  %c = trt.constant {value = #trt.weights<"conv1.weight", "9f86d081">} : tensor<64x3x7x7xf32>
  func.return
}
