// A pipeline runs its passes in order; the dumps are on standard error, under headers that are comments.
// RUN: rt-opt %s -p 'canonicalize,cse' | filecheck %s
// RUN: rt-opt %s -p 'canonicalize,cse' --print-ir-after-change 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: rt-opt %s -p 'canonicalize,cse' --print-ir-before=cse --print-ir-after=canonicalize 2>&1 | filecheck %s --check-prefix=AROUND
// RUN: rt-opt %s -p 'dce,cse' --timing 2>&1 | filecheck %s --check-prefix=TIMING
// RUN: not rt-opt %s -p 'fuse-everything' 2>&1 | filecheck %s --check-prefix=UNKNOWN

func.func @main(%x: f32) -> f32 {
  %a = arith.mulf %x, %x : f32
  %b = arith.mulf %x, %x : f32
  %c = arith.addf %a, %b : f32
  func.return %c : f32
}

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[A:%.*]] = arith.mulf %x, %x : f32
// CHECK-NEXT: [[C:%.*]] = arith.addf [[A]], [[A]] : f32
// CHECK-NEXT: func.return [[C]] : f32

// CHANGE-NOT: IR Dump After canonicalize
// CHANGE: // -----// IR Dump After cse //----- //
// CHANGE-NEXT: builtin.module

// AROUND: IR Dump After canonicalize
// AROUND: IR Dump Before cse

// TIMING: cpu ms
// TIMING-NEXT: dce
// TIMING-NEXT: cse
// TIMING-NEXT: total

// UNKNOWN: rt-opt: error: there is no pass 'fuse-everything'
