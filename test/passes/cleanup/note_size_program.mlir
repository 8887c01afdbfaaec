// RUN: rt-opt %s --split-input-file -p note-size-program | filecheck %s

// CHECK-LABEL: @of_values
// CHECK-SAME: trt.size_program = "[[\22value\22, \22s\22, 0], [\22value\22, \22s\22, 1], [\22length\22, \22n\22], [\22prod\22, 1, 2], [\22size\22, \22size0\22, 3]]"
func.func @of_values(
  %x: tensor<?xf32, #trt.dims<["n"]>> {trt.name = "x"}, %s: tensor<2xi64> {trt.name = "s"}
) -> tensor<?xf32, #trt.dims<["n"]>> {
  %one = trt.constant {value = dense<1> : tensor<i64>} : tensor<i64>
  %h = trt.gather %s, %one : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
  %n = trt.shape %x : (tensor<?xf32, #trt.dims<["n"]>>) -> tensor<1xi64>
  %l = trt.shuffle %n {reshape_dims = #trt.dims<[]>, zero_is_placeholder = false} : (tensor<1xi64>) -> tensor<i64>
  %p = trt.elementwise prod %h, %l : (tensor<i64>, tensor<i64>) -> tensor<i64>
  trt.define_size %p {symbol = "size0"} : tensor<i64>
  func.return %x : tensor<?xf32, #trt.dims<["n"]>>
}

// -----

// What data of another kind decides is known to the run alone.
// CHECK-LABEL: @of_data
// CHECK-NOT: size_program
func.func @of_data(%x: tensor<4xf32> {trt.name = "x"}) -> tensor<4xf32> {
  %t = trt.reduce sum %x {axes = array<i64: 0>, keep_dims = false} : (tensor<4xf32>) -> tensor<f32>
  %n = trt.identity %t : (tensor<f32>) -> tensor<i64>
  trt.define_size %n {symbol = "size0"} : tensor<i64>
  func.return %x : tensor<4xf32>
}

// -----

// Conditions are 0 and 1, an integer as a condition is whether it is another than 0, and not is whether it is 0.
// CHECK-LABEL: @of_conditions
// CHECK-SAME: trt.size_program = "[[\22value\22, \22s\22, 0], [\22number\22, 3], [\22less\22, 0, 1], [\22number\22, 0], [\22equal\22, 2, 3], [\22equal\22, 4, 3], [\22equal\22, 5, 3], [\22size\22, \22size0\22, 6], [\22sub\22, 3, 0], [\22max\22, 0, 8], [\22size\22, \22size1\22, 9]]"
func.func @of_conditions(%x: tensor<4xf32> {trt.name = "x"}, %s: tensor<i64> {trt.name = "s"}) -> tensor<4xf32> {
  %three = trt.constant {value = dense<3> : tensor<i64>} : tensor<i64>
  %less = trt.elementwise less %s, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %not = trt.unary not %less : (tensor<i1>) -> tensor<i1>
  %n = trt.identity %not : (tensor<i1>) -> tensor<i64>
  %again = trt.identity %n : (tensor<i64>) -> tensor<i1>
  %m = trt.identity %again : (tensor<i1>) -> tensor<i64>
  trt.define_size %m {symbol = "size0"} : tensor<i64>
  %a = trt.unary abs %s : (tensor<i64>) -> tensor<i64>
  trt.define_size %a {symbol = "size1"} : tensor<i64>
  func.return %x : tensor<4xf32>
}
