// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @resize_c1(%x: tensor<4xi1>) {
  // expected-error@+1 {{C1: trt.resize needs numbers, but its input is boolean}}
  %y = trt.resize nearest %x {output_dims = #trt.dims<["8"]>} : (tensor<4xi1>) -> tensor<8xi1>
  func.return
}

// -----

func.func @resize_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{C2: trt.resize needs its new lengths: a shape operand, output_dims or scales}}
  %y = trt.resize nearest %x : (tensor<4xf32>) -> tensor<8xf32>
  func.return
}

// -----

func.func @resize_c3(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{C3: trt.resize has 1 scales, its input has rank 2}}
  %y = trt.resize nearest %x {scales = array<f64: 2.0>} : (tensor<4x4xf32>) -> tensor<8x8xf32>
  func.return
}

// -----

func.func @resize_c4(%x: tensor<4xf32>, %s: tensor<1xi64>) {
  // expected-error@+1 {{C4: trt.resize has a shape operand and output_dims, expected one of them}}
  %y = trt.resize nearest %x, %s {output_dims = #trt.dims<["8"]>} : (tensor<4xf32>, tensor<1xi64>) -> tensor<8xf32>
  func.return
}

// -----

func.func @resize_c5(%x: tensor<4xf32>) {
  // expected-error@+1 {{C5: scales of trt.resize must be positive, but they are [-2.0]}}
  %y = trt.resize nearest %x {scales = array<f64: -2.0>} : (tensor<4xf32>) -> tensor<8xf32>
  func.return
}

// -----

func.func @resize_c6(%x: tensor<4xf32>) {
  // expected-error@+1 {{C6: trt.resize with tf_crop_and_resize needs roi}}
  %y = trt.resize nearest %x {output_dims = #trt.dims<["8"]>, coordinate = #trt<coordinate tf_crop_and_resize>} : (tensor<4xf32>) -> tensor<8xf32>
  func.return
}
