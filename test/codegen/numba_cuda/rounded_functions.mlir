// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda},map-parallel-to-threads" --split-input-file -t numba-cuda | filecheck %s

// What is rounded behind an error function may take the one without branches.
// CHECK: def element(
// CHECK: erf_closely(
func.func @rounded(%x: tensor<512x256xi8>, %w: tensor<1024x256xi8>) -> tensor<512x1024xi8> {
  %y = fused.matmul %x, %w {access = [], transpose_rhs = true} : (tensor<512x256xi8>, tensor<1024x256xi8>) -> tensor<512x1024xi8> {
  ^bb0(%s: i32):
    %f = arith.sitofp %s : i32 to f32
    %e = math.erf %f : f32
    %r = math.roundeven %e : f32
    %i = arith.fptosi %r : f32 to i8
    fused.yield %i : i8
  }
  func.return %y : tensor<512x1024xi8>
}

// -----

// What is cut off is another number where the function is the least bit less.
// CHECK: def element(
// CHECK-NOT: erf_closely(
// CHECK: erf(
func.func @cut(%x: tensor<512x256xi8>, %w: tensor<1024x256xi8>) -> tensor<512x1024xi8> {
  %y = fused.matmul %x, %w {access = [], transpose_rhs = true} : (tensor<512x256xi8>, tensor<1024x256xi8>) -> tensor<512x1024xi8> {
  ^bb0(%s: i32):
    %f = arith.sitofp %s : i32 to f32
    %e = math.erf %f : f32
    %i = arith.fptosi %e : f32 to i8
    fused.yield %i : i8
  }
  func.return %y : tensor<512x1024xi8>
}
