// The sum of the items at even places: a conditional in a loop, as a network of layers says it. What is inside of the
// loop and of the conditional follows from the data flow.
//
//   rt-opt examples/sum_even.mlir --run=cpu
//   rt-opt examples/sum_even.mlir -p infer-nesting,convert-loops-to-scf,convert-conditionals-to-scf --run=reference

func.func @sum_even() {
  %items = check.input {value = dense<[1.0, 20.0, 3.0, 40.0, 5.0]> : tensor<5xf32>} : tensor<5xf32>
  %count = check.input {value = dense<5> : tensor<i32>} : tensor<i32>
  %start = trt.constant {value = dense<0.0> : tensor<f32>} : tensor<f32>
  %zero = trt.constant {value = dense<0> : tensor<i32>} : tensor<i32>
  %one = trt.constant {value = dense<1> : tensor<i32>} : tensor<i32>
  %two = trt.constant {value = dense<2> : tensor<i32>} : tensor<i32>

  trt.trip_limit count %count {loop = @each} : tensor<i32>
  %item = trt.iterator %items {loop = @each} : (tensor<5xf32>) -> tensor<f32>
  %place = trt.recurrence %zero {loop = @each} : (tensor<i32>) -> tensor<i32>
  %next = trt.elementwise sum %place, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
  trt.recurrence_next %place, %next : tensor<i32>, tensor<i32>
  %sum = trt.recurrence %start {loop = @each} : (tensor<f32>) -> tensor<f32>

  %half = trt.elementwise mod %place, %two : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %even = trt.elementwise equal %half, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  trt.condition %even {conditional = @is_even} : tensor<i1>
  %before = trt.if_input %sum {conditional = @is_even} : (tensor<f32>) -> tensor<f32>
  %more = trt.elementwise sum %before, %item : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %after = trt.if_output %more, %before {conditional = @is_even} : (tensor<f32>, tensor<f32>) -> tensor<f32>

  trt.recurrence_next %sum, %after : tensor<f32>, tensor<f32>
  %total = trt.loop_output last_value %sum {loop = @each} : (tensor<f32>) -> tensor<f32>
  %expected = trt.constant {value = dense<9.0> : tensor<f32>} : tensor<f32>
  check.expect_close %total, %expected : tensor<f32>, tensor<f32>
  func.return
}
