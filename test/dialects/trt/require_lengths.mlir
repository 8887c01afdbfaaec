// RUN: rt-opt %s | rt-opt | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32, #trt.dims<["n"]>>) {
  // CHECK: trt.require_lengths {layer = "join", relation = "equal", lengths = #trt.dims<["n", "2*(n // 2)", "1"]>, fault = "{left} is not {right}"}
  trt.require_lengths {layer = "join", relation = "equal", lengths = #trt.dims<["n", "2*(n // 2)", "1"]>, fault = "{left} is not {right}"}
  func.return
}
