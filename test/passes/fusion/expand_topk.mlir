// RUN: rt-opt %s -p expand-topk | filecheck %s

// 16,384 elements are 2,048 parts of 8: the largest of each, the ten parts in their order, what is in them.
// CHECK-LABEL: @scores
// CHECK:       [[P:%.*]] = trt.shuffle %x {reshape_dims = #trt.dims<["2", "2048", "8"]>}
// CHECK:       [[M:%.*]] = trt.reduce max [[P]] {axes = array<i64: 2>, keep_dims = false}
// CHECK:       trt.topk max [[M]] {k = 10 : i64, axis = 1 : i64}
// CHECK:       [[O:%.*]], {{%.*}} = trt.topk min {{%.*}} {k = 10 : i64, axis = 1 : i64}
// CHECK:       [[R:%.*]] = trt.gather [[P]], [[O]] {axis = 1 : i64, num_elementwise_dims = 1 : i64}
// CHECK:       [[L:%.*]] = trt.shuffle [[R]] {reshape_dims = #trt.dims<["2", "80"]>}
// CHECK:       [[V:%.*]], [[J:%.*]] = trt.topk max [[L]] {k = 10 : i64, axis = 1 : i64}
// CHECK:       trt.elementwise floor_div [[J]]
func.func @scores(%x: tensor<2x16384xf16>) -> (tensor<2x10xf16>, tensor<2x10xi64>) {
  %v, %i = trt.topk max %x {k = 10 : i64, axis = 1 : i64} : (tensor<2x16384xf16>) -> (tensor<2x10xf16>, tensor<2x10xi64>)
  func.return %v, %i : tensor<2x10xf16>, tensor<2x10xi64>
}
