// RUN: rt-opt %s --split-input-file -p fuse-attention-biases | filecheck %s

// Terms by rows and by columns of keys, of pictures of 8 columns; queries are in pictures of 4 columns.
// CHECK-LABEL: @decomposed
// CHECK: fused.attention %q, %k, %v, %r, %c {{{.*}}#fused.access<["d5", "d0", "d6", "d7"]>, #fused.access<["d6", "d0", "d5", "d8"]>], reduced = #trt.dims<["128", "16"]>, widths = array<i64: 4, 8>}
// CHECK-NEXT: ^bb0([[S:%.*]]: f32, [[R:%.*]]: f16, [[C:%.*]]: f16):
// CHECK-NEXT: [[A:%.*]] = arith.extf [[R]] : f16 to f32
// CHECK-NEXT: [[B:%.*]] = arith.extf [[C]] : f16 to f32
// CHECK-NEXT: [[D:%.*]] = arith.addf [[A]], [[B]] : f32
// CHECK-NEXT: [[E:%.*]] = arith.addf [[S]], [[D]] : f32
// CHECK-NEXT: fused.yield [[E]] : f32
// CHECK-NOT: fused.pointwise
func.func @decomposed(%q: tensor<2x20x16xf16>, %k: tensor<2x128x16xf16>, %v: tensor<2x128x16xf16>, %r: tensor<5x2x4x16xf16>, %c: tensor<4x2x5x8xf16>) -> tensor<2x20x16xf16> {
  %sum = fused.pointwise %r, %c {access = [#fused.access<["d1", "d0", "d2", "d3"]>, #fused.access<["d2", "d0", "d1", "d4"]>]} : (tensor<5x2x4x16xf16>, tensor<4x2x5x8xf16>) -> tensor<2x5x4x16x8xf16> {
  ^bb0(%0: f16, %1: f16):
    %2 = arith.extf %0 : f16 to f32
    %3 = arith.extf %1 : f16 to f32
    %4 = arith.addf %2, %3 : f32
    %5 = arith.truncf %4 : f32 to f16
    fused.yield %5 : f16
  }
  %b = fused.view %sum : (tensor<2x5x4x16x8xf16>) -> tensor<2x20x128xf16>
  %y = fused.attention %q, %k, %v, %b {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d0", "d1", "d2"]>], reduced = #trt.dims<["128", "16"]>} : (tensor<2x20x16xf16>, tensor<2x128x16xf16>, tensor<2x128x16xf16>, tensor<2x20x128xf16>) -> tensor<2x20x16xf16> {
  ^bb0(%s: f32, %e: f16):
    %w = arith.extf %e : f16 to f32
    %t = arith.addf %s, %w : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x20x16xf16>
}

// -----

// A term for queries and one for keys need no pictures.
// CHECK-LABEL: @queries_and_keys
// CHECK: fused.attention %q, %k, %v, %r, %c {{{.*}}#fused.access<["d0", "d1"]>, #fused.access<["d2"]>]
// CHECK-NOT: widths
// CHECK-NOT: fused.pointwise
func.func @queries_and_keys(%q: tensor<2x20x16xf16>, %k: tensor<2x24x16xf16>, %v: tensor<2x24x16xf16>, %r: tensor<2x20xf16>, %c: tensor<24xf16>) -> tensor<2x20x16xf16> {
  %b = fused.pointwise %r, %c {access = [#fused.access<["d0", "d1"]>, #fused.access<["d2"]>]} : (tensor<2x20xf16>, tensor<24xf16>) -> tensor<2x20x24xf16> {
  ^bb0(%0: f16, %1: f16):
    %2 = arith.mulf %0, %1 : f16
    fused.yield %2 : f16
  }
  %y = fused.attention %q, %k, %v, %b {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d0", "d1", "d2"]>], reduced = #trt.dims<["24", "16"]>} : (tensor<2x20x16xf16>, tensor<2x24x16xf16>, tensor<2x24x16xf16>, tensor<2x20x24xf16>) -> tensor<2x20x16xf16> {
  ^bb0(%s: f32, %e: f16):
    %w = arith.extf %e : f16 to f32
    %t = arith.addf %s, %w : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x20x16xf16>
}

// -----

// Rows of 7 keys are no groups of 8, and what others read is computed anyway.
// CHECK-LABEL: @odd_rows
// CHECK: fused.pointwise
// CHECK: fused.attention
// CHECK-NOT: widths
func.func @odd_rows(%q: tensor<2x20x16xf16>, %k: tensor<2x112x16xf16>, %v: tensor<2x112x16xf16>, %r: tensor<5x2x4x16xf16>, %c: tensor<4x2x5x7xf16>) -> tensor<2x20x16xf16> {
  %sum = fused.pointwise %r, %c {access = [#fused.access<["d1", "d0", "d2", "d3"]>, #fused.access<["d2", "d0", "d1", "d4"]>]} : (tensor<5x2x4x16xf16>, tensor<4x2x5x7xf16>) -> tensor<2x5x4x16x7xf16> {
  ^bb0(%0: f16, %1: f16):
    %2 = arith.addf %0, %1 : f16
    fused.yield %2 : f16
  }
  %b = fused.view %sum : (tensor<2x5x4x16x7xf16>) -> tensor<2x20x112xf16>
  %y = fused.attention %q, %k, %v, %b {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d0", "d1", "d2"]>], reduced = #trt.dims<["112", "16"]>} : (tensor<2x20x16xf16>, tensor<2x112x16xf16>, tensor<2x112x16xf16>, tensor<2x20x112xf16>) -> tensor<2x20x16xf16> {
  ^bb0(%s: f32, %e: f16):
    %w = arith.extf %e : f16 to f32
    %t = arith.addf %s, %w : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x20x16xf16>
}

// -----

// CHECK-LABEL: @read_twice
// CHECK: fused.pointwise
// CHECK: fused.attention %q, %k, %v, %b
func.func @read_twice(%q: tensor<2x20x16xf16>, %k: tensor<2x24x16xf16>, %v: tensor<2x24x16xf16>, %r: tensor<2x20xf16>, %c: tensor<24xf16>) -> (tensor<2x20x16xf16>, tensor<2x20x24xf16>) {
  %b = fused.pointwise %r, %c {access = [#fused.access<["d0", "d1"]>, #fused.access<["d2"]>]} : (tensor<2x20xf16>, tensor<24xf16>) -> tensor<2x20x24xf16> {
  ^bb0(%0: f16, %1: f16):
    %2 = arith.mulf %0, %1 : f16
    fused.yield %2 : f16
  }
  %y = fused.attention %q, %k, %v, %b {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>, #fused.access<["d0", "d1", "d2"]>], reduced = #trt.dims<["24", "16"]>} : (tensor<2x20x16xf16>, tensor<2x24x16xf16>, tensor<2x24x16xf16>, tensor<2x20x24xf16>) -> tensor<2x20x16xf16> {
  ^bb0(%s: f32, %e: f16):
    %w = arith.extf %e : f16 to f32
    %t = arith.addf %s, %w : f32
    fused.yield %t : f32
  }
  func.return %y, %b : tensor<2x20x16xf16>, tensor<2x20x24xf16>
}
