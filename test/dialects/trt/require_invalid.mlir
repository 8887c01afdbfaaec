// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @require_c1(%c: tensor<1xi1>) {
  // expected-error @+1 {{C1: trt.require cannot decide by tensor<1xi1>}}
  trt.require %c {message = "out of range"} : tensor<1xi1>
  func.return
}
