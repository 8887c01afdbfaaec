// RUN: rt-opt %s -p split-reductions --split-input-file | filecheck %s

// Sums of columns: parts of the rows first. The threads of blocks share out the parts of each column.
// CHECK-LABEL: @columns
// CHECK:       [[P:%.*]] = fused.reduction add(%x) {access = [#fused.access<["128*d0 + d2", "d1"]>], reduced = #trt.dims<["128"]>} : (tensor<65536x1024xf16>) -> tensor<512x1024xf32> {
// CHECK:       [[Y:%.*]] = fused.reduction add([[P]]) {access = [#fused.access<["d1", "d0"]>], reduced = #trt.dims<["512"]>} : (tensor<512x1024xf32>) -> tensor<1024xf16> {
// CHECK:         arith.truncf
// CHECK:       func.return [[Y]]
func.func @columns(%x: tensor<65536x1024xf16>) -> tensor<1024xf16> {
  %y = fused.reduction add(%x) {access = [#fused.access<["d1", "d0"]>], reduced = #trt.dims<["65536"]>} : (tensor<65536x1024xf16>) -> tensor<1024xf16> {
  ^bb0(%e: f16):
    %w = arith.extf %e : f16 to f32
    fused.yield %w : f32
  } {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<1024xf16>
}

// -----

// Sums of rows are read along memory by blocks that hold them, and many results keep enough threads busy.
// CHECK-LABEL: @others
// CHECK-COUNT-2: fused.reduction
// CHECK-NOT:     fused.reduction
func.func @others(%x: tensor<256x65536xf32>, %z: tensor<256x4x1048576xf32>) -> (tensor<256xf32>, tensor<4x1048576xf32>) {
  %y = fused.reduction add(%x) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["65536"]>} : (tensor<256x65536xf32>) -> tensor<256xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %v = fused.reduction max(%z) {access = [#fused.access<["d2", "d0", "d1"]>], reduced = #trt.dims<["256"]>} : (tensor<256x4x1048576xf32>) -> tensor<4x1048576xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y, %v : tensor<256xf32>, tensor<4x1048576xf32>
}

// -----

// Averages of images whose channels lie innermost; the epilogue and what it reads come last.
// CHECK-LABEL: @average
// CHECK:       [[P:%.*]] = fused.reduction add(%x) {access = [#fused.access<["d1", "d2", "d0 + d5", "d6"]>], reduced = #trt.dims<["1", "56"]>} : {{.*}} -> tensor<56x2x64x1x1xf32> {
// CHECK:       fused.reduction add([[P]]) extras(%b : tensor<64xf32>) {access = [#fused.access<["d4", "d0", "d1", "d2", "d3"]>], extra_access = [#fused.access<["d1"]>], reduced = #trt.dims<["56"]>}
func.func @average(%x: tensor<2x64x56x56xf32, #trt.dims<["2", "64", "56", "56"], order = [0, 2, 3, 1]>>, %b: tensor<64xf32>) -> tensor<2x64x1x1xf32> {
  %y = fused.reduction add(%x) extras(%b : tensor<64xf32>) {access = [#fused.access<["d0", "d1", "d4", "d5"]>], extra_access = [#fused.access<["d1"]>], reduced = #trt.dims<["56", "56"]>} : (tensor<2x64x56x56xf32, #trt.dims<["2", "64", "56", "56"], order = [0, 2, 3, 1]>>) -> tensor<2x64x1x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32, %s: f32):
    %m = arith.mulf %acc, %s : f32
    fused.yield %m : f32
  }
  func.return %y : tensor<2x64x1x1xf32>
}

// -----

// A row that no block can hold: parts of it first, as few as keep all processors busy.
// CHECK-LABEL: @whole
// CHECK:       [[P:%.*]] = fused.reduction max(%x) {access = [#fused.access<["8*d0 + d1", "d2"]>], reduced = #trt.dims<["8", "1024"]>} : (tensor<4096x1024xf32>) -> tensor<512xf32> {
// CHECK:       fused.reduction max([[P]]) {access = [#fused.access<["d0"]>], reduced = #trt.dims<["512"]>} : (tensor<512xf32>) -> tensor<f32> {
// CHECK-NOT:   fused.reduction
func.func @whole(%x: tensor<4096x1024xf32>) -> tensor<f32> {
  %y = fused.reduction max(%x) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["4096", "1024"]>} : (tensor<4096x1024xf32>) -> tensor<f32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<f32>
}
