// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @select_c1(%c: tensor<4xi32>) {
  // expected-error@+1 {{C1: the condition of trt.select must be boolean, but it is i32}}
  %y = trt.select %c, %c, %c : (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----

func.func @select_c2(%c: tensor<4xi1>, %a: tensor<4xf32>) {
  // expected-error@+1 {{C2: trt.select needs operands of one element type, but they are f32 and i1}}
  %y = trt.select %c, %a, %c : (tensor<4xi1>, tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32>
  func.return
}

// -----

func.func @select_c3(%c: tensor<4xi1>, %a: tensor<1x4xf32>) {
  // expected-error@+1 {{C3: trt.select needs equal ranks, but they are 1, 2, 2}}
  %y = trt.select %c, %a, %a : (tensor<4xi1>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

func.func @select_c4(%c: tensor<4xi1>, %a: tensor<3xf32>) {
  // expected-error@+1 {{C4: lengths ['4', '3', '3'] of dimension 0 do not broadcast}}
  %y = trt.select %c, %a, %a : (tensor<4xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<4xf32>
  func.return
}
