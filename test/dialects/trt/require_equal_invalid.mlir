// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @require_equal_c1(%x: tensor<?xf32, #trt.dims<["n"]>>) {
  // expected-error @+1 {{C1: trt.require_equal compares two lengths}}
  trt.require_equal {layer = "join", lengths = #trt.dims<["n"]>}
  func.return
}

// -----

func.func @require_equal_c2(%x: tensor<?xf32, #trt.dims<["n"]>>) {
  // expected-error @+1 {{C2: trt.require_equal: there is no kind 'less' of agreement: expected one of equal, equal_or_one}}
  trt.require_equal {layer = "join", lengths = #trt.dims<["n", "4"]>, kind = "less"}
  func.return
}
