// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// Each element stands twice along rows and columns: some neighbours are read once, and written twice as wide into two rows.
// CHECK:     kernel.func @resize_{{[0-9a-f]+}}([[IN:%.*]]: memref<?xf32>, [[OUT:%.*]]: memref<?xf32>)
// CHECK-DAG: %{{.*}} = arith.constant 128 : index
// CHECK:     kernel.parallel
// CHECK:     [[X:%.*]] = kernel.load_fragment [[IN]]{{.*}} {offsets = array<i64: 0, 1>, wide = true} : memref<?xf32> -> vector<2xf32>
// CHECK:     [[A:%.*]] = kernel.fragment_element [[X]]
// CHECK:     [[B:%.*]] = kernel.fragment_element [[X]]
// CHECK:     [[Y:%.*]] = kernel.fragment [[A]], [[A]], [[B]], [[B]] :
// CHECK:     kernel.store_fragment [[Y]], [[OUT]]{{.*}} {offsets = array<i64: 0, 1, 2, 3>, wide = true}
// CHECK:     kernel.store_fragment [[Y]], [[OUT]]
// CHECK-NOT: kernel.store_fragment
func.func @main(%x: tensor<8x64x64x64xf32>) -> tensor<8x64x128x128xf32> {
  %y = fused.resize nearest %x {coordinate = #trt<coordinate asymmetric>} : (tensor<8x64x64x64xf32>) -> tensor<8x64x128x128xf32>
  func.return %y : tensor<8x64x128x128xf32>
}
