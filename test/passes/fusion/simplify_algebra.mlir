// RUN: rt-opt %s --split-input-file -p simplify-algebra,dce | filecheck %s
// RUN: rt-opt %s --split-input-file -p simplify-algebra,dce --remarks -o /dev/null 2>&1 | filecheck %s --check-prefix=SAID

// SAID: remark: simplify-algebra: applied: {{.*}}drop slope{{.*}}: saves {{.*}} microseconds by the cost model
// CHECK-LABEL: @above_zero
// CHECK-NEXT: [[A:%.*]] = trt.activation sigmoid %x
// CHECK-NEXT: func.return [[A]]
func.func @above_zero(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = trt.activation sigmoid %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = trt.activation leaky_relu %a {alpha = 0.1 : f64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = trt.activation relu %b : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %d = trt.unary abs %c : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = trt.activation clip %d {alpha = -1.0 : f64, beta = 1.0 : f64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %e : tensor<4x8xf32>
}

// -----

// A product of two tensors may be below 0, and a square is not.
// CHECK-LABEL: @squares
// CHECK-NEXT: [[A:%.*]] = trt.elementwise prod %x, %y
// CHECK-NEXT: [[R:%.*]] = trt.activation relu [[A]]
// CHECK-NEXT: [[B:%.*]] = trt.elementwise prod %x, %x
// CHECK-NEXT: func.return [[R]], [[B]]
func.func @squares(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = trt.elementwise prod %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r = trt.activation relu %a : (tensor<4xf32>) -> tensor<4xf32>
  %b = trt.elementwise prod %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = trt.activation relu %b : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r, %s : tensor<4xf32>, tensor<4xf32>
}

// -----

// Integers wrap around, so that a square of one may be below 0.
// CHECK-LABEL: @integers
// CHECK-COUNT-1: trt.elementwise prod
// CHECK-NEXT: [[S:%.*]] = trt.activation relu
// CHECK-NEXT: func.return [[S]]
func.func @integers(%x: tensor<4xi32>) -> tensor<4xi32> {
  %b = trt.elementwise prod %x, %x : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %s = trt.activation relu %b : (tensor<4xi32>) -> tensor<4xi32>
  func.return %s : tensor<4xi32>
}

// -----

// What is at most 0 is clipped to 0, but for not-a-number.
// SAID: remark: simplify-algebra: declined: clip (trt.activation): drop clip: --fastMath=accurate,reassociate,finite would permit it (no number is infinite or not-a-number), which saves
// CHECK-LABEL: @all_below
// CHECK: trt.elementwise min
// CHECK-NEXT: trt.activation clip
func.func @all_below(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = trt.constant {value = dense<0.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %a = trt.elementwise min %x, %zero : (tensor<64x64xf32>, tensor<1x1xf32>) -> tensor<64x64xf32>
  %c = trt.activation clip %a {alpha = 0.0 : f64, beta = 1.0 : f64} : (tensor<64x64xf32>) -> tensor<64x64xf32> loc("clip")
  func.return %c : tensor<64x64xf32>
}

// -----

// A clip inside of another one is one; an outer one that is wider is none.
// CHECK-LABEL: @clips
// CHECK-NEXT: [[A:%.*]] = trt.activation clip %x {alpha = -1.000000e+00 : f64, beta = 2.000000e+00 : f64}
// CHECK-NEXT: [[B:%.*]] = trt.activation clip %y {alpha = 1.000000e+00 : f64, beta = 3.000000e+00 : f64}
// CHECK-NEXT: func.return [[A]], [[B]]
func.func @clips(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = trt.activation clip %x {alpha = -1.0 : f64, beta = 2.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %b = trt.activation clip %a {alpha = -2.0 : f64, beta = 2.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %c = trt.activation clip %y {alpha = 0.0 : f64, beta = 3.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %d = trt.activation clip %c {alpha = 1.0 : f64, beta = 4.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b, %d : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: @maxima
// CHECK-NEXT: [[C:%.*]] = trt.constant {value = dense<[2.000000e+00, 3.000000e+00]> : tensor<2xf32>}
// CHECK-NEXT: [[Y:%.*]] = trt.elementwise max %x, [[C]]
// CHECK-NEXT: func.return [[Y]]
func.func @maxima(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = trt.constant {value = dense<[1.0, 3.0]> : tensor<2xf32>} : tensor<2xf32>
  %b = trt.constant {value = dense<[2.0, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %c = trt.elementwise max %x, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %d = trt.elementwise max %b, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %d : tensor<2xf32>
}

// -----

// Not-a-number is not below 0, but neither is it at least 0: the first is known, the second is not.
// CHECK-LABEL: @comparisons
// CHECK: [[N:%.*]] = trt.constant {value = dense<false> : tensor<1xi1>}
// CHECK: [[A:%.*]] = trt.broadcast [[N]]
// CHECK: [[B:%.*]] = trt.elementwise greater_equal
// CHECK-NEXT: func.return [[A]], [[B]]
func.func @comparisons(%x: tensor<4xf32>) -> (tensor<4xi1>, tensor<4xi1>) {
  %zero = trt.constant {value = dense<0.0> : tensor<1xf32>} : tensor<1xf32>
  %r = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %a = trt.elementwise less %r, %zero : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xi1>
  %b = trt.elementwise greater_equal %r, %zero : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xi1>
  func.return %a, %b : tensor<4xi1>, tensor<4xi1>
}

// -----

// The largest of bounded numbers is the largest one, bounded; what is bounded is an output of the second function.
// CHECK-LABEL: @bounded_maxima
// CHECK-NEXT: [[M:%.*]] = trt.reduce max %x
// CHECK-NEXT: [[Y:%.*]] = trt.activation relu [[M]]
// CHECK-NEXT: func.return [[Y]]
func.func @bounded_maxima(%x: tensor<64x64xf32>) -> tensor<64x1xf32> {
  %a = trt.activation relu %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = trt.reduce max %a {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x1xf32>
  func.return %m : tensor<64x1xf32>
}

// CHECK-LABEL: @bounded_output
// CHECK-NEXT: [[A:%.*]] = trt.activation relu %x
// CHECK-NEXT: [[M:%.*]] = trt.reduce max [[A]]
// CHECK-NEXT: func.return [[A]], [[M]]
func.func @bounded_output(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x1xf32>) {
  %a = trt.activation relu %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = trt.reduce max %a {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x1xf32>
  func.return %a, %m : tensor<64x64xf32>, tensor<64x1xf32>
}
