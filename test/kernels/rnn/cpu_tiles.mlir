// RUN: rt-opt %s -p 'convert-fused-to-kernel{target=cpu}' | filecheck %s

// Groups of sequences are the tasks. In a step the pre-activations of all gates come first, panel by panel, then the
// cells.

// CHECK:      kernel.parallel(%groups) attributes {workers} {
// CHECK:        scf.for %{{.*}} = %{{.*}} to %rows
// CHECK:          kernel.parallel(%units) attributes {lanes = 16 : i64} {
// CHECK:        scf.for %step =
// CHECK:          scf.for %panel =
// CHECK:            kernel.tile_fill %{{.*}} : f32 -> vector<4x2x16xf32>
// CHECK:            scf.for %depth{{.*}} = 
// CHECK:              kernel.tile_multiply_add %{{.*}}, %state[{{.*}} step {{.*}} {depth = 4 : i64}
// CHECK:            kernel.tile_for_each
// CHECK:          scf.for %{{.*}} = %{{.*}} to %rows
// CHECK:            kernel.parallel(%units) attributes {lanes = 16 : i64} {
// CHECK:              math.tanh
func.func @main(%x: tensor<5x8x1x32xf32>) -> tensor<5x8x32xf32> {
  %r = trt.constant {value = dense<0.1> : tensor<32x1x32xf32>} : tensor<32x1x32xf32>
  %h = trt.constant {value = dense<0.0> : tensor<8x32xf32>} : tensor<8x32xf32>
  %y, %last = fused.rnn %x, %r initial(%h : tensor<8x32xf32>) : tensor<5x8x1x32xf32>, tensor<32x1x32xf32> -> tensor<5x8x32xf32>, tensor<8x32xf32> {
  ^bb0(%w: f32, %s: f32, %before: f32):
    %sum = arith.addf %w, %s : f32
    %new = math.tanh %sum : f32
    fused.yield %new : f32
  } reset {
  }
  func.return %y : tensor<5x8x32xf32>
}
