// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @fill_c1() {
  // expected-error@+1 {{C1: trt.fill needs a shape operand or output_dims}}
  %y = trt.fill linspace : tensor<8xf32>
  func.return
}

// -----

func.func @fill_c2(%s: tensor<2xf32>) {
  // expected-error@+1 {{C2: the shape operand of trt.fill must be a 1-D tensor of integers, but it is tensor<2xf32>}}
  %y = trt.fill linspace shape(%s : tensor<2xf32>) : tensor<?x?xf32>
  func.return
}

// -----

func.func @fill_c3(%b: tensor<3xf32>) {
  // expected-error@+1 {{C3: beta of trt.fill has 3 values, expected a scalar or 1 values}}
  %y = trt.fill linspace beta(%b : tensor<3xf32>) {output_dims = #trt.dims<["8"]>} : tensor<8xf32>
  func.return
}

// -----

func.func @fill_c4(%a: tensor<f32>, %b: tensor<i64>) {
  // expected-error@+1 {{C4: trt.fill needs operands of one element type, but they are f32 and i64}}
  %y = trt.fill linspace alpha(%a : tensor<f32>) beta(%b : tensor<i64>) {output_dims = #trt.dims<["8"]>} : tensor<8xf32>
  func.return
}

// -----

func.func @fill_c5() {
  // expected-error@+1 {{C5: trt.fill has a negative length: [-8]}}
  %y = trt.fill linspace {output_dims = #trt.dims<["-8"]>} : tensor<8xf32>
  func.return
}
