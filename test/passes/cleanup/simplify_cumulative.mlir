// RUN: rt-opt %s --split-input-file -p simplify-cumulative,dce | filecheck %s
// RUN: rt-opt %s --split-input-file -p 'simplify-cumulative{rows_in_halves=false},dce' | filecheck %s --check-prefix=FLOATS

// CHECK-LABEL: @halves
// CHECK-NEXT: [[Y:%.*]] = trt.cumulative sum %x {axis = 1 : i64, exclusive = true} : (tensor<4x9xf16>) -> tensor<4x9xf16>
// CHECK-NEXT: func.return [[Y]]
// FLOATS-LABEL: @halves
// FLOATS: trt.cumulative {{.*}} -> tensor<4x9xf32>
// FLOATS-LABEL: @columns
// FLOATS: trt.cumulative {{.*}} -> tensor<4x9xf16>
func.func @halves(%x: tensor<4x9xf16>) -> tensor<4x9xf16> {
  %w = trt.identity %x : (tensor<4x9xf16>) -> tensor<4x9xf32>
  %t = trt.cumulative sum %w {axis = 1 : i64, exclusive = true} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %y = trt.identity %t : (tensor<4x9xf32>) -> tensor<4x9xf16>
  func.return %y : tensor<4x9xf16>
}

// -----

// Another format comes out, or somebody reads the totals in float32: they stay.
// CHECK-LABEL: @others
// CHECK-COUNT-2: trt.cumulative {{.*}} -> tensor<9xf32>
func.func @others(%x: tensor<9xf16>) -> (tensor<9xbf16>, tensor<9xf16>, tensor<9xf32>) {
  %w = trt.identity %x : (tensor<9xf16>) -> tensor<9xf32>
  %t = trt.cumulative sum %w {axis = 0 : i64} : (tensor<9xf32>) -> tensor<9xf32>
  %y = trt.identity %t : (tensor<9xf32>) -> tensor<9xbf16>
  %v = trt.identity %x : (tensor<9xf16>) -> tensor<9xf32>
  %u = trt.cumulative prod %v {axis = 0 : i64} : (tensor<9xf32>) -> tensor<9xf32>
  %z = trt.identity %u : (tensor<9xf32>) -> tensor<9xf16>
  func.return %y, %z, %u : tensor<9xbf16>, tensor<9xf16>, tensor<9xf32>
}

// -----

// CHECK-LABEL: @reversed
// CHECK-NEXT: [[T:%.*]] = trt.cumulative sum %x {axis = 1 : i64, reverse = true}
// CHECK-NEXT: [[Y:%.*]] = trt.cumulative prod [[T]] {axis = 0 : i64}
// CHECK-NEXT: func.return [[Y]]
func.func @reversed(%x: tensor<?x9xf32, #trt.dims<["n", "9"]>>) -> tensor<?x9xf32, #trt.dims<["n", "9"]>> {
  %a = trt.slice %x {start = #trt.dims<["0", "8"]>, size = #trt.dims<["n", "9"]>, stride = array<i64: 1, -1>} : (tensor<?x9xf32, #trt.dims<["n", "9"]>>) -> tensor<?x9xf32, #trt.dims<["n", "9"]>>
  %t = trt.cumulative sum %a {axis = 1 : i64} : (tensor<?x9xf32, #trt.dims<["n", "9"]>>) -> tensor<?x9xf32, #trt.dims<["n", "9"]>>
  %b = trt.slice %t {start = #trt.dims<["0", "8"]>, size = #trt.dims<["n", "9"]>, stride = array<i64: 1, -1>} : (tensor<?x9xf32, #trt.dims<["n", "9"]>>) -> tensor<?x9xf32, #trt.dims<["n", "9"]>>
  %c = trt.slice %b {start = #trt.dims<["n - 1", "0"]>, size = #trt.dims<["n", "9"]>, stride = array<i64: -1, 1>} : (tensor<?x9xf32, #trt.dims<["n", "9"]>>) -> tensor<?x9xf32, #trt.dims<["n", "9"]>>
  %u = trt.cumulative prod %c {axis = 0 : i64, reverse = true} : (tensor<?x9xf32, #trt.dims<["n", "9"]>>) -> tensor<?x9xf32, #trt.dims<["n", "9"]>>
  %y = trt.slice %u {start = #trt.dims<["n - 1", "0"]>, size = #trt.dims<["n", "9"]>, stride = array<i64: -1, 1>} : (tensor<?x9xf32, #trt.dims<["n", "9"]>>) -> tensor<?x9xf32, #trt.dims<["n", "9"]>>
  func.return %y : tensor<?x9xf32, #trt.dims<["n", "9"]>>
}

// -----

// Another axis, or not all elements.
// CHECK-LABEL: @other_slices
// CHECK-COUNT-2: trt.cumulative sum {{.*}} {axis = 1 : i64}
func.func @other_slices(%x: tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<4x8xf32>) {
  %a = trt.slice %x {start = #trt.dims<["3", "0"]>, size = #trt.dims<["4", "9"]>, stride = array<i64: -1, 1>} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %t = trt.cumulative sum %a {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %b = trt.slice %t {start = #trt.dims<["3", "0"]>, size = #trt.dims<["4", "9"]>, stride = array<i64: -1, 1>} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %c = trt.slice %x {start = #trt.dims<["0", "7"]>, size = #trt.dims<["4", "8"]>, stride = array<i64: 1, -1>} : (tensor<4x9xf32>) -> tensor<4x8xf32>
  %u = trt.cumulative sum %c {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %d = trt.slice %u {start = #trt.dims<["0", "7"]>, size = #trt.dims<["4", "8"]>, stride = array<i64: 1, -1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %b, %d : tensor<4x9xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @columns
// CHECK-NEXT: trt.cumulative sum %x {{.*}} -> tensor<4x9xf16>
func.func @columns(%x: tensor<4x9xf16>) -> tensor<4x9xf16> {
  %w = trt.identity %x : (tensor<4x9xf16>) -> tensor<4x9xf32>
  %t = trt.cumulative sum %w {axis = 0 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %y = trt.identity %t : (tensor<4x9xf32>) -> tensor<4x9xf16>
  func.return %y : tensor<4x9xf16>
}
