// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @topk_c1(%x: tensor<4xi1>) {
  // expected-error@+1 {{C1: trt.topk needs numbers, but its input is boolean}}
  %v, %i = trt.topk max %x {k = 2 : i64, axis = 0 : i64} : (tensor<4xi1>) -> (tensor<2xi1>, tensor<2xi64>)
  func.return
}

// -----

func.func @topk_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{C2: axis 1 of trt.topk is not in the range 0 to 0 of its input's axes}}
  %v, %i = trt.topk max %x {k = 2 : i64, axis = 1 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  func.return
}

// -----

func.func @topk_c3(%x: tensor<4xf32>) {
  // expected-error@+1 {{C3: k = 5 of trt.topk is not consistent with dimensions: axis 0 has length 4}}
  %v, %i = trt.topk max %x {k = 5 : i64, axis = 0 : i64} : (tensor<4xf32>) -> (tensor<5xf32>, tensor<5xi64>)
  func.return
}

// -----

func.func @topk_c3_twice(%x: tensor<4xf32>) {
  // expected-error@+1 {{C3: trt.topk has either k or a size of one dimension}}
  %v, %i = trt.topk max %x {k = 2 : i64, size = #trt.dims<["2"]>, axis = 0 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  func.return
}
