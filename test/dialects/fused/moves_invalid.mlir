// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @pad_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{C1: pre and stride of fused.pad need one entry per dimension}}
  %y = fused.pad %x {pre = #trt.dims<["0"]>} : (tensor<2x3xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

func.func @pad_c1_element(%x: tensor<2xf32>) {
  // expected-error@+1 {{C1: fused.pad of tensor<2xf32> is not tensor<4xf64>}}
  %y = fused.pad %x {pre = #trt.dims<["0"]>} : (tensor<2xf32>) -> tensor<4xf64>
  func.return
}

// -----

func.func @pad_c2(%x: tensor<2xf32>, %f: tensor<2xf32>) {
  // expected-error@+1 {{C2: the fill of fused.pad is one f32, not tensor<2xf32>}}
  %y = fused.pad %x, %f {pre = #trt.dims<["0"]>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @pad_c2_mode(%x: tensor<2xf32>, %f: tensor<f32>) {
  // expected-error@+1 {{C2: fused.pad in mode edge has no fill}}
  %y = fused.pad %x, %f {pre = #trt.dims<["0"]>, mode = #fused<pad_mode edge>} : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @gather_c1(%x: tensor<5xf32>, %i: tensor<3xf32>) {
  // expected-error@+1 {{C1: fused.gather needs integer indices, not f32}}
  %y = fused.gather %x, %i : (tensor<5xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @gather_c2(%x: tensor<5xf32>, %i: tensor<3xi32>) {
  // expected-error@+1 {{C2: the result of fused.gather has rank 1 and the data's elements, not tensor<3x1xf32>}}
  %y = fused.gather %x, %i : (tensor<5xf32>, tensor<3xi32>) -> tensor<3x1xf32>
  func.return
}

// -----

func.func @gather_c3(%x: tensor<5xf32>, %i: tensor<3x?xi32, #trt.dims<["3", "n"]>>) {
  // expected-error@+1 {{C3: the last length of the indices of fused.gather is a number}}
  %y = fused.gather %x, %i {mode = #fused<gather_mode nd>} : (tensor<5xf32>, tensor<3x?xi32, #trt.dims<["3", "n"]>>) -> tensor<3xf32>
  func.return
}

// -----

func.func @scatter_c1(%x: tensor<5xf32>, %i: tensor<3xi1>, %u: tensor<3xf32>) {
  // expected-error@+1 {{C1: fused.scatter needs integer indices, not i1}}
  %y = fused.scatter %x, %i, %u : (tensor<5xf32>, tensor<3xi1>, tensor<3xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @scatter_c2(%x: tensor<5xf32>, %i: tensor<3xi32>, %u: tensor<3xf16>) {
  // expected-error@+1 {{C2: fused.scatter cannot put tensor<3xf16> into tensor<5xf32>}}
  %y = fused.scatter %x, %i, %u : (tensor<5xf32>, tensor<3xi32>, tensor<3xf16>) -> tensor<5xf32>
  func.return
}

// -----

func.func @scatter_c3(%x: tensor<5x2xf32>, %i: tensor<3xi32>, %u: tensor<3xf32>) {
  // expected-error@+1 {{C3: fused.scatter in mode element cannot take indices tensor<3xi32> for tensor<5x2xf32>}}
  %y = fused.scatter %x, %i, %u : (tensor<5x2xf32>, tensor<3xi32>, tensor<3xf32>) -> tensor<5x2xf32>
  func.return
}

// -----

func.func @concat_c1() {
  // expected-error@+1 {{C1: fused.concat has no input}}
  %y = "fused.concat"() <{axis = 0 : i64}> : () -> tensor<5xf32>
  func.return
}

// -----

func.func @concat_c2(%x: tensor<5xf32>, %y: tensor<5xf16>) {
  // expected-error@+1 {{C2: fused.concat cannot put tensor<5xf16> into tensor<10xf32>}}
  %z = fused.concat %x, %y {axis = 0 : i64} : (tensor<5xf32>, tensor<5xf16>) -> tensor<10xf32>
  func.return
}

// -----

func.func @concat_c3(%x: tensor<5xf32>) {
  // expected-error@+1 {{C3: fused.concat has no axis 1: its result is tensor<5xf32>}}
  %z = fused.concat %x {axis = 1 : i64} : (tensor<5xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @concat_c4(%x: tensor<5xf32>) {
  // expected-error@+1 {{C4: fused.in_place has 2 flags for 1 inputs}}
  %z = fused.concat %x {axis = 0 : i64, fused.in_place = [true, true]} : (tensor<5xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @interleave_c1(%x: tensor<1x4x3xf32>) {
  // expected-error@+1 {{C1: fused.interleave has 1 inputs for 2 remainders}}
  %y = fused.interleave %x {factors = array<i64: 2>} : (tensor<1x4x3xf32>) -> tensor<1x4x5xf32>
  func.return
}

// -----

func.func @interleave_c2(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{C2: fused.interleave cannot put tensor<4x3xf32> into tensor<4x6xf32>}}
  %y = fused.interleave %x, %x {factors = array<i64: 2>} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
  func.return
}

// -----

func.func @interleave_c3(%x: tensor<1x4x3xf32>) {
  // expected-error@+1 {{C3: fused.interleave takes 1x4x2 as input 1, not tensor<1x4x3xf32>}}
  %y = fused.interleave %x, %x {factors = array<i64: 2>} : (tensor<1x4x3xf32>, tensor<1x4x3xf32>) -> tensor<1x4x5xf32>
  func.return
}

// -----

func.func @interleave_c4(%x: tensor<1x4x3xf32>) {
  // expected-error@+1 {{C4: fused.in_place has 1 flags for 2 inputs}}
  %y = fused.interleave %x, %x {factors = array<i64: 2>, fused.in_place = [true]} : (tensor<1x4x3xf32>, tensor<1x4x3xf32>) -> tensor<1x4x6xf32>
  func.return
}

// -----

func.func @view_c1(%x: tensor<5xf32>) {
  // expected-error@+1 {{C1: fused.view of tensor<5xf32> is not tensor<5xi32>}}
  %z = fused.view %x : (tensor<5xf32>) -> tensor<5xi32>
  func.return
}

// -----

func.func @view_c2(%x: tensor<5xf32>) {
  // expected-error@+1 {{C2: fused.view of tensor<5xf32> (5 elements) is not tensor<2x3xf32> (6)}}
  %z = fused.view %x : (tensor<5xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @view_c3(%x: tensor<6xf32>) {
  // expected-error@+1 {{C3: the elements of tensor<6xf32> do not lie like tensor<2x3xf32, #trt.dims<["2", "3"], order = [1, 0]>>}}
  %z = fused.view %x : (tensor<6xf32>) -> tensor<2x3xf32, #trt.dims<["2", "3"], order = [1, 0]>>
  func.return
}

// -----

func.func @resize_c1(%x: tensor<5xf32>) {
  // expected-error@+1 {{C1: fused.resize of tensor<5xf32> is not tensor<1x5xf32>}}
  %z = fused.resize nearest %x : (tensor<5xf32>) -> tensor<1x5xf32>
  func.return
}

// -----

func.func @resize_c2(%x: tensor<5xf32>) {
  // expected-error@+1 {{C2: fused.resize of tensor<5xf32> needs 1 scales and 2 roi edges}}
  %z = fused.resize nearest %x {scales = array<f64: 1.0, 2.0>} : (tensor<5xf32>) -> tensor<10xf32>
  func.return
}
