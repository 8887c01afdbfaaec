// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// Rows of the result have 58 elements: a vector of 4 may reach into the next row. Each element is found in one of both.
// CHECK: kernel.func @pad_{{[0-9a-f]+}}({{.*}}family = "pad"
// CHECK: kernel.parallel
// CHECK: %[[START:.*]] = arith.muli
// CHECK: %[[COLUMN:.*]] = arith.remui %[[START]]
// CHECK: scf.if
// CHECK: kernel.load
// CHECK: %[[NEXT:.*]] = arith.cmpi sge, %[[COLUMN]]
// CHECK: arith.select %[[NEXT]]
// CHECK: scf.if
// CHECK: kernel.load
// CHECK: kernel.store_fragment {{.*}}[%[[START]]] {offsets = array<i64: 0, 1, 2, 3>, wide = true}
// CHECK-NOT: kernel.store
// CHECK: kernel.return
func.func @border(%x: tensor<8x64x56x56xf32>) -> tensor<8x64x58x58xf32> {
  %y = fused.pad %x {pre = #trt.dims<["0", "0", "1", "1"]>} : (tensor<8x64x56x56xf32>) -> tensor<8x64x58x58xf32>
  func.return %y : tensor<8x64x58x58xf32>
}
