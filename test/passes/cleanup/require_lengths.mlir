// RUN: rt-opt %s --split-input-file -p require-lengths | filecheck %s

// Sizes that are halved and doubled are the same again only where they are even.
// CHECK-LABEL: @halved
// CHECK-SAME: attributes {trt.length_requirements = {{\[\[}}"trt.elementwise", "equal", #trt.dims<["h", "2*(h // 2)", "1"]>, "{{.*}}"{{\]\]}}}
func.func @halved(%x: tensor<?xf32, #trt.dims<["h"]>>, %y: tensor<?xf32, #trt.dims<["2*(h // 2)"]>>) {
  %z = trt.elementwise sum %x, %y : (tensor<?xf32, #trt.dims<["h"]>>, tensor<?xf32, #trt.dims<["2*(h // 2)"]>>) -> tensor<?xf32, #trt.dims<["h"]>>
  func.return
}

// -----

// One equation is checked once; the joined axis is free.
// CHECK-LABEL: @joined
// CHECK-SAME: attributes {trt.length_requirements = {{\[\[}}"trt.concatenation", "equal", #trt.dims<["h", "3*(w // 3)", "1"]>, "{{.*}}"{{\]\]}}}
func.func @joined(%x: tensor<?x?xf32, #trt.dims<["h", "w"]>>, %y: tensor<?x4xf32, #trt.dims<["3*(w // 3)", "4"]>>) {
  %z = trt.concatenation %x, %y {axis = 1 : i64} : (tensor<?x?xf32, #trt.dims<["h", "w"]>>, tensor<?x4xf32, #trt.dims<["3*(w // 3)", "4"]>>) -> tensor<?x?xf32, #trt.dims<["h", "w + 4"]>>
  %a = trt.concatenation %x, %y {axis = 1 : i64} : (tensor<?x?xf32, #trt.dims<["h", "w"]>>, tensor<?x4xf32, #trt.dims<["3*(w // 3)", "4"]>>) -> tensor<?x?xf32, #trt.dims<["h", "w + 4"]>>
  func.return
}

// -----

// What is equal or a constant 1 needs no check, nor can what no run tells get one.
// CHECK-LABEL: @decided
// CHECK-NOT: trt.length_requirements
// CHECK: trt.elementwise
func.func @decided(%x: tensor<?x?x?xf32, #trt.dims<["n", "k", "2*n"]>>, %y: tensor<1x?x?xf32, #trt.dims<["1", "k", "r // 3"]>>) {
  %z = trt.elementwise sum %x, %y : (tensor<?x?x?xf32, #trt.dims<["n", "k", "2*n"]>>, tensor<1x?x?xf32, #trt.dims<["1", "k", "r // 3"]>>) -> tensor<?x?x?xf32, #trt.dims<["n", "k", "2*n"]>>
  func.return
}

// -----

// What the data of a run tells is compared once it is known, and once.
// CHECK-LABEL: @told
// CHECK-NOT: trt.length_requirements
// CHECK: trt.define_size %k
// CHECK-NEXT: trt.require_lengths {layer = "trt.elementwise", relation = "equal_or_one", lengths = #trt.dims<["n", "r", "1"]>
// CHECK-NEXT: trt.fill
// CHECK-NEXT: trt.elementwise
// CHECK-NEXT: trt.elementwise
func.func @told(%x: tensor<?xf32, #trt.dims<["n"]>>, %k: tensor<i64>) {
  trt.define_size %k {symbol = "r"} : tensor<i64>
  %a = trt.fill linspace {output_dims = #trt.dims<["r"]>} : tensor<?xf32, #trt.dims<["r"]>>
  %z = trt.elementwise sum %a, %x : (tensor<?xf32, #trt.dims<["r"]>>, tensor<?xf32, #trt.dims<["n"]>>) -> tensor<?xf32, #trt.dims<["r"]>>
  %b = trt.elementwise prod %a, %x : (tensor<?xf32, #trt.dims<["r"]>>, tensor<?xf32, #trt.dims<["n"]>>) -> tensor<?xf32, #trt.dims<["r"]>>
  func.return
}

// -----

// A branch compares when a run comes there, and what it compares holds in it alone.
// CHECK-LABEL: @branch
// CHECK-NOT: trt.length_requirements
// CHECK: scf.if
// CHECK-NEXT: trt.require_lengths {layer = "trt.elementwise", relation = "equal", lengths = #trt.dims<["n", "2*(n // 2)", "1"]>
// CHECK-NEXT: trt.elementwise
// CHECK: else
// CHECK-NEXT: trt.require_lengths {layer = "trt.elementwise", relation = "equal", lengths = #trt.dims<["n", "2*(n // 2)", "1"]>
// CHECK-NEXT: trt.elementwise
func.func @branch(%x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["2*(n // 2)"]>>, %c: tensor<i1>) {
  %h = tensor.extract %c[] : tensor<i1>
  %z = scf.if %h -> (tensor<?xf32, #trt.dims<["n"]>>) {
    %a = trt.elementwise sum %x, %y : (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xf32, #trt.dims<["2*(n // 2)"]>>) -> tensor<?xf32, #trt.dims<["n"]>>
    scf.yield %a : tensor<?xf32, #trt.dims<["n"]>>
  } else {
    %b = trt.elementwise prod %x, %y : (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xf32, #trt.dims<["2*(n // 2)"]>>) -> tensor<?xf32, #trt.dims<["n"]>>
    scf.yield %b : tensor<?xf32, #trt.dims<["n"]>>
  }
  func.return
}

// -----

// Both of two lengths may be the one that is repeated; so may that of a broadcast. One that is equal is compared no more.
// CHECK-LABEL: @repeated
// CHECK-SAME: {{\[}}"trt.elementwise", "equal_or_one", #trt.dims<["n", "broadcast(m, n)", "1"]>
// CHECK-SAME: {{\[}}"trt.elementwise", "equal_or_one", #trt.dims<["m", "broadcast(m, n)", "1"]>
// CHECK-SAME: {{\[}}"trt.broadcast", "equal_or_one", #trt.dims<["n", "4", "1"]>
// CHECK-SAME: {{\[}}"trt.concatenation", "equal", #trt.dims<["m", "(k // 2)", "1"]>
func.func @repeated(%x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>, %z: tensor<?x1xf32, #trt.dims<["m", "1"]>>, %w: tensor<?x1xf32, #trt.dims<["k // 2", "1"]>>, %v: tensor<?xf32, #trt.dims<["k"]>>) {
  %a = trt.elementwise sum %x, %y : (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xf32, #trt.dims<["m"]>>) -> tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>
  %b = trt.broadcast %x {size = #trt.dims<["4"]>} : (tensor<?xf32, #trt.dims<["n"]>>) -> tensor<4xf32>
  %c = trt.concatenation %z, %w {axis = 1 : i64} : (tensor<?x1xf32, #trt.dims<["m", "1"]>>, tensor<?x1xf32, #trt.dims<["k // 2", "1"]>>) -> tensor<?x2xf32, #trt.dims<["m", "2"]>>
  %d = trt.elementwise sum %z, %w : (tensor<?x1xf32, #trt.dims<["m", "1"]>>, tensor<?x1xf32, #trt.dims<["k // 2", "1"]>>) -> tensor<?x1xf32, #trt.dims<["m", "1"]>>

  func.return
}

// -----

// Bounds and divisors are requirements too, and those that follow from each other's symbols need no check.
// CHECK-LABEL: @bounds
// CHECK-SAME: "trt.slice", "at_least", #trt.dims<["n", "3", "1"]>
// CHECK-SAME: "trt.topk", "at_least", #trt.dims<["n", "5", "1"]>
// CHECK-SAME: "trt.shuffle", "multiple", #trt.dims<["n", "2", "1"]>
// CHECK-NOT: trt.pooling
// CHECK-SAME: {
func.func @bounds(%x: tensor<?xf32, #trt.dims<["n"]>>, %i: tensor<1x?xf32, #trt.dims<["1", "h"]>>) {
  %a = trt.slice %x {start = #trt.dims<["1"]>, size = #trt.dims<["2"]>, stride = array<i64: 1>} : (tensor<?xf32, #trt.dims<["n"]>>) -> tensor<2xf32>
  %v, %k = trt.topk max %x {k = 5 : i64, axis = 0 : i64} : (tensor<?xf32, #trt.dims<["n"]>>) -> (tensor<5xf32>, tensor<5xi64>)
  %s = trt.shuffle %x {reshape_dims = #trt.dims<["2", "-1"]>} : (tensor<?xf32, #trt.dims<["n"]>>) -> tensor<2x?xf32, #trt.dims<["2", "n // 2"]>>
  %p = trt.pooling max %i {window = array<i64: 3>, pre_padding = array<i64: 1>, post_padding = array<i64: 1>} : (tensor<1x?xf32, #trt.dims<["1", "h"]>>) -> tensor<1x?xf32, #trt.dims<["1", "h"]>>
  func.return
}

// -----

// What an importer has asked for in words of its own is checked before the run as well, if the inputs decide it.
// CHECK-LABEL: @asked
// CHECK-SAME: {{\[\[}}"parts", "equal", #trt.dims<["8", "2*n", "1"]>, "{left} of {right}"{{\]\]}}}
// CHECK-NOT: trt.require_lengths
func.func @asked(%x: tensor<?xf32, #trt.dims<["n"]>>) {
  trt.require_lengths {layer = "parts", relation = "equal", lengths = #trt.dims<["8", "2*n", "1"]>, fault = "{left} of {right}"}
  func.return
}
