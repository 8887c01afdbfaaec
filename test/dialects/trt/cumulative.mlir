// RUN: rt-opt %s | rt-opt | filecheck %s
// Running sums and products.

// CHECK-LABEL: func.func @sum
func.func @sum(%x: tensor<5xf32>) {
  // CHECK: %y = trt.cumulative sum %x {axis = 0 : i64} : (tensor<5xf32>) -> tensor<5xf32>
  %y = trt.cumulative sum %x {axis = 0 : i64} : (tensor<5xf32>) -> tensor<5xf32>
  func.return
}

// CHECK-LABEL: func.func @prod_backwards
func.func @prod_backwards(%x: tensor<2x5xi64>) {
  // CHECK: %y = trt.cumulative prod %x {axis = 1 : i64, exclusive = true, reverse = true} : (tensor<2x5xi64>) -> tensor<2x5xi64>
  %y = trt.cumulative prod %x {axis = 1 : i64, exclusive = true, reverse = true} : (tensor<2x5xi64>) -> tensor<2x5xi64>
  func.return
}
