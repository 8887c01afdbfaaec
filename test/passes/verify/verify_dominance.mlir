// RUN: rt-opt %s --split-input-file --verify-diagnostics -p verify-dominance

// A value of a block is seen by the regions of the ops after it.
func.func @region(%x: f32, %c: i1) -> f32 {
  %y = arith.negf %x : f32
  %z = scf.if %c -> (f32) {
    scf.yield %y : f32
  } else {
    scf.yield %x : f32
  }
  func.return %z : f32
}

// -----

// What one block defines, the blocks that it dominates see.
func.func @blocks(%x: f32, %c: i1) -> f32 {
  %y = arith.negf %x : f32
  cf.cond_br %c, ^then, ^else
^then:
  cf.br ^else
^else:
  func.return %y : f32
}

// -----

func.func @sibling_blocks(%x: f32, %c: i1) -> f32 {
  cf.cond_br %c, ^then, ^else
^then:
  %y = arith.negf %x : f32
  cf.br ^else
^else:
  // expected-error@+1 {{operand #0 (%y) does not dominate this use}}
  func.return %y : f32
}

// -----

func.func @out_of_region(%x: f32, %c: i1) -> f32 {
  // expected-error@+1 {{operand #0 (%later) does not dominate this use}}
  %y = arith.negf %later : f32
  %later = arith.negf %x : f32
  func.return %y : f32
}
