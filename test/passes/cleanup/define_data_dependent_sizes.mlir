// RUN: rt-opt %s --split-input-file -p define-data-dependent-sizes,dce,cse,verify-dominance | filecheck %s

// Both lengths may be placeholders, so that each is computed; their product must be 12.
// CHECK-LABEL: @reshape
// CHECK: [[A:%.*]] = trt.gather %s
// CHECK: [[B:%.*]] = trt.gather %s
// CHECK: trt.elementwise div
// CHECK: [[LEFT:%.*]] = trt.select {{.*}} : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT: [[H:%.*]] = trt.select {{%.*}}, [[LEFT]],
// CHECK-NEXT: [[W:%.*]] = trt.select {{%.*}}, [[LEFT]],
// CHECK: trt.require {{.*}}the shape asks for another number of elements than there are
// CHECK-NEXT: trt.define_size [[H]] {symbol = "size0"}
// CHECK-NEXT: trt.define_size [[W]] {symbol = "size1"}
// CHECK-NEXT: trt.shuffle %x {reshape_dims = #trt.dims<["size0", "size1"]>}
func.func @reshape(%x: tensor<2x6xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
  %y = trt.shuffle %x, %s : (tensor<2x6xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}

// -----

// The only length that is not known keeps the number of elements.
// CHECK-LABEL: @one_left
// CHECK-NEXT: trt.shuffle %x {reshape_dims = #trt.dims<["n", "-1"]>}
func.func @one_left(%x: tensor<?x6xf32, #trt.dims<["n", "6"]>>, %k: tensor<1xi32>) -> tensor<?x?xf32> {
  %d = trt.shape %x : (tensor<?x6xf32, #trt.dims<["n", "6"]>>) -> tensor<2xi64>
  %n = trt.slice %d {start = #trt.dims<["0"]>, size = #trt.dims<["1"]>, stride = array<i64: 1>} : (tensor<2xi64>) -> tensor<1xi64>
  %c = trt.identity %k : (tensor<1xi32>) -> tensor<1xi64>
  %s = trt.concatenation %n, %c {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %y = trt.shuffle %x, %s : (tensor<?x6xf32, #trt.dims<["n", "6"]>>, tensor<2xi64>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: @slice
// CHECK: trt.require {{.*}}out of bounds slice on axis 0
// CHECK-NEXT: trt.define_size {{%.*}} {symbol = "size0"}
// CHECK-NEXT: trt.define_size {{%.*}} {symbol = "size1"}
// CHECK-NEXT: trt.slice %x {{.*}}start = #trt.dims<["size0"]>, size = #trt.dims<["size1"]>
func.func @slice(%x: tensor<4xf32>, %b: tensor<1xi64>, %c: tensor<1xi64>) -> tensor<?xf32> {
  %y = trt.slice %x start(%b : tensor<1xi64>) size(%c : tensor<1xi64>) {stride = array<i64: -1>} : (tensor<4xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// -----

// Names that are taken are left out, and layers behind follow.
// CHECK-LABEL: @fill
// CHECK: trt.define_size [[N:%.*]] {symbol = "size1"}
// CHECK: trt.fill linspace {{.*}}output_dims = #trt.dims<["size1"]>
// CHECK: trt.unary neg {{.*}} -> tensor<?xi64, #trt.dims<["size1"]>>
func.func @fill(%s: tensor<1xi32>, %t: tensor<?xf32, #trt.dims<["size0"]>>) -> tensor<?xi64> {
  %a = trt.constant {value = dense<1> : tensor<i64>} : tensor<i64>
  %y = trt.fill linspace shape(%s : tensor<1xi32>) alpha(%a : tensor<i64>) : tensor<?xi64>
  %z = trt.unary neg %y : (tensor<?xi64>) -> tensor<?xi64>
  func.return %z : tensor<?xi64>
}

// -----

// Where a wrapped slice begins may be negative, which no size is; strides decide which elements a kernel reads.
// CHECK-LABEL: @left_alone
// CHECK-NOT: trt.define_size
// CHECK: trt.slice %x start(%b : tensor<1xi64>)
// CHECK: trt.slice %x stride(%b : tensor<1xi64>)
func.func @left_alone(%x: tensor<4xf32>, %b: tensor<1xi64>) -> (tensor<2xf32>, tensor<2xf32>) {
  %y = trt.slice %x start(%b : tensor<1xi64>) {size = #trt.dims<["2"]>, stride = array<i64: 1>, mode = #trt<slice_mode wrap>} : (tensor<4xf32>) -> tensor<2xf32>
  %z = trt.slice %x stride(%b : tensor<1xi64>) {start = #trt.dims<["0"]>, size = #trt.dims<["2"]>} : (tensor<4xf32>) -> tensor<2xf32>
  func.return %y, %z : tensor<2xf32>, tensor<2xf32>
}
