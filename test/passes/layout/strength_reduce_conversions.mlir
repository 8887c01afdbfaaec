// RUN: rt-opt %s -p strength-reduce-conversions --split-input-file | filecheck %s

// Bytes become floats, and the sum is rounded and clamped, by additions.
// CHECK-LABEL: @bytes
// CHECK:         ^bb0([[A:%.*]]: i8, [[B:%.*]]: ui8):
// CHECK:           [[WIDE:%.*]] = arith.extsi [[A]] : i8 to i32
// CHECK:           [[BITS:%.*]] = arith.constant 1262485504 : i32
// CHECK:           [[SHIFT:%.*]] = arith.constant 12582912.0 : f32
// CHECK:           [[MOVED:%.*]] = arith.addi [[WIDE]], [[BITS]] : i32
// CHECK:           [[FLOAT:%.*]] = arith.bitcast [[MOVED]] : i32 to f32
// CHECK:           arith.subf [[FLOAT]], [[SHIFT]] : f32
// CHECK:           arith.extui {{.*}} : i8 to i32
// CHECK:           [[SUM:%.*]] = arith.addf
// CHECK:           [[ROUNDED:%.*]] = arith.addf [[SUM]], {{.*}} : f32
// CHECK:           [[WHOLE:%.*]] = arith.bitcast [[ROUNDED]] : f32 to i32
// CHECK:           [[BACK:%.*]] = arith.subi [[WHOLE]], {{.*}} : i32
// CHECK:           [[LOW:%.*]] = arith.constant -128 : i32
// CHECK:           [[ABOVE:%.*]] = arith.maxsi [[BACK]], [[LOW]] : i32
// CHECK:           [[HIGH:%.*]] = arith.constant 127 : i32
// CHECK:           [[INSIDE:%.*]] = arith.minsi [[ABOVE]], [[HIGH]] : i32
// CHECK-NEXT:      [[BYTE:%.*]] = arith.trunci [[INSIDE]] : i32 to i8
// CHECK-NEXT:      fused.yield [[BYTE]] : i8
func.func @bytes(%x: tensor<16xi8>, %y: tensor<16xui8>) -> tensor<16xi8> {
  %r = fused.pointwise %x, %y {access = [#fused.access<["d0"]>, #fused.access<["d0"]>]} : (tensor<16xi8>, tensor<16xui8>) -> tensor<16xi8> {
  ^bb0(%0: i8, %1: ui8):
    %a = arith.sitofp %0 : i8 to f32
    %signless = arith.bitcast %1 : ui8 to i8
    %b = arith.uitofp %signless : i8 to f32
    %half = arith.constant 0.5 : f32
    %scaled = arith.mulf %b, %half : f32
    %sum = arith.addf %a, %scaled : f32
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %rounded = math.roundeven %sum : f32
    %above = arith.maximumf %rounded, %low : f32
    %inside = arith.minimumf %above, %high : f32
    %whole = arith.fptosi %inside : f32 to i32
    %byte = arith.trunci %whole : i32 to i8
    fused.yield %byte : i8
  }
  func.return %r : tensor<16xi8>
}

// -----

// A quotient that is rounded next is a corrected product; what the numbers imply needs no clamp.
// CHECK-LABEL: @quotient
// CHECK:           [[D:%.*]] = arith.constant 3.000000e+00 : f32
// CHECK:           [[R:%.*]] = arith.constant 0.333333343 : f32
// CHECK:           [[Q:%.*]] = arith.mulf [[X:%.*]], [[R]] : f32
// CHECK:           [[MINUS:%.*]] = arith.negf [[Q]] : f32
// CHECK:           [[REST:%.*]] = math.fma [[MINUS]], [[D]], [[X]] : f32
// CHECK:           math.fma [[REST]], [[R]], [[Q]] : f32
// CHECK-NOT:       arith.maximumf
// CHECK-NOT:       arith.fptosi
func.func @quotient(%x: tensor<16xi8>) -> tensor<16xi8> {
  %r = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<16xi8>) -> tensor<16xi8> {
  ^bb0(%0: i8):
    %a = arith.sitofp %0 : i8 to f32
    %d = arith.constant 3.0 : f32
    %quotient = arith.divf %a, %d : f32
    %low = arith.constant -128.0 : f32
    %rounded = math.roundeven %quotient : f32
    %above = arith.maximumf %rounded, %low : f32
    %whole = arith.fptosi %above : f32 to i8
    fused.yield %whole : i8
  }
  func.return %r : tensor<16xi8>
}

// -----

// Sums of products are as large as the weights allow: 4 * 127 * 128 here, and unknown where the input is a float.
// CHECK-LABEL: @sums
// CHECK-NOT:     arith.sitofp
// CHECK:         arith.bitcast {{.*}} : i32 to f32
func.func @sums(%x: tensor<8x4xi8>) -> tensor<8x2xf32> {
  %w = trt.constant {value = dense<127> : tensor<2x4xi8>} : tensor<2x4xi8>
  %y = fused.matmul %x, %w {transpose_rhs = true} : (tensor<8x4xi8>, tensor<2x4xi8>) -> tensor<8x2xf32> {
  ^bb0(%acc: i32):
    %wide = arith.sitofp %acc : i32 to f32
    fused.yield %wide : f32
  }
  func.return %y : tensor<8x2xf32>
}

