// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @size_c1(%b: !plan.memory) {
  // expected-error @+1 {{C1: plan.size has both or none of word and value}}
  plan.size %b {symbol = "n1", value = #plan.expression<"2">} : !plan.memory
  func.return
}
