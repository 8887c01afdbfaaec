// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @require_equal_c1(%x: tensor<?xf32, #trt.dims<["n"]>>) {
  // expected-error @+1 {{C1: trt.require_equal compares two lengths}}
  trt.require_equal {layer = "join", lengths = #trt.dims<["n"]>}
  func.return
}
