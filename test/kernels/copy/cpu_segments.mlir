// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cpu}" | filecheck %s
// A repetition of the input is copied by vectors; divisions are left to places far from the first ones.
// CHECK: kernel.func @segments_{{[0-9a-f]+}}({{.*}}family = "segments"
// CHECK: kernel.parallel({{.*}}) attributes {workers}
// CHECK: scf.if
// CHECK: arith.floordivsi
// CHECK: scf.for
// CHECK: kernel.parallel({{.*}}) attributes {lanes = 16 : i64}
// CHECK-NEXT: ^{{.*}}(%[[LANE:.*]]: index):
// CHECK-NEXT: %[[V:.*]] = kernel.load {{.*}}, %[[LANE]]] strides [{{.*}}, 1, 1]
// CHECK-NEXT: kernel.store %[[V]], {{.*}}, %[[LANE]]] strides [{{.*}}, 1, 1]
// CHECK: kernel.return
func.func @tile(%x: tensor<64x56xf32>) -> tensor<64x224xf32> {
  %y = fused.pad %x {pre = #trt.dims<["0", "0"]>, mode = #fused<pad_mode wrap>} : (tensor<64x56xf32>) -> tensor<64x224xf32>
  func.return %y : tensor<64x224xf32>
}
