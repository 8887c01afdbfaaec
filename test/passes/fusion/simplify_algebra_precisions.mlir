// RUN: rt-opt %s --split-input-file -p simplify-algebra | filecheck %s

// Ranges are those of the tensors that the network has: none of them goes.
// CHECK: trt.ranges
// CHECK-COUNT-2: trt.elementwise prod
module attributes {trt.ranges = {a = 4.0 : f64}} {
  func.func @ranges(%x: tensor<4xf32>) -> tensor<4xf32> {
    %two = trt.constant {value = dense<2.0> : tensor<1xf32>} : tensor<1xf32>
    %three = trt.constant {value = dense<3.0> : tensor<1xf32>} : tensor<1xf32>
    %a = trt.elementwise prod %x, %two : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
    %y = trt.elementwise prod %a, %three : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
    func.return %y : tensor<4xf32>
  }
}

// -----

// A layer that is asked for a precision is a layer of the engine.
// CHECK-LABEL: @precision
// CHECK-COUNT-2: trt.elementwise prod
func.func @precision(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = trt.constant {value = dense<2.0> : tensor<1xf32>} : tensor<1xf32>
  %three = trt.constant {value = dense<3.0> : tensor<1xf32>} : tensor<1xf32>
  %a = trt.elementwise prod %x, %two {trt.precision = "fp32"} : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %y = trt.elementwise prod %a, %three : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// The same layers without either are one.
// CHECK-LABEL: @plain
// CHECK-COUNT-1: trt.elementwise prod
// CHECK-NOT: trt.elementwise prod
func.func @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = trt.constant {value = dense<2.0> : tensor<1xf32>} : tensor<1xf32>
  %three = trt.constant {value = dense<3.0> : tensor<1xf32>} : tensor<1xf32>
  %a = trt.elementwise prod %x, %two : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %y = trt.elementwise prod %a, %three : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
