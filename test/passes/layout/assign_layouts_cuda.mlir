// RUN: rt-opt %s -p 'assign-layouts{target=cuda}' --split-input-file | filecheck %s
// RUN: rt-opt %s -p 'assign-layouts{target=cuda arch=sm_80}' --split-input-file | filecheck %s --check-prefix OLD
// RUN: rt-opt %s -p 'assign-layouts{target=cuda arch=sm_100a}' --split-input-file | filecheck %s --check-prefix TENSOR
// RUN: rt-opt %s -p 'assign-layouts{target=cuda features=tf32}' --split-input-file | filecheck %s --check-prefix TF32

// Large images with short rows are copied to channels last in front of convolutions; what stands between follows. The last convolution
// writes its results as the caller wants them.
// Without warpgroups or tensor memory convolutions read plain images.
// CHECK-LABEL: @between
// OLD-LABEL: @between
// OLD-NOT: fused.reformat
// OLD: func.return
// TENSOR-LABEL: @between
// TENSOR: fused.reformat %x
// TENSOR-COUNT-2: fused.convolution {{.*}} -> tensor<64x64x28x28xf16, #trt.dims<["64", "64", "28", "28"], order = [0, 2, 3, 1]>>
// TENSOR: func.return
func.func @between(%x: tensor<64x64x28x28xf16>) -> tensor<64x64x28x28xf16> {
  // CHECK: [[IN:%.*]] = fused.reformat %x : (tensor<64x64x28x28xf16>) -> tensor<64x64x28x28xf16, #trt.dims<["64", "64", "28", "28"], order = [0, 2, 3, 1]>>
  // CHECK: [[A:%.*]] = fused.convolution [[IN]], %k {{.*}} -> tensor<64x64x28x28xf16, #trt.dims<["64", "64", "28", "28"], order = [0, 2, 3, 1]>>
  // CHECK: [[B:%.*]] = fused.pointwise [[A]] {{.*}} -> tensor<64x64x28x28xf16, #trt.dims<["64", "64", "28", "28"], order = [0, 2, 3, 1]>>
  // CHECK: [[C:%.*]] = fused.convolution [[B]], %k {{.*}} -> tensor<64x64x28x28xf16> {
  // CHECK-NOT: fused.reformat
  // CHECK: func.return [[C]]
  %k = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<64x64x28x28xf16>, tensor<64x64x3x3xf16>) -> tensor<64x64x28x28xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %b = fused.pointwise %a {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<64x64x28x28xf16>) -> tensor<64x64x28x28xf16> {
  ^bb0(%0: f16):
    %1 = arith.negf %0 : f16
    fused.yield %1 : f16
  }
  %c = fused.convolution %b, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<64x64x28x28xf16>, tensor<64x64x3x3xf16>) -> tensor<64x64x28x28xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %c : tensor<64x64x28x28xf16>
}

// -----

// With three channels a convolution reads single elements anyway: it takes the plain input.
// CHECK-LABEL: @stem
func.func @stem(%x: tensor<8x3x224x224xf16>) -> tensor<8x64x1x1xf16> {
  // CHECK: fused.convolution %x, %k {{.*}} -> tensor<8x64x224x224xf16, #trt.dims<["8", "64", "224", "224"], order = [0, 2, 3, 1]>>
  %k = trt.constant {value = dense<0.5> : tensor<64x3x3x3xf16>} : tensor<64x3x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x3x224x224xf16>, tensor<64x3x3x3xf16>) -> tensor<8x64x224x224xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %k2 = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %b = fused.convolution %a, %k2 {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x64x224x224xf16>, tensor<64x64x3x3xf16>) -> tensor<8x64x224x224xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  // CHECK: fused.reduction
  // CHECK-NOT: fused.reformat
  %m = fused.reduction max(%b) {access = [#fused.access<["d0", "d1", "d4", "d5"]>], reduced = #trt.dims<["224", "224"]>} : (tensor<8x64x224x224xf16>) -> tensor<8x64x1x1xf16> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  } {
  ^bb0(%e: f16):
    fused.yield %e : f16
  }
  func.return %m : tensor<8x64x1x1xf16>
}

// -----