// -----

// A rectifier between two roundings to the same bytes is a bound of one clamp.
// CHECK-LABEL: @rectified
// CHECK:         [[SCALED:%.*]] = arith.mulf
// CHECK-NOT:     arith.maximumf
// CHECK:         arith.addf [[SCALED]], {{%.*}} : f32
// CHECK:         [[WHOLE:%.*]] = arith.subi
// CHECK:         [[ZERO:%.*]] = arith.constant 0 : i32
// CHECK:         [[ABOVE:%.*]] = arith.maxsi [[WHOLE]], [[ZERO]] : i32
// CHECK:         arith.minsi [[ABOVE]], {{%.*}} : i32
// CHECK-NOT:     arith.minsi
// CHECK-NOT:     arith.addf
func.func @rectified(%x: tensor<16xi16>) -> tensor<16xi8> {
  %r = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<16xi16>) -> tensor<16xi8> {
  ^bb0(%0: i16):
    %wide = arith.sitofp %0 : i16 to f32
    %step = arith.constant 0.3 : f32
    %scaled = arith.mulf %wide, %step : f32
    %zero = arith.constant 0.0 : f32
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %rounded = math.roundeven %scaled : f32
    %moved = arith.addf %rounded, %zero : f32
    %above = arith.maximumf %moved, %low : f32
    %inside = arith.minimumf %above, %high : f32
    %relu = arith.maximumf %inside, %zero : f32
    %again = math.roundeven %relu : f32
    %moved2 = arith.addf %again, %zero : f32
    %above2 = arith.maximumf %moved2, %low : f32
    %inside2 = arith.minimumf %above2, %high : f32
    %whole = arith.fptosi %inside2 : f32 to i8
    fused.yield %whole : i8
  }
  func.return %r : tensor<16xi8>
}

// -----

// An i32 may be too large, and a float no number at all.
// CHECK-LABEL: @others
// CHECK:         arith.sitofp
// CHECK:         math.roundeven
// CHECK:         arith.fptosi
func.func @others(%x: tensor<16xi32>, %y: tensor<16xf32>) -> tensor<16xi8> {
  %r = fused.pointwise %x, %y {access = [#fused.access<["d0"]>, #fused.access<["d0"]>]} : (tensor<16xi32>, tensor<16xf32>) -> tensor<16xi8> {
  ^bb0(%0: i32, %1: f32):
    %a = arith.sitofp %0 : i32 to f32
    %sum = arith.addf %a, %1 : f32
    %high = arith.constant 127.0 : f32
    %rounded = math.roundeven %sum : f32
    %inside = arith.minimumf %rounded, %high : f32
    %whole = arith.fptosi %inside : f32 to i8
    fused.yield %whole : i8
  }
  func.return %r : tensor<16xi8>
}

// -----

// What is summed, too.
// CHECK-LABEL: @mean
// CHECK:         ^bb0({{%.*}}: i8):
// CHECK-NOT:       tofp
// CHECK-NOT:       divf
// CHECK:           arith.bitcast {{.*}} : i32 to f32
// CHECK:           fused.yield {{%.*}} : f32
func.func @mean(%x: tensor<8x49xi8>) -> tensor<8x1xf32> {
  %r = fused.reduction add(%x) {access = [#fused.access<["d0", "d2"]>], reduced = #trt.dims<["49"]>} : (tensor<8x49xi8>) -> tensor<8x1xf32> {
  ^bb0(%0: i8):
    %a = arith.sitofp %0 : i8 to f32
    %one = arith.constant 1.0 : f32
    %b = arith.divf %a, %one : f32
    fused.yield %b : f32
  } {
  ^bb0(%sum: f32):
    fused.yield %sum : f32
  }
  func.return %r : tensor<8x1xf32>
}

// -----

// An error function is bounded, so that what is rounded behind it needs no division, and its own argument neither.
// CHECK-LABEL: @gelu
// CHECK-NOT:       arith.divf
// CHECK-NOT:       arith.fptosi
func.func @gelu(%x: tensor<16xi8>) -> tensor<16xi8> {
  %r = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<16xi8>) -> tensor<16xi8> {
  ^bb0(%0: i8):
    %f = arith.sitofp %0 : i8 to f32
    %s = arith.constant 0.03 : f32
    %a = arith.mulf %f, %s : f32
    %d = arith.constant 1.41421354 : f32
    %b = arith.divf %a, %d : f32
    %e = math.erf %b : f32
    %c = arith.mulf %a, %e : f32
    %t = arith.constant 0.021 : f32
    %q = arith.divf %c, %t : f32
    %rounded = math.roundeven %q : f32
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %above = arith.maximumf %rounded, %low : f32
    %inside = arith.minimumf %above, %high : f32
    %whole = arith.fptosi %inside : f32 to i32
    %byte = arith.trunci %whole : i32 to i8
    fused.yield %byte : i8
  }
  func.return %r : tensor<16xi8>
}
