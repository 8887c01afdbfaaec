// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @random_c1(%r: tensor<i64>) {
  // expected-error@+1 {{C1: trt.random needs either a shape operand or output_dims}}
  %y = trt.random normal %r : tensor<i64> -> tensor<8xf32>
  func.return
}

// -----

func.func @random_c2(%r: tensor<i64>, %s: tensor<2xf32>) {
  // expected-error@+1 {{C2: the shape operand of trt.random must be a 1-D tensor of integers, but it is tensor<2xf32>}}
  %y = trt.random normal %r shape(%s : tensor<2xf32>) : tensor<i64> -> tensor<?x?xf32>
  func.return
}

// -----

func.func @random_c3(%r: tensor<1xi64>) {
  // expected-error@+1 {{C3: the run of trt.random is tensor<1xi64>, expected tensor<i64>}}
  %y = trt.random normal %r {output_dims = #trt.dims<["8"]>} : tensor<1xi64> -> tensor<8xf32>
  func.return
}

// -----

func.func @random_c4(%r: tensor<i64>, %a: tensor<i64>) {
  // expected-error@+1 {{C4: alpha and beta of trt.random must be scalar floats}}
  %y = trt.random normal %r alpha(%a : tensor<i64>) {output_dims = #trt.dims<["8"]>} : tensor<i64> -> tensor<8xi64>
  func.return
}

// -----

func.func @random_c5(%r: tensor<i64>) {
  // expected-error@+1 {{C5: trt.random has a negative length: [-8]}}
  %y = trt.random normal %r {output_dims = #trt.dims<["-8"]>} : tensor<i64> -> tensor<8xf32>
  func.return
}
