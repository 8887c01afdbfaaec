// RUN: rt-opt %s --split-input-file -p fuse-sibling-products,eliminate-dead-layers,verify-dominance --print-debuginfo | filecheck %s
// RUN: rt-opt %s --split-input-file -p fuse-sibling-products{few_rows=true},verify-dominance | filecheck %s --check-prefix=ROWS

// CHECK-LABEL: @queries_keys_values
// CHECK: [[W:%.*]] = trt.constant {{.*}} : tensor<1x4x12xf16>
// CHECK: [[B:%.*]] = trt.constant {value = dense<[0.0{{.*}}, 0.0{{.*}}, 0.0{{.*}}, 0.0{{.*}}, 1.0{{.*}}, 1.0
// CHECK: [[J:%.*]] = fused.matmul %x, [[W]], [[B]] {{.*}} -> tensor<1x5x12xf16>
// CHECK: loc(fused["q", "k", "v"])
// CHECK: fused.attention [[J]], [[J]], [[J]] {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3 + 4"]>, #fused.access<["d0", "d2", "d4 + 8"]>]
func.func @queries_keys_values(%x: tensor<1x5x4xf16>) -> tensor<1x5x4xf16> {
  %wq = trt.constant {value = dense<1.0> : tensor<1x4x4xf16>} : tensor<1x4x4xf16>
  %bq = trt.constant {value = dense<0.0> : tensor<4xf32>} : tensor<4xf32>
  %q = fused.matmul %x, %wq, %bq {access = [#fused.access<["d2"]>]} : (tensor<1x5x4xf16>, tensor<1x4x4xf16>, tensor<4xf32>) -> tensor<1x5x4xf16> {
  ^bb0(%sq: f32, %eq: f32):
    %tq = arith.addf %sq, %eq : f32
    %hq = arith.truncf %tq : f32 to f16
    fused.yield %hq : f16
  } loc("q")
  %wk = trt.constant {value = dense<2.0> : tensor<1x4x4xf16>} : tensor<1x4x4xf16>
  %bk = trt.constant {value = dense<1.0> : tensor<4xf32>} : tensor<4xf32>
  %k = fused.matmul %x, %wk, %bk {access = [#fused.access<["d2"]>]} : (tensor<1x5x4xf16>, tensor<1x4x4xf16>, tensor<4xf32>) -> tensor<1x5x4xf16> {
  ^bb0(%sk: f32, %ek: f32):
    %tk = arith.addf %sk, %ek : f32
    %hk = arith.truncf %tk : f32 to f16
    fused.yield %hk : f16
  } loc("k")
  %wv = trt.constant {value = dense<3.0> : tensor<1x4x4xf16>} : tensor<1x4x4xf16>
  %bv = trt.constant {value = dense<2.0> : tensor<4xf32>} : tensor<4xf32>
  %v = fused.matmul %x, %wv, %bv {access = [#fused.access<["d2"]>]} : (tensor<1x5x4xf16>, tensor<1x4x4xf16>, tensor<4xf32>) -> tensor<1x5x4xf16> {
  ^bb0(%sv: f32, %ev: f32):
    %tv = arith.addf %sv, %ev : f32
    %hv = arith.truncf %tv : f32 to f16
    fused.yield %hv : f16
  } loc("v")
  %a = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["5", "4"]>} : (tensor<1x5x4xf16>, tensor<1x5x4xf16>, tensor<1x5x4xf16>) -> tensor<1x5x4xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return %a : tensor<1x5x4xf16>
}

// -----

// Different epilogues: the two that are alike are joined.
// CHECK-LABEL: @unlike
// CHECK: fused.matmul %x, {{.*}} -> tensor<1x5x4xf16>
// CHECK: fused.matmul %x, {{.*}} -> tensor<1x5x8xf16>
// CHECK-NOT: fused.matmul
func.func @unlike(%x: tensor<1x5x4xf16>) -> tensor<1x5x4xf16> {
  %wq = trt.constant {value = dense<1.0> : tensor<1x4x4xf16>} : tensor<1x4x4xf16>
  %bq = trt.constant {value = dense<0.0> : tensor<4xf32>} : tensor<4xf32>
  %q = fused.matmul %x, %wq, %bq {access = [#fused.access<["d2"]>]} : (tensor<1x5x4xf16>, tensor<1x4x4xf16>, tensor<4xf32>) -> tensor<1x5x4xf16> {
  ^bb0(%sq: f32, %eq: f32):
    %tq = arith.mulf %sq, %eq : f32
    %hq = arith.truncf %tq : f32 to f16
    fused.yield %hq : f16
  } loc("q")
  %wk = trt.constant {value = dense<2.0> : tensor<1x4x4xf16>} : tensor<1x4x4xf16>
  %bk = trt.constant {value = dense<1.0> : tensor<4xf32>} : tensor<4xf32>
  %k = fused.matmul %x, %wk, %bk {access = [#fused.access<["d2"]>]} : (tensor<1x5x4xf16>, tensor<1x4x4xf16>, tensor<4xf32>) -> tensor<1x5x4xf16> {
  ^bb0(%sk: f32, %ek: f32):
    %tk = arith.addf %sk, %ek : f32
    %hk = arith.truncf %tk : f32 to f16
    fused.yield %hk : f16
  } loc("k")
  %wv = trt.constant {value = dense<3.0> : tensor<1x4x4xf16>} : tensor<1x4x4xf16>
  %bv = trt.constant {value = dense<2.0> : tensor<4xf32>} : tensor<4xf32>
  %v = fused.matmul %x, %wv, %bv {access = [#fused.access<["d2"]>]} : (tensor<1x5x4xf16>, tensor<1x4x4xf16>, tensor<4xf32>) -> tensor<1x5x4xf16> {
  ^bb0(%sv: f32, %ev: f32):
    %tv = arith.addf %sv, %ev : f32
    %hv = arith.truncf %tv : f32 to f16
    fused.yield %hv : f16
  } loc("v")
  %a = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["5", "4"]>} : (tensor<1x5x4xf16>, tensor<1x5x4xf16>, tensor<1x5x4xf16>) -> tensor<1x5x4xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return %a : tensor<1x5x4xf16>
}

// -----

// The network returns the keys, so they stay on their own; values come from another tensor.
// CHECK-LABEL: @other_readers
// CHECK-COUNT-3: fused.matmul {{.*}} -> tensor<1x5x4xf16>
func.func @other_readers(%x: tensor<1x5x4xf16>, %z: tensor<1x5x4xf16>) -> (tensor<1x5x4xf16>, tensor<1x5x4xf16>) {
  %wq = trt.constant {value = dense<1.0> : tensor<1x4x4xf16>} : tensor<1x4x4xf16>
  %bq = trt.constant {value = dense<0.0> : tensor<4xf32>} : tensor<4xf32>
  %q = fused.matmul %x, %wq, %bq {access = [#fused.access<["d2"]>]} : (tensor<1x5x4xf16>, tensor<1x4x4xf16>, tensor<4xf32>) -> tensor<1x5x4xf16> {
  ^bb0(%sq: f32, %eq: f32):
    %tq = arith.addf %sq, %eq : f32
    %hq = arith.truncf %tq : f32 to f16
    fused.yield %hq : f16
  } loc("q")
  %wk = trt.constant {value = dense<2.0> : tensor<1x4x4xf16>} : tensor<1x4x4xf16>
  %bk = trt.constant {value = dense<1.0> : tensor<4xf32>} : tensor<4xf32>
  %k = fused.matmul %x, %wk, %bk {access = [#fused.access<["d2"]>]} : (tensor<1x5x4xf16>, tensor<1x4x4xf16>, tensor<4xf32>) -> tensor<1x5x4xf16> {
  ^bb0(%sk: f32, %ek: f32):
    %tk = arith.addf %sk, %ek : f32
    %hk = arith.truncf %tk : f32 to f16
    fused.yield %hk : f16
  } loc("k")
  %wv = trt.constant {value = dense<3.0> : tensor<1x4x4xf16>} : tensor<1x4x4xf16>
  %bv = trt.constant {value = dense<2.0> : tensor<4xf32>} : tensor<4xf32>
  %v = fused.matmul %z, %wv, %bv {access = [#fused.access<["d2"]>]} : (tensor<1x5x4xf16>, tensor<1x4x4xf16>, tensor<4xf32>) -> tensor<1x5x4xf16> {
  ^bb0(%sv: f32, %ev: f32):
    %tv = arith.addf %sv, %ev : f32
    %hv = arith.truncf %tv : f32 to f16
    fused.yield %hv : f16
  } loc("v")
  %a = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["5", "4"]>} : (tensor<1x5x4xf16>, tensor<1x5x4xf16>, tensor<1x5x4xf16>) -> tensor<1x5x4xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return %a, %k : tensor<1x5x4xf16>, tensor<1x5x4xf16>
}

// -----

// Products of few rows are joined whoever reads them, where that is asked for; views of theirs are slices.

// CHECK-LABEL: @few_rows
// CHECK-COUNT-2: fused.matmul
// ROWS-LABEL: @few_rows
// ROWS: [[J:%.*]] = fused.matmul %x, {{.*}} -> tensor<1x2x20xf16>
// ROWS: fused.pointwise [[J]] {access = [#fused.access<["0", "d1", "4*d2 + d3"]>]} : (tensor<1x2x20xf16>) -> tensor<1x2x2x4xf16>
// ROWS: [[A:%.*]] = fused.pointwise [[J]] {access = [#fused.access<["d0", "d1", "d2"]>]} : (tensor<1x2x20xf16>) -> tensor<1x2x8xf16>
// ROWS: [[B:%.*]] = fused.pointwise [[J]] {access = [#fused.access<["d0", "d1", "d2 + 8"]>]} : (tensor<1x2x20xf16>) -> tensor<1x2x12xf16>
// ROWS-NOT: fused.matmul
// ROWS: func.return {{.*}}, [[A]], [[B]]
func.func @few_rows(%x: tensor<1x2x4xf16>) -> (tensor<1x2x2x4xf16>, tensor<1x2x8xf16>, tensor<1x2x12xf16>) {
  %wq = trt.constant {value = dense<1.0> : tensor<1x4x8xf16>} : tensor<1x4x8xf16>
  %q = fused.matmul %x, %wq : (tensor<1x2x4xf16>, tensor<1x4x8xf16>) -> tensor<1x2x8xf16> {
  ^bb0(%sq: f32):
    %hq = arith.truncf %sq : f32 to f16
    fused.yield %hq : f16
  }
  %wk = trt.constant {value = dense<2.0> : tensor<1x4x12xf16>} : tensor<1x4x12xf16>
  %k = fused.matmul %x, %wk : (tensor<1x2x4xf16>, tensor<1x4x12xf16>) -> tensor<1x2x12xf16> {
  ^bb0(%sk: f32):
    %hk = arith.truncf %sk : f32 to f16
    fused.yield %hk : f16
  }
  %v = fused.view %q : (tensor<1x2x8xf16>) -> tensor<1x2x2x4xf16>
  func.return %v, %q, %k : tensor<1x2x2x4xf16>, tensor<1x2x8xf16>, tensor<1x2x12xf16>
}

// -----

// Numbers that differ, such as the scales of what is quantised, are constants with an element for each column.
// CHECK-LABEL: @numbers
// CHECK: [[N:%.*]] = trt.constant {value = dense<{{\[\[\[}}2.0{{.*}}, 2.0{{.*}}, 3.0{{.*}}, 3.0{{.*}}]]]> : tensor<1x1x4xf32>}
// CHECK: [[J:%.*]] = fused.matmul %x, {{%.*}}, [[N]] {access = [#fused.access<["0", "0", "d2"]>]} {{.*}} -> tensor<1x5x4xf16>
// CHECK-NEXT: ^bb0([[S:%.*]]: f32 loc(unknown), [[M:%.*]]: f32 loc(unknown)):
// CHECK: arith.mulf [[S]], [[M]]
// CHECK: fused.attention [[J]], [[J]]
func.func @numbers(%x: tensor<1x5x4xf16>, %v: tensor<1x5x2xf16>) -> tensor<1x5x2xf16> {
  %wq = trt.constant {value = dense<1.0> : tensor<1x4x2xf16>} : tensor<1x4x2xf16>
  %q = fused.matmul %x, %wq {access = []} : (tensor<1x5x4xf16>, tensor<1x4x2xf16>) -> tensor<1x5x2xf16> {
  ^bb0(%sq: f32):
    %cq = arith.constant 2.0 : f32
    %mq = arith.mulf %sq, %cq : f32
    %hq = arith.truncf %mq : f32 to f16
    fused.yield %hq : f16
  } loc("q")
  %wk = trt.constant {value = dense<2.0> : tensor<1x4x2xf16>} : tensor<1x4x2xf16>
  %k = fused.matmul %x, %wk {access = []} : (tensor<1x5x4xf16>, tensor<1x4x2xf16>) -> tensor<1x5x2xf16> {
  ^bb0(%sk: f32):
    %ck = arith.constant 3.0 : f32
    %mk = arith.mulf %sk, %ck : f32
    %hk = arith.truncf %mk : f32 to f16
    fused.yield %hk : f16
  } loc("k")
  %y = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["5", "2"]>} : (tensor<1x5x2xf16>, tensor<1x5x2xf16>, tensor<1x5x2xf16>) -> tensor<1x5x2xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return %y : tensor<1x5x2xf16>
}
