// RUN: rt-opt %s --split-input-file -p convert-softmax-to-normalization{longer_than=8} | filecheck %s

// CHECK-LABEL: @shares
// CHECK-NEXT: fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind max>, #fused<reduction_kind add>]}
// CHECK-NEXT: ^bb{{.*}}(%{{.*}}: f16, [[M:%.*]]: f32, [[T:%.*]]: f32):
// CHECK: math.exp
// CHECK-NEXT: arith.divf %{{.*}}, [[T]] : f32
// CHECK-NEXT: arith.truncf %{{.*}} : f32 to f16
// CHECK-NEXT: fused.yield
func.func @shares(%x: tensor<4x9xf16>) -> tensor<4x9xf16> {
  %y = fused.softmax %x {axis = 1 : i64} : (tensor<4x9xf16>) -> tensor<4x9xf16>
  func.return %y : tensor<4x9xf16>
}

// -----

// The body goes on with what follows the shares.
// CHECK-LABEL: @logarithms
// CHECK-NEXT: fused.normalization %x, %b {access = [#fused.access<["d0", "d1"]>, #fused.access<["d1"]>]
// CHECK: math.log
// CHECK-NEXT: [[S:%.*]] = arith.subf
// CHECK-NEXT: arith.mulf [[S]], %{{.*}} : f32
func.func @logarithms(%x: tensor<4x9xf32>, %b: tensor<9xf32>) -> tensor<4x9xf32> {
  %y = fused.softmax %x, %b {axis = 1 : i64, log = true, access = [#fused.access<["d1"]>]} : (tensor<4x9xf32>, tensor<9xf32>) -> tensor<4x9xf32> {
  ^bb0(%share: f32, %factor: f32):
    %z = arith.mulf %share, %factor : f32
    fused.yield %z : f32
  }
  func.return %y : tensor<4x9xf32>
}

// -----

// Short rows, and rows of unknown length.
// CHECK-LABEL: @others
// CHECK-COUNT-2: fused.softmax
func.func @others(%x: tensor<9x8xf32>, %z: tensor<4x?xf32, #trt.dims<["4", "n"]>>) -> (tensor<9x8xf32>, tensor<4x?xf32, #trt.dims<["4", "n"]>>) {
  %y = fused.softmax %x {axis = 1 : i64} : (tensor<9x8xf32>) -> tensor<9x8xf32>
  %u = fused.softmax %z {axis = 1 : i64} : (tensor<4x?xf32, #trt.dims<["4", "n"]>>) -> tensor<4x?xf32, #trt.dims<["4", "n"]>>
  func.return %y, %u : tensor<9x8xf32>, tensor<4x?xf32, #trt.dims<["4", "n"]>>
}