// Fifty channels do not fill their vectors: the copy has rows of fifty-six.
// CHECK-LABEL: @gaps
func.func @gaps(%x: tensor<32x50x28x28xf16>) -> tensor<32x64x1x1xf16> {
  // CHECK: [[IN:%.*]] = fused.reformat %x : (tensor<32x50x28x28xf16>) -> tensor<32x50x28x28xf16, #trt.dims<["32", "50", "28", "28"], order = [0, 2, 3, 1], row = 56>>
  // CHECK: fused.convolution [[IN]], %k
  %k = trt.constant {value = dense<0.5> : tensor<64x50x3x3xf16>} : tensor<64x50x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<32x50x28x28xf16>, tensor<64x50x3x3xf16>) -> tensor<32x64x28x28xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %k2 = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %b = fused.convolution %a, %k2 {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<32x64x28x28xf16>, tensor<64x64x3x3xf16>) -> tensor<32x64x28x28xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  // CHECK: fused.reduction
  // CHECK-NOT: fused.reformat
  %m = fused.reduction max(%b) {access = [#fused.access<["d0", "d1", "d4", "d5"]>], reduced = #trt.dims<["28", "28"]>} : (tensor<32x64x28x28xf16>) -> tensor<32x64x1x1xf16> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  } {
  ^bb0(%e: f16):
    fused.yield %e : f16
  }
  func.return %m : tensor<32x64x1x1xf16>
}

// -----

// Parts are joined along the channels where they lie; the part that comes from elsewhere is copied into the result.
// CHECK-LABEL: @joined
func.func @joined(%x: tensor<32x64x28x28xf16>) -> tensor<32x64x1x1xf16> {
  // CHECK: [[IN:%.*]] = fused.reformat %x
  // CHECK: [[A:%.*]] = fused.convolution [[IN]], %k
  // CHECK: fused.concat [[A]], [[IN]] {{.*}} -> tensor<32x128x28x28xf16, #trt.dims<["32", "128", "28", "28"], order = [0, 2, 3, 1]>>
  // CHECK-NOT: fused.reformat
  %k = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<32x64x28x28xf16>, tensor<64x64x3x3xf16>) -> tensor<32x64x28x28xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %j = fused.concat %a, %x {axis = 1 : i64, fused.in_place = [true, false]} : (tensor<32x64x28x28xf16>, tensor<32x64x28x28xf16>) -> tensor<32x128x28x28xf16>
  %k2 = trt.constant {value = dense<0.5> : tensor<64x128x3x3xf16>} : tensor<64x128x3x3xf16>
  %b = fused.convolution %j, %k2 {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<32x128x28x28xf16>, tensor<64x128x3x3xf16>) -> tensor<32x64x28x28xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %m = fused.reduction max(%b) {access = [#fused.access<["d0", "d1", "d4", "d5"]>], reduced = #trt.dims<["28", "28"]>} : (tensor<32x64x28x28xf16>) -> tensor<32x64x1x1xf16> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  } {
  ^bb0(%e: f16):
    fused.yield %e : f16
  }
  func.return %m : tensor<32x64x1x1xf16>
}

// -----

