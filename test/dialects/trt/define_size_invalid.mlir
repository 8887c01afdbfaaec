// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @define_size_c1(%n: tensor<i64>) {
  // expected-error @+1 {{C1: trt.define_size has both or none of count and value}}
  trt.define_size %n {symbol = "m", value = "2"} : tensor<i64>
  func.return
}

// -----

func.func @define_size_c2(%n: tensor<1xi64>) {
  // expected-error @+1 {{C2: trt.define_size cannot count by tensor<1xi64>}}
  trt.define_size %n {symbol = "m"} : tensor<1xi64>
  func.return
}
