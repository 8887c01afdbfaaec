// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @require_lengths_c1(%x: tensor<?xf32, #trt.dims<["n"]>>) {
  // expected-error @+1 {{C1: trt.require_lengths has two lengths and a condition}}
  trt.require_lengths {layer = "join", relation = "equal", lengths = #trt.dims<["n"]>, fault = ""}
  func.return
}

// -----

func.func @require_lengths_c2(%x: tensor<?xf32, #trt.dims<["n"]>>) {
  // expected-error @+1 {{C2: 'less' of trt.require_lengths is none of equal, equal_or_one, at_least, multiple}}
  trt.require_lengths {layer = "join", relation = "less", lengths = #trt.dims<["n", "1", "1"]>, fault = ""}
  func.return
}

// -----

func.func @require_lengths_c3() {
  // expected-error @+1 {{C3: 3 are less than 4}}
  trt.require_lengths {layer = "join", relation = "at_least", lengths = #trt.dims<["3", "4", "1"]>, fault = "{left} are less than {right}"}
  func.return
}