// A transposing read of the input is the copy.
// CHECK-LABEL: @transposed
func.func @transposed(%x: tensor<8x56x56x64xf16>) -> tensor<8x56x56x64xf16> {
  // CHECK: [[IN:%.*]] = fused.pointwise %x {{.*}} -> tensor<8x64x56x56xf16, #trt.dims<["8", "64", "56", "56"], order = [0, 2, 3, 1]>>
  // CHECK-NOT: fused.reformat
  // CHECK: [[A:%.*]] = fused.convolution [[IN]], %k {{.*}} -> tensor<8x64x56x56xf16, #trt.dims<["8", "64", "56", "56"], order = [0, 2, 3, 1]>>
  // CHECK: fused.pointwise [[A]] {{.*}} -> tensor<8x56x56x64xf16>
  %k = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %t = fused.pointwise %x {access = [#fused.access<["d0", "d2", "d3", "d1"]>]} : (tensor<8x56x56x64xf16>) -> tensor<8x64x56x56xf16> {
  ^bb0(%0: f16):
    fused.yield %0 : f16
  }
  %a = fused.convolution %t, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x64x56x56xf16>, tensor<64x64x3x3xf16>) -> tensor<8x64x56x56xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %u = fused.pointwise %a {access = [#fused.access<["d0", "d3", "d1", "d2"]>]} : (tensor<8x64x56x56xf16>) -> tensor<8x56x56x64xf16> {
  ^bb0(%0: f16):
    fused.yield %0 : f16
  }
  func.return %u : tensor<8x56x56x64xf16>
}

// -----

// Without a convolution nothing is worth a copy.
// CHECK-LABEL: @elementwise
// CHECK-NOT: order =
func.func @elementwise(%x: tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32> {
  %y = fused.pointwise %x {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32> {
  ^bb0(%a: f32):
    %b = arith.addf %a, %a : f32
    fused.yield %b : f32
  }
  func.return %y : tensor<1x32x8x8xf32>
}

// -----

// Both halves of a tensor are joined with what is made of the second one: the whole tensor lies in the result, the second
// half is read where it lies, and so is what another convolution reads.
// CHECK-LABEL: @partial_stages
func.func @partial_stages(%x: tensor<32x64x28x28xf16>) -> tensor<32x64x1x1xf16> {
  // CHECK: [[A:%.*]] = fused.convolution
  // CHECK: [[H:%.*]] = fused.pointwise [[A]] {{.*}}fused.shown
  // CHECK: [[B:%.*]] = fused.convolution [[H]], %k2
  // CHECK: fused.concat [[A]], [[B]] {{.*}}fused.in_place = [true, true]
  // CHECK: fused.convolution [[B]], %k2
  %k = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<32x64x28x28xf16>, tensor<64x64x3x3xf16>) -> tensor<32x64x28x28xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %l = fused.pointwise %a {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<32x64x28x28xf16>) -> tensor<32x32x28x28xf16> {
  ^bb0(%0: f16):
    fused.yield %0 : f16
  }
  %r = fused.pointwise %a {access = [#fused.access<["d0", "d1 + 32", "d2", "d3"]>]} : (tensor<32x64x28x28xf16>) -> tensor<32x32x28x28xf16> {
  ^bb0(%0: f16):
    fused.yield %0 : f16
  }
  %k2 = trt.constant {value = dense<0.5> : tensor<32x32x3x3xf16>} : tensor<32x32x3x3xf16>
  %b = fused.convolution %r, %k2 {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<32x32x28x28xf16>, tensor<32x32x3x3xf16>) -> tensor<32x32x28x28xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %j = fused.concat %l, %r, %b {axis = 1 : i64} : (tensor<32x32x28x28xf16>, tensor<32x32x28x28xf16>, tensor<32x32x28x28xf16>) -> tensor<32x96x28x28xf16>
  %d = fused.convolution %b, %k2 {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<32x32x28x28xf16>, tensor<32x32x3x3xf16>) -> tensor<32x32x28x28xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %k3 = trt.constant {value = dense<0.5> : tensor<32x96x3x3xf16>} : tensor<32x96x3x3xf16>
  %e = fused.convolution %j, %k3 {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<32x96x28x28xf16>, tensor<32x96x3x3xf16>) -> tensor<32x32x28x28xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %o = fused.concat %d, %e {axis = 1 : i64, fused.in_place = [true, true]} : (tensor<32x32x28x28xf16>, tensor<32x32x28x28xf16>) -> tensor<32x64x28x28xf16>
  %m = fused.reduction max(%o) {access = [#fused.access<["d0", "d1", "d4", "d5"]>], reduced = #trt.dims<["28", "28"]>} : (tensor<32x64x28x28xf16>) -> tensor<32x64x1x1xf16> {
  ^bb0(%e1: f16):
    fused.yield %e1 : f16
  } {
  ^bb0(%e1: f16):
    fused.yield %e1 : f16
  }
  func.return %m : tensor<32x64x1x1xf16>
}

// -----

// Rows of 24 bytes are filled up, so that convolutions read whole vectors; a copy of the input is not needed for that.
// CHECK-LABEL: @bytes
func.func @bytes(%x: tensor<8x32x56x56xi8>) -> tensor<8x32x56x56xi8> {
  // CHECK: [[IN:%.*]] = fused.reformat %x : (tensor<8x32x56x56xi8>) -> tensor<8x32x56x56xi8, #trt.dims<["8", "32", "56", "56"], order = [0, 2, 3, 1]>>
  // CHECK: [[A:%.*]] = fused.convolution [[IN]], %k {{.*}} -> tensor<8x24x56x56xi8, #trt.dims<["8", "24", "56", "56"], order = [0, 2, 3, 1], row = 32>>
  // CHECK: [[B:%.*]] = fused.convolution [[A]], %k2 {{.*}} -> tensor<8x32x56x56xi8, #trt.dims<["8", "32", "56", "56"], order = [0, 2, 3, 1]>>
  %k = trt.constant {value = dense<1> : tensor<24x32x3x3xi8>} : tensor<24x32x3x3xi8>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x32x56x56xi8>, tensor<24x32x3x3xi8>) -> tensor<8x24x56x56xi8> {
  ^bb0(%acc: i32):
    %h = arith.trunci %acc : i32 to i8
    fused.yield %h : i8
  }
  %k2 = trt.constant {value = dense<1> : tensor<32x24x3x3xi8>} : tensor<32x24x3x3xi8>
  %b = fused.convolution %a, %k2 {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x24x56x56xi8>, tensor<32x24x3x3xi8>) -> tensor<8x32x56x56xi8> {
  ^bb0(%acc: i32):
    %h = arith.trunci %acc : i32 to i8
    fused.yield %h : i8
  }
  func.return %b : tensor<8x32x56x56xi8>
}

// -----

// Floats stay as they lie, unless matrix units may read them.
// CHECK-LABEL: @floats
// TF32-LABEL: @floats
func.func @floats(%x: tensor<8x64x56x56xf32>) -> tensor<8x64x56x56xf32> {
  // CHECK-NOT: fused.reformat
  // TF32: [[IN:%.*]] = fused.reformat %x
  // TF32: fused.convolution [[IN]], %k {{.*}} -> tensor<8x64x56x56xf32> {
  // TF32-NOT: fused.reformat
  %k = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf32>} : tensor<64x64x3x3xf32>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x56x56xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  // CHECK: func.return
  // TF32: func.return
  func.return %a : tensor<8x64x56x56xf32>
}

// -----

// Convolutions of floats in groups read their channels innermost, too, where matrix units multiply TF32.
// TF32-LABEL: @groups_of_floats
// TF32: [[X:%.*]] = fused.reformat %x
// TF32: fused.convolution [[X]]
func.func @groups_of_floats(%x: tensor<8x64x56x56xf32>) -> tensor<8x64x56x56xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<64x16x3x3xf32>} : tensor<64x16x3x3xf32>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, groups = 4 : i64} : (tensor<8x64x56x56xf32>, tensor<64x16x3x3xf32>) -> tensor<8x64x56x56xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %a : tensor<8x64x56x56xf32>
}

