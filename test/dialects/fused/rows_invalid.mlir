// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @softmax_c1(%x: tensor<4xi32>) {
  // expected-error@+1 {{C1: fused.softmax needs floating-point numbers, not tensor<4xi32>}}
  %y = fused.softmax %x {axis = 0 : i64} : (tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----

func.func @softmax_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{C2: fused.softmax has no axis 1: its input is tensor<4xf32>}}
  %y = fused.softmax %x {axis = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @softmax_c3(%x: tensor<4xf32>) {
  // expected-error@+1 {{C3: fused.softmax of tensor<4xf32> is not tensor<5xf32>}}
  %y = fused.softmax %x {axis = 0 : i64} : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @softmax_c4(%x: tensor<4xf32>) {
  // expected-error@+1 {{C4: fused.softmax has 0 epilogues and 1 extra operands}}
  %y = fused.softmax %x, %x {axis = 0 : i64, access = [#fused.access<["d0"]>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @cumulative_c1(%x: tensor<4xf32>) {
  // expected-error@+1 {{C1: fused.cumulative has no axis -1: its input is tensor<4xf32>}}
  %y = fused.cumulative sum %x {axis = -1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @cumulative_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{C2: fused.cumulative of tensor<4xf32> is not tensor<4xf64>}}
  %y = fused.cumulative sum %x {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf64>
  func.return
}

// -----

func.func @topk_c1(%x: tensor<4xf32>) {
  // expected-error@+1 {{C1: fused.topk has no axis 1: its input is tensor<4xf32>}}
  %v, %i = fused.topk max %x {axis = 1 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  func.return
}

// -----

func.func @topk_c3(%x: tensor<4xf32>) {
  // expected-error@+1 {{C3: fused.topk normalises the largest floating-point numbers, not min of tensor<4xf32>}}
  %v, %i = fused.topk min %x {axis = 0 : i64, normalization = #fused<topk_normalization softmax>} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  func.return
}

// -----

func.func @topk_c3_integers(%x: tensor<4xi32>) {
  // expected-error@+1 {{C3: fused.topk normalises the largest floating-point numbers, not max of tensor<4xi32>}}
  %v, %i = fused.topk max %x {axis = 0 : i64, normalization = #fused<topk_normalization softmax>} : (tensor<4xi32>) -> (tensor<2xi32>, tensor<2xi64>)
  func.return
}

// -----

func.func @topk_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{C2: fused.topk of tensor<4xf32> does not give tensor<2xf32> and tensor<3xi64>}}
  %v, %i = fused.topk max %x {axis = 0 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<3xi64>)
  func.return
}
