// RUN: rt-opt %s --split-input-file -p fuse-softmax-topk --print-debuginfo | filecheck %s

// The scores are ranked, and five shares computed.
// CHECK-LABEL: @few_of_many
// CHECK-NEXT: [[V:%.*]], [[I:%.*]] = fused.topk max %x {axis = 1 : i64, normalization = #fused<topk_normalization softmax>} : (tensor<4x400xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>) loc(fused["softmax", "topk"])
// CHECK-NEXT: func.return [[V]], [[I]]
func.func @few_of_many(%x: tensor<4x400xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>) {
  %p = fused.softmax %x {axis = 1 : i64} : (tensor<4x400xf32>) -> tensor<4x400xf32> loc("softmax")
  %v, %i = fused.topk max %p {axis = 1 : i64} : (tensor<4x400xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>) loc("topk")
  func.return %v, %i : tensor<4x5xf32>, tensor<4x5xi64>
}

// -----

// Logarithms of shares.
// CHECK-LABEL: @logarithms
// CHECK-NEXT: fused.topk max %x {axis = 0 : i64, normalization = #fused<topk_normalization log_softmax>}
func.func @logarithms(%x: tensor<400x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>) {
  %p = fused.softmax %x {axis = 0 : i64, log = true} : (tensor<400x3xf32>) -> tensor<400x3xf32> loc("softmax")
  %v, %i = fused.topk max %p {axis = 0 : i64} : (tensor<400x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>) loc("topk")
  func.return %v, %i : tensor<2x3xf32>, tensor<2x3xi64>
}

// -----

// Nobody reads the shares themselves.
// CHECK-LABEL: @places
// CHECK-NEXT: fused.topk max %x {axis = 1 : i64} :
func.func @places(%x: tensor<4x400xf32>) -> tensor<4x1xi64> {
  %p = fused.softmax %x {axis = 1 : i64} : (tensor<4x400xf32>) -> tensor<4x400xf32>
  %v, %i = fused.topk max %p {axis = 1 : i64} : (tensor<4x400xf32>) -> (tensor<4x1xf32>, tensor<4x1xi64>)
  func.return %i : tensor<4x1xi64>
}

// -----

// All shares are wanted.
// CHECK-LABEL: @two_readers
// CHECK: fused.softmax
// CHECK: fused.topk
func.func @two_readers(%x: tensor<4x400xf32>) -> (tensor<4x400xf32>, tensor<4x5xf32>, tensor<4x5xi64>) {
  %p = fused.softmax %x {axis = 1 : i64} : (tensor<4x400xf32>) -> tensor<4x400xf32> loc("softmax")
  %v, %i = fused.topk max %p {axis = 1 : i64} : (tensor<4x400xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>) loc("topk")
  func.return %p, %v, %i : tensor<4x400xf32>, tensor<4x5xf32>, tensor<4x5xi64>
}

// -----

// Shares of columns, ranked in rows.
// CHECK-LABEL: @other_axis
// CHECK: fused.softmax
// CHECK: fused.topk
func.func @other_axis(%x: tensor<4x400xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>) {
  %p = fused.softmax %x {axis = 0 : i64} : (tensor<4x400xf32>) -> tensor<4x400xf32> loc("softmax")
  %v, %i = fused.topk max %p {axis = 1 : i64} : (tensor<4x400xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>) loc("topk")
  func.return %v, %i : tensor<4x5xf32>, tensor<4x5xi64>
}

// -----

// The smallest shares are zeros that are equal.
// CHECK-LABEL: @smallest
// CHECK: fused.softmax
// CHECK: fused.topk
func.func @smallest(%x: tensor<4x400xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>) {
  %p = fused.softmax %x {axis = 1 : i64} : (tensor<4x400xf32>) -> tensor<4x400xf32> loc("softmax")
  %v, %i = fused.topk min %p {axis = 1 : i64} : (tensor<4x400xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>) loc("topk")
  func.return %v, %i : tensor<4x5xf32>, tensor<4x5xi64>
}

// -----

// Of 400 shares 7 are wanted.
// CHECK-LABEL: @many
// CHECK: fused.softmax
// CHECK: fused.topk
func.func @many(%x: tensor<4x400xf32>) -> (tensor<4x7xf32>, tensor<4x7xi64>) {
  %p = fused.softmax %x {axis = 1 : i64} : (tensor<4x400xf32>) -> tensor<4x400xf32> loc("softmax")
  %v, %i = fused.topk max %p {axis = 1 : i64} : (tensor<4x400xf32>) -> (tensor<4x7xf32>, tensor<4x7xi64>) loc("topk")
  func.return %v, %i : tensor<4x7xf32>, tensor<4x7xi64>
}

// -----

// Sixteen are searched for in another way.
// CHECK-LABEL: @sixteen
// CHECK: fused.softmax
// CHECK: fused.topk
func.func @sixteen(%x: tensor<4x4000xf32>) -> (tensor<4x16xf32>, tensor<4x16xi64>) {
  %p = fused.softmax %x {axis = 1 : i64} : (tensor<4x4000xf32>) -> tensor<4x4000xf32>
  %v, %i = fused.topk max %p {axis = 1 : i64} : (tensor<4x4000xf32>) -> (tensor<4x16xf32>, tensor<4x16xi64>)
  func.return %v, %i : tensor<4x16xf32>, tensor<4x16xi64>
}

// -----

// Rows of any length.
// CHECK-LABEL: @unknown_length
// CHECK: fused.softmax
// CHECK: fused.topk
func.func @unknown_length(%x: tensor<4x?xf32, #trt.dims<["4", "n"]>>) -> (tensor<4x2xf32>, tensor<4x2xi64>) {
  %p = fused.softmax %x {axis = 1 : i64} : (tensor<4x?xf32, #trt.dims<["4", "n"]>>) -> tensor<4x?xf32, #trt.dims<["4", "n"]>>
  %v, %i = fused.topk max %p {axis = 1 : i64} : (tensor<4x?xf32, #trt.dims<["4", "n"]>>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  func.return %v, %i : tensor<4x2xf32>, tensor<4x2xi64>
}
