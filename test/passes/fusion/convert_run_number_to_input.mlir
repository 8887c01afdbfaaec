// RUN: rt-opt %s -p convert-run-number-to-input --split-input-file | filecheck %s

// All that read it read one argument, the last.
// CHECK:      func.func @main(%x: tensor<2xf32> {trt.name = "x"}, [[NUMBER:%.*]]: tensor<i64> {trt.name = "run number", trt.counts_runs}) -> (tensor<i64>, tensor<i64>) {
// CHECK-NEXT:   func.return [[NUMBER]], [[NUMBER]] : tensor<i64>, tensor<i64>
func.func @main(%x: tensor<2xf32> {trt.name = "x"}) -> (tensor<i64>, tensor<i64>) {
  %a = trt.run_number : tensor<i64>
  %b = trt.run_number : tensor<i64>
  func.return %a, %b : tensor<i64>, tensor<i64>
}

// -----

// A network without random numbers keeps its arguments, one with an input of that name gets another.
// CHECK: func.func @pure(%x: tensor<i64>) -> tensor<i64> {
func.func @pure(%x: tensor<i64>) -> tensor<i64> {
  func.return %x : tensor<i64>
}

// CHECK: func.func @taken(%x: tensor<i64> {trt.name = "run number"}, {{%.*}}: tensor<i64> {trt.name = "run number_", trt.counts_runs}) -> tensor<i64> {
func.func @taken(%x: tensor<i64> {trt.name = "run number"}) -> tensor<i64> {
  %a = trt.run_number : tensor<i64>
  func.return %a : tensor<i64>
}
