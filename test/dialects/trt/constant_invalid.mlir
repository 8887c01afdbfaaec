// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @constant_c1() {
  // expected-error@+1 {{C1: trt.constant needs constant dimensions, not tensor<?xf32>}}
  %c = trt.constant {value = dense<1.0> : tensor<2xf32>} : tensor<?xf32>
  func.return
}

// -----

func.func @constant_c2_count() {
  // expected-error@+1 {{C2: trt.constant holds 2 elements, its type tensor<3xf32> needs 3}}
  %c = trt.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<3xf32>
  func.return
}

// -----

func.func @constant_c2_kind() {
  // expected-error@+1 {{C2: the value of trt.constant is dense<..> or #trt.weights<..>, but it is integer}}
  %c = trt.constant {value = 1 : i64} : tensor<1xi64>
  func.return
}

// -----

func.func @constant_c3() {
  // expected-error@+1 {{C3: trt.constant has rank 9, the largest is 8}}
  %c = trt.constant {value = dense<1.0> : tensor<1x1x1x1x1x1x1x1x1xf32>} : tensor<1x1x1x1x1x1x1x1x1xf32>
  func.return
}
