// RUN: rt-opt %s --split-input-file -p convert-trt-to-fused,fuse-pointwise,fuse-row-reductions,fuse-row-elementwise --print-debuginfo | filecheck %s
// RUN: rt-opt %s --split-input-file -p 'convert-trt-to-fused,fuse-pointwise,fuse-row-reductions,fuse-row-elementwise{most_work=12}' | filecheck %s --check-prefix=SHORT

// One launch, which reads the bias once a column; a body that is too long for a CPU stays apart.
// SHORT-LABEL: @softmax
// SHORT-NEXT: fused.softmax %x {axis = 1 : i64} :
// SHORT-NEXT: fused.pointwise
// SHORT-LABEL: @groups
// SHORT: fused.normalization
// SHORT-NOT: fused.pointwise
// SHORT: func.return
// CHECK-LABEL: @softmax
// CHECK: [[Y:%.*]] = fused.softmax %x, %b {axis = 1 : i64, access = [#fused.access<["0", "d1"]>]} : (tensor<4x9xf32>, tensor<1x9xf32>) -> tensor<4x9xf32> {
// CHECK-NEXT: ^bb0([[S:%.*]]: f32{{.*}}, [[B:%.*]]: f32{{.*}}):
// CHECK-NEXT: [[A:%.*]] = arith.addf [[S]], [[B]] : f32
// CHECK-NEXT: [[T:%.*]] = math.tanh [[A]] : f32
// CHECK-NEXT: fused.yield [[T]] : f32
// CHECK-NEXT: } loc(fused["softmax", "sum", "tanh"])
// CHECK-NEXT: func.return [[Y]]
func.func @softmax(%x: tensor<4x9xf32>, %b: tensor<1x9xf32>) -> tensor<4x9xf32> {
  %p = trt.softmax %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32> loc("softmax")
  %s = trt.elementwise sum %p, %b : (tensor<4x9xf32>, tensor<1x9xf32>) -> tensor<4x9xf32> loc("sum")
  %y = trt.activation tanh %s : (tensor<4x9xf32>) -> tensor<4x9xf32> loc("tanh")
  func.return %y : tensor<4x9xf32>
}

// -----

// Shares of half precision are not rounded on their way to float32.
// CHECK-LABEL: @cast
// CHECK: fused.softmax %x {axis = 1 : i64} : (tensor<?x9xf16, #trt.dims<["n", "9"]>>) -> tensor<?x9xf32, #trt.dims<["n", "9"]>> {
// CHECK-NEXT: ^bb0([[S:%.*]]: f32{{.*}}):
// CHECK-NEXT: fused.yield [[S]] : f32
func.func @cast(%x: tensor<?x9xf16, #trt.dims<["n", "9"]>>) -> tensor<?x9xf32, #trt.dims<["n", "9"]>> {
  %p = trt.softmax %x {axis = 1 : i64} : (tensor<?x9xf16, #trt.dims<["n", "9"]>>) -> tensor<?x9xf16, #trt.dims<["n", "9"]>>
  %y = trt.identity %p : (tensor<?x9xf16, #trt.dims<["n", "9"]>>) -> tensor<?x9xf32, #trt.dims<["n", "9"]>>
  func.return %y : tensor<?x9xf32, #trt.dims<["n", "9"]>>
}

// -----

// A normalisation of groups takes the scale of the channels, which is reshaped as the tensor was.
// CHECK-LABEL: @groups
// CHECK: [[V:%.*]] = fused.view %x : (tensor<2x12xf32>) -> tensor<2x3x4xf32>
// CHECK: [[G:%.*]] = fused.view %g : (tensor<1x12xf32>) -> tensor<3x4xf32>
// CHECK: [[N:%.*]] = fused.normalization [[V]], [[G]] {access = [#fused.access<["d0", "d1", "d2"]>, #fused.access<["d1", "d2"]>], axes = array<i64: 2>
// CHECK: [[Y:%.*]] = fused.view [[N]] : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
// CHECK-NEXT: func.return [[Y]]
func.func @groups(%x: tensor<2x12xf32>, %g: tensor<1x12xf32>) -> tensor<2x12xf32> {
  %v = trt.shuffle %x {reshape_dims = #trt.dims<["2", "3", "4"]>} : (tensor<2x12xf32>) -> tensor<2x3x4xf32>
  %m = trt.reduce avg %v {axes = array<i64: 2>} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
  %d = trt.elementwise sub %v, %m : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %w = trt.shuffle %d {reshape_dims = #trt.dims<["2", "12"]>} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  %y = trt.elementwise prod %w, %g : (tensor<2x12xf32>, tensor<1x12xf32>) -> tensor<2x12xf32>
  func.return %y : tensor<2x12xf32>
}

// -----

// The scale is one a row of the reshaped tensor, which is half a row before: it cannot be reshaped so.
// CHECK-LABEL: @other_rows
// CHECK: fused.normalization
// CHECK: fused.view
// CHECK: fused.pointwise
func.func @other_rows(%x: tensor<2x4x6xf32>, %g: tensor<2x3x1xf32>) -> tensor<2x3x8xf32> {
  %m = trt.reduce avg %x {axes = array<i64: 2>} : (tensor<2x4x6xf32>) -> tensor<2x4x1xf32>
  %d = trt.elementwise sub %x, %m : (tensor<2x4x6xf32>, tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %w = trt.shuffle %d {reshape_dims = #trt.dims<["2", "3", "8"]>} : (tensor<2x4x6xf32>) -> tensor<2x3x8xf32>
  %y = trt.elementwise prod %w, %g : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  func.return %y : tensor<2x3x8xf32>
}

// -----

// Somebody else reads the shares, or they are transposed.
// CHECK-LABEL: @apart
// CHECK: fused.softmax
// CHECK: fused.pointwise
// CHECK: fused.softmax
// CHECK: fused.pointwise
func.func @apart(%x: tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<4x9xf32>, tensor<9x4xf32>) {
  %p = trt.softmax %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %y = trt.activation tanh %p : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %q = trt.softmax %x {axis = 0 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %z = trt.shuffle %q {first_transpose = array<i64: 1, 0>} : (tensor<4x9xf32>) -> tensor<9x4xf32>
  func.return %p, %y, %z : tensor<4x9xf32>, tensor<4x9xf32>, tensor<9x4xf32>
}

// -----

// An operand of one element, behind a reshape that moves axes of length 1.
// CHECK-LABEL: @one_element
// CHECK: [[B:%.*]] = fused.view %b : (tensor<1x1x1x1xf32>) -> tensor<f32>
// CHECK: fused.softmax %x, [[B]] {axis = 1 : i64, access = [#fused.access<[]>]}
func.func @one_element(%x: tensor<5x1x3x9xf32>, %b: tensor<1x1x1x1xf32>) -> tensor<5x3x1x9xf32> {
  %p = trt.softmax %x {axis = 1 : i64} : (tensor<5x1x3x9xf32>) -> tensor<5x1x3x9xf32>
  %q = trt.shuffle %p {reshape_dims = #trt.dims<["5", "3", "1", "9"]>} : (tensor<5x1x3x9xf32>) -> tensor<5x3x1x9xf32>
  %y = trt.elementwise max %q, %b : (tensor<5x3x1x9xf32>, tensor<1x1x1x1xf32>) -> tensor<5x3x1x9xf32>
  func.return %y : tensor<5x3x1x9xf32>
}