// -----

// Groups of a few results have no such kernel.
// TF32-LABEL: @narrow_groups_of_floats
// TF32-NOT: fused.reformat
// TF32: func.return
func.func @narrow_groups_of_floats(%x: tensor<8x64x56x56xf32>) -> tensor<8x64x56x56xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<64x4x3x3xf32>} : tensor<64x4x3x3xf32>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, groups = 16 : i64} : (tensor<8x64x56x56xf32>, tensor<64x4x3x3xf32>) -> tensor<8x64x56x56xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %a : tensor<8x64x56x56xf32>
}

// -----

// Convolutions of halves whose rows are long and aligned read planes and write planes: no launch reorders tensors around them.
// CHECK-LABEL: @long_rows
// CHECK-NOT: fused.reformat
// CHECK: func.return
func.func @long_rows(%x: tensor<16x64x128x128xf16>) -> tensor<16x128x128x128xf16> {
  %k = trt.constant {value = dense<0.5> : tensor<128x64x3x3xf16>} : tensor<128x64x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<16x64x128x128xf16>, tensor<128x64x3x3xf16>) -> tensor<16x128x128x128xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %a : tensor<16x128x128x128xf16>
}

// -----

// So do those whose rows begin anywhere, as the threads of a warp write runs of a row.
// CHECK-LABEL: @long_rows_that_are_not_aligned
// CHECK-NOT: fused.reformat
// CHECK: func.return
func.func @long_rows_that_are_not_aligned(%x: tensor<16x64x128x128xf16>) -> tensor<16x128x126x126xf16> {
  %k = trt.constant {value = dense<0.5> : tensor<128x64x3x3xf16>} : tensor<128x64x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<16x64x128x128xf16>, tensor<128x64x3x3xf16>) -> tensor<16x128x126x126xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %a : tensor<16x128x126x126xf16>
}

// -----

// Few channels, and a large result whose rows are of odd length: runs of its planes are written, and nothing follows.
// CHECK-LABEL: @few_channels_to_planes
// CHECK-NOT: fused.reformat
// CHECK: func.return
func.func @few_channels_to_planes(%x: tensor<64x8x128x128xf16>) -> tensor<64x64x126x126xf16> {
  %k = trt.constant {value = dense<0.5> : tensor<64x8x3x3xf16>} : tensor<64x8x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<64x8x128x128xf16>, tensor<64x8x3x3xf16>) -> tensor<64x64x126x126xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %a : tensor<64x64x126x126xf16>
}

