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
