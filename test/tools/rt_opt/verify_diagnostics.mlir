// Parse errors, verifier errors and uses before definitions are met by annotations on their lines.
// RUN: rt-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

func.func @verifier(%x: tensor<2xf32>) -> tensor<3xf32> {
  // expected-error@+1 {{the result type should be tensor<2xf32>, but it is tensor<3xf32>}}
  %y = trt.activation relu %x : (tensor<2xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

func.func @parser(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@below {{Expected `relu`, `sigmoid`}}
  %y = trt.activation parabola %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// -----

func.func @undefined(%x: tensor<2xf32>) -> tensor<2xf32> {
  func.return %z : tensor<2xf32> // expected-error {{values used but not defined: [%z]}}
}

// -----

func.func @dominance(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = trt.activation relu %z : (tensor<2xf32>) -> tensor<2xf32>
  // expected-error-re@above {{'trt.activation' op operand #{{[0-9]}} (%z) does not dominate this use}}
  %z = trt.activation relu %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// -----

func.func @two_on_two_lines(%x: tensor<2xi1>) {
  // expected-error@+2 {{C1: trt.activation needs numbers}}
  // expected-error@+2 {{C1: trt.activation needs numbers}}
  %a = trt.activation relu %x : (tensor<2xi1>) -> tensor<2xi1>
  %b = trt.activation relu %x : (tensor<2xi1>) -> tensor<2xi1>
  func.return
}