// -----

// So do those whose planes are of odd size and begin between words.
// CHECK-LABEL: @few_channels_to_odd_planes
// CHECK-NOT: fused.reformat
// CHECK: func.return
func.func @few_channels_to_odd_planes(%x: tensor<64x8x127x127xf16>) -> tensor<64x64x125x125xf16> {
  %k = trt.constant {value = dense<0.5> : tensor<64x8x3x3xf16>} : tensor<64x8x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<64x8x127x127xf16>, tensor<64x8x3x3xf16>) -> tensor<64x64x125x125xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %a : tensor<64x64x125x125xf16>
}

// -----

// What reads channels from a few channels lays out the rows of the windows first; a mean over pixels does without.
// CHECK-LABEL: @mean_of_few_channels
// CHECK-NOT: order
// CHECK: func.return
func.func @mean_of_few_channels(%x: tensor<128x3x16x32x32xf16>) -> tensor<128x16xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<16x3x3x3x3xf16>} : tensor<16x3x3x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1, 1>, pre_padding = array<i64: 0, 0, 0>, post_padding = array<i64: 0, 0, 0>} : (tensor<128x3x16x32x32xf16>, tensor<16x3x3x3x3xf16>) -> tensor<128x16x14x30x30xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %m = fused.reduction add(%a) {access = [#fused.access<["d0", "d1", "d2", "d3", "d4"]>], reduced = #trt.dims<["14", "30", "30"]>} : (tensor<128x16x14x30x30xf16>) -> tensor<128x16xf32> {
  ^bb0(%e: f16):
    %w = arith.extf %e : f16 to f32
    fused.yield %w : f32
  } {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %m : tensor<128x16xf32>
}

// -----

// A deconvolution whose results interleave reads planes and writes planes: no launch reorders tensors around it.
// CHECK-LABEL: @deconvolution
// CHECK-NOT: fused.reformat
// CHECK: func.return
func.func @deconvolution(%x: tensor<8x32x64x64xf16>) -> tensor<8x64x128x128xf16> {
  %k = trt.constant {value = dense<0.5> : tensor<32x64x4x4xf16>} : tensor<32x64x4x4xf16>
  %a = fused.convolution %x, %k {transposed = true, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x32x64x64xf16>, tensor<32x64x4x4xf16>) -> tensor<8x64x128x128xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %a : tensor<8x64x128x128xf16>
}

// -----

// Between convolutions it has its channels innermost.
// CHECK-LABEL: @deconvolution_between
// CHECK: fused.reformat %x
// CHECK-COUNT-2: fused.convolution {{.*}} -> tensor<8x64x128x128xf16, {{.*}}order = [0, 2, 3, 1]>>
// CHECK: fused.convolution {{.*}} -> tensor<8x64x128x128xf16> {
// CHECK-NOT: fused.reformat
// CHECK: func.return
func.func @deconvolution_between(%x: tensor<8x64x64x64xf16>) -> tensor<8x64x128x128xf16> {
  %k = trt.constant {value = dense<0.5> : tensor<64x64x4x4xf16>} : tensor<64x64x4x4xf16>
  %c = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %a = fused.convolution %x, %k {transposed = true, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x64x64x64xf16>, tensor<64x64x4x4xf16>) -> tensor<8x64x128x128xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %b = fused.convolution %a, %c {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x64x128x128xf16>, tensor<64x64x3x3xf16>) -> tensor<8x64x128x128xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %y = fused.convolution %b, %c {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x64x128x128xf16>, tensor<64x64x3x3xf16>) -> tensor<8x64x128x128xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<8x64x128x128xf16>
}

// -----

// Poolings of windows that lie inside of the input read channels that are innermost, and write planes.
// CHECK-LABEL: @pooled_to_planes
// CHECK: fused.convolution {{.*}} -> tensor<64x64x28x28xf16, {{.*}}order = [0, 2, 3, 1]>>
// CHECK: fused.window {{.*}} -> tensor<64x64x14x14xf16> {
// CHECK-NOT: fused.reformat
// CHECK: func.return
func.func @pooled_to_planes(%x: tensor<64x64x28x28xf16>) -> tensor<64x64x14x14xf16> {
  %k = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %a = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<64x64x28x28xf16>, tensor<64x64x3x3xf16>) -> tensor<64x64x28x28xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %p = fused.window max %a {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<64x64x28x28xf16>) -> tensor<64x64x14x14xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %p : tensor<64x64x14x14xf16>
}
