// RUN: rt-opt %s --split-input-file --load-pass-plugin=%S/hard_swish_plugin.py -p fuse-hard-swish,dce --remarks --print-debuginfo 2>&1 | filecheck %s

// CHECK: remark: fuse-hard-swish: applied: add + clip + mul + div (trt.activation)
// CHECK: remark: fuse-hard-swish: applied: add + clip + div + mul (trt.activation)
// CHECK: remark: fuse-hard-swish: declined: mul (trt.elementwise): add has other readers
// CHECK: remark: fuse-hard-swish: declined: div (trt.elementwise): the constant is 4, not 3

// CHECK-LABEL: @product_first
// CHECK-NEXT: %y = trt.activation hard_swish %x {{.*}} loc(fused["add", "clip", "mul", "div"])
// CHECK-NEXT: func.return %y
func.func @product_first(%x: tensor<4xf32>) -> tensor<4xf32> {
  %three = trt.constant {value = dense<3.0> : tensor<1xf32>} : tensor<1xf32>
  %six = trt.constant {value = dense<6.0> : tensor<1xf32>} : tensor<1xf32>
  %a = trt.elementwise sum %three, %x : (tensor<1xf32>, tensor<4xf32>) -> tensor<4xf32> loc("add")
  %c = trt.activation clip %a {alpha = 0.0, beta = 6.0} : (tensor<4xf32>) -> tensor<4xf32> loc("clip")
  %p = trt.elementwise prod %c, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("mul")
  %y = trt.elementwise div %p, %six : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32> loc("div")
  func.return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: @quotient_first
// CHECK-NEXT: %y = trt.activation hard_swish %x {{.*}} loc(fused["add", "clip", "div", "mul"])
func.func @quotient_first(%x: tensor<4xf32>) -> tensor<4xf32> {
  %three = trt.constant {value = dense<3.0> : tensor<1xf32>} : tensor<1xf32>
  %six = trt.constant {value = dense<6.0> : tensor<1xf32>} : tensor<1xf32>
  %a = trt.elementwise sum %x, %three : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32> loc("add")
  %c = trt.activation clip %a {alpha = 0.0, beta = 6.0} : (tensor<4xf32>) -> tensor<4xf32> loc("clip")
  %q = trt.elementwise div %c, %six : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32> loc("div")
  %y = trt.elementwise prod %x, %q : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("mul")
  func.return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: @read_elsewhere
// CHECK-NOT: hard_swish
// CHECK-LABEL: @other_number
func.func @read_elsewhere(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %three = trt.constant {value = dense<3.0> : tensor<1xf32>} : tensor<1xf32>
  %six = trt.constant {value = dense<6.0> : tensor<1xf32>} : tensor<1xf32>
  %a = trt.elementwise sum %x, %three : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32> loc("add")
  %c = trt.activation clip %a {alpha = 0.0, beta = 6.0} : (tensor<4xf32>) -> tensor<4xf32> loc("clip")
  %q = trt.elementwise div %c, %six : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32> loc("div")
  %y = trt.elementwise prod %x, %q : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("mul")
  func.return %y, %a : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-NOT: hard_swish
func.func @other_number(%x: tensor<4xf32>) -> tensor<4xf32> {
  %four = trt.constant {value = dense<4.0> : tensor<1xf32>} : tensor<1xf32>
  %six = trt.constant {value = dense<6.0> : tensor<1xf32>} : tensor<1xf32>
  %a = trt.elementwise sum %x, %four : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32> loc("add")
  %c = trt.activation clip %a {alpha = 0.0, beta = 6.0} : (tensor<4xf32>) -> tensor<4xf32> loc("clip")
  %p = trt.elementwise prod %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("mul")
  %y = trt.elementwise div %p, %six : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32> loc("div")
  func.return %y : tensor<4xf32>
}
