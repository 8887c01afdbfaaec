// RUN: rt-opt %s -p expand-counted-loops | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: %limit = trt.constant
// CHECK: [[FIRST:%.*]] = trt.elementwise less [[ZERO:%.*]], %n
// CHECK: [[LAST:%.*]] = trt.elementwise sub %n, [[ONE:%.*]] :
// CHECK: %y = scf.while ([[I:%.*]] = [[ZERO]], [[MORE:%.*]] = [[FIRST]], [[A:%.*]] = %x)
// CHECK: [[C:%.*]] = tensor.extract [[MORE]][] : tensor<i1>
// CHECK: scf.condition([[C]]) [[I]], [[A]] : tensor<i64>, tensor<4xf32>
// CHECK: } do {
// CHECK: [[ROW:%.*]] = trt.gather %rows, [[J:%.*]] :
// CHECK: [[SUM:%.*]] = trt.elementwise sum
// CHECK: [[AGAIN:%.*]] = trt.elementwise less [[J]], [[LAST]]
// CHECK: [[NEXT:%.*]] = trt.elementwise sum [[J]], [[ONE]]
// CHECK: scf.yield [[NEXT]], [[AGAIN]], [[SUM]] : tensor<i64>, tensor<i1>, tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %rows: tensor<7x4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  %limit = trt.constant {value = dense<1.0> : tensor<1xf32>} : tensor<1xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %e = tensor.extract %n[] : tensor<i64>
  %count = arith.index_cast %e : i64 to index
  %y = scf.for %i = %zero to %count step %one iter_args(%a = %x) -> (tensor<4xf32>) {
    %k = arith.index_cast %i : index to i64
    %j = tensor.from_elements %k : tensor<i64>
    %row = trt.gather %rows, %j {axis = 0 : i64} : (tensor<7x4xf32>, tensor<i64>) -> tensor<4xf32>
    %b = trt.elementwise sum %a, %row : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
