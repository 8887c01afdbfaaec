// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @slice_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{C1: trt.slice needs stride either as property or as operand}}
  %y = trt.slice %x {start = #trt.dims<["0"]>, size = #trt.dims<["2"]>} : (tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @slice_c2(%x: tensor<3x3xf32>) {
  // expected-error@+1 {{C2: start of trt.slice has 1 entries, its input has rank 2}}
  %y = trt.slice %x {start = #trt.dims<["0"]>, size = #trt.dims<["2", "2"]>, stride = array<i64: 1, 1>} : (tensor<3x3xf32>) -> tensor<2x2xf32>
  func.return
}

// -----

func.func @slice_c3(%x: tensor<3xf32>, %s: tensor<i64>) {
  // expected-error@+1 {{C3: the start operand of trt.slice must be a 1-D tensor of integers, but it is tensor<i64>}}
  %y = trt.slice %x start(%s : tensor<i64>) {size = #trt.dims<["2"]>, stride = array<i64: 1>} : (tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @slice_c4(%x: tensor<3xf32>) {
  // expected-error@+1 {{C4: trt.slice has a negative size: [-2]}}
  %y = trt.slice %x {start = #trt.dims<["0"]>, size = #trt.dims<["-2"]>, stride = array<i64: 1>} : (tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @slice_c5(%x: tensor<3xf32>) {
  // expected-error@+1 {{C5: trt.slice: out of bounds slice, input dimensions = [3], start = [1], size = [2], stride = [2].}}
  %y = trt.slice %x {start = #trt.dims<["1"]>, size = #trt.dims<["2"]>, stride = array<i64: 2>} : (tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @slice_c6(%x: tensor<3xf32>, %f: tensor<f16>) {
  // expected-error@+1 {{C6: fill of trt.slice is tensor<f16>, expected a scalar of f32}}
  %y = trt.slice %x fill(%f : tensor<f16>) {start = #trt.dims<["0"]>, size = #trt.dims<["2"]>, stride = array<i64: 1>} : (tensor<3xf32>) -> tensor<2xf32>
  func.return
}
